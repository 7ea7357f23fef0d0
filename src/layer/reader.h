#pragma once
/* The entries of a tar archive, by libarchive, from a source. */
#include "layer/source.h"

struct archive_entry;

struct reader {
	struct source s;
	void *a; /* struct archive */
	const uint8_t *
		last; /* what the source gave last: last_n bytes, which began at last_at of the plain bytes */
	size_t last_n;
	uint64_t last_at;
	uint64_t entries;
};

/* 0 or -errno with *e; reader_done() in any case. As source_open(). */
int reader_open(struct reader *r, int fd, uint64_t offset, uint64_t size,
		const struct layer_limits *limits, bool hashed, struct err *e) _must_check_;
/* 1 and the next entry (libarchive's); 0 at the end, when nothing but zeros was behind the archive; or -errno. */
int reader_next(struct reader *r, struct archive_entry **ret, struct err *e) _must_check_;
/* The next bytes of the entry and where in it they are: 1; 0 at its end; or -errno. */
int reader_data(struct reader *r, const uint8_t **ret, size_t *ret_n, uint64_t *ret_offset,
		struct err *e) _must_check_;
/* Where in the plain bytes the content of this entry begins. */
uint64_t reader_position(const struct reader *r);
void reader_done(struct reader *r);

/* A name made fit: without leading, double and last slashes and without ".". 1; 0 if nothing is left; or -errno with a message for
 * one that leads out (..), is too long, or is none. what is said of it: "a link to". */
int reader_name(char dst[WIRE_PATH_MAX + 1], const char *name, const char *what, struct err *e)
	_must_check_;
