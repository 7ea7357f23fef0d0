#pragma once
/* The sending end of a copy stream, with a buffer of its own.
 *
 * Life: tree_out_init(), records and extents, tree_out_end() or tree_out_fail(), tree_out_done().
 * A failure to send is -errno with *e set, and nothing can be sent after it. */
#include "base/err.h"
#include "wire/copy.h"

enum { TREE_CHUNK = 64 * 1024 }; /* bytes that tree_out_room() gives at a time */

struct tree_out {
	int fd; /* borrowed */
	bool broken;
	uint64_t records;
	uint8_t *p;
	size_t n;
};

int tree_out_init(struct tree_out *o, int fd, struct err *e) _must_check_;
void tree_out_done(struct tree_out *o);

/* -EINVAL, with nothing sent, for a record that no receiver would take. */
int tree_out_record(struct tree_out *o, const struct copy_record *m, struct err *e) _must_check_;

/* One extent of a file is made in two steps: TREE_CHUNK bytes of room to be filled, or NULL with *e
 * set; and then how many (1 to TREE_CHUNK) were, and where they belong. */
uint8_t *tree_out_room(struct tree_out *o, struct err *e);
void tree_out_extent(struct tree_out *o, uint64_t offset, size_t n);

/* The end of a file. */
int tree_out_close(struct tree_out *o, uint64_t size, struct err *e) _must_check_;

/* Complete: the END record. */
int tree_out_end(struct tree_out *o, struct err *e) _must_check_;

/* Not complete: tell the receiver what is in *e. Between records, or after tree_out_close(). */
void tree_out_fail(struct tree_out *o, const struct err *e);
