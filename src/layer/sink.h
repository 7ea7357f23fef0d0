#pragma once
/* A file that is written from its start to its end, in large pieces, with holes. The first failure is kept. */
#include "base/err.h"

struct sink {
	int fd;
	uint8_t *b;       /* SINK_BUFFER bytes */
	size_t n;         /* in b, not written yet */
	uint64_t pos;     /* the end, with what is in b */
	uint64_t started; /* up to here it is on its way to the disk */
	int r;
};
enum { SINK_BUFFER = 1024 * 1024 };

int sink_open(struct sink *s, int fd)
	_must_check_; /* 0 or -ENOMEM; the descriptor stays the caller's */
void sink_bytes(struct sink *s, const void *p, size_t n);
void sink_zeros(struct sink *s, uint64_t n);
/* Zeros up to the next multiple of step. */
void sink_align(struct sink *s, size_t step);
/* All is written and the file has its length: 0 or the first -errno. */
int sink_end(struct sink *s) _must_check_;
void sink_done(struct sink *s);
