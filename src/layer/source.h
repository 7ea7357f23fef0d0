#pragma once
/* The bytes of an archive: a range of a file, or a pipe, unpacked if they are packed (gzip, zstd, xz, bzip2: known by their first
 * bytes), counted, and hashed as they came and as they are unpacked. */
#include <zlib.h>

#include "base/err.h"
#include "layer/hash.h"

enum source_form { SOURCE_PLAIN, SOURCE_GZIP, SOURCE_ZSTD, SOURCE_XZ, SOURCE_BZIP2 };
enum { SOURCE_BUFFER = 1024 * 1024 };

struct source {
	int fd;
	bool seeks;
	uint64_t at, left; /* in the file; UINT64_MAX: to its end */
	struct layer_limits limits;
	uint8_t form;
	uint8_t *in; /* SOURCE_BUFFER: what came last; in_n bytes, of which in_off are used */
	size_t in_n, in_off;
	uint64_t came;  /* bytes read */
	uint64_t plain; /* bytes unpacked */
	struct hash as_came, as_plain;
	uint8_t *out; /* SOURCE_BUFFER, gzip only */
	z_stream z;
	bool z_ready, z_ended;
	void *a; /* struct archive, the other forms */
	void (*on_progress)(struct source *s);
	void *user;
	uint64_t told;  /* came + plain at the last on_progress() */
	struct err err; /* what went wrong, for who calls through a library */
};

/* size UINT64_MAX: to the end. If hashed, both digests are computed. 0 or -errno with *e; source_done() in any case. */
int source_open(struct source *s, int fd, uint64_t offset, uint64_t size,
		const struct layer_limits *limits, bool hashed, struct err *e) _must_check_;
/* The next bytes, which stay until the next call. 1; 0 at the end, when all bytes of the input were looked at; or -errno with s->err. */
int source_next(struct source *s, const uint8_t **ret, size_t *ret_n) _must_check_;
/* Plain files that are not hashed: pass over n bytes. Returns how many were (0: not possible). */
uint64_t source_skip(struct source *s, uint64_t n);
void source_done(struct source *s);
