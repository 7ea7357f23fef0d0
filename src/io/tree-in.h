#pragma once
/* The receiving end of a copy stream: records in their order, and the bytes of each file.
 *
 * Life: tree_in_init(), tree_in_next() until it does not answer 1, and after each FILE
 * tree_in_data() until it does not answer 1; tree_in_done(). What is checked here is what can be
 * known without looking at a file system: that the first record is a DIR or the only one, that
 * every path is below the first one's, that the extents of a file fit, and that the stream is
 * complete. */
#include "base/err.h"
#include "wire/copy.h"

struct tree_in {
	int fd; /* borrowed */
	struct buf buf;
	uint64_t records;
	char top[COPY_NAME_MAX + 1]; /* the first record's path; "": content only */
	bool leaf;                   /* the first record was no DIR: no other may follow */
	uint64_t size, pos;          /* of the file that is being read */
	uint64_t at;                 /* offset of the next byte of the extent */
	uint32_t left;               /* bytes left of the extent */
};

void tree_in_init(struct tree_in *in, int fd);
void tree_in_done(struct tree_in *in);

/* 1: a DIR, FILE, LINK or HARD in *ret, whose texts live until the next call; its path is below the
 * top ("" is the top itself), and so is a HARD's target. 0: END, all is there. Else -errno with *e
 * set: -EREMOTEIO the sender's ERROR, -ENODATA cut off, -EPROTO malformed. */
int tree_in_next(struct tree_in *in, struct copy_record *ret, struct err *e) _must_check_;

struct tree_data {
	uint64_t offset;
	const uint8_t *p; /* until the next call */
	size_t n;
};

/* 1: some bytes of the file; 0: that was all of it; else -errno as above. */
int tree_in_data(struct tree_in *in, struct tree_data *ret, struct err *e) _must_check_;
