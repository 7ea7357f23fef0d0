#pragma once
/* Records and extents of a copy stream (docs/protocol/ctl.md, "Copy stream").
 *
 * Parsers work on the bytes that are there and answer WIRE_OK, WIRE_AGAIN or WIRE_E_*; results are
 * set only on WIRE_OK, and texts borrow. What they let through is well formed by itself; what a
 * record means after the ones before it is for the receiver to judge. */
#include "wire/frame.h"

enum copy_kind {
	COPY_DIR = 1, /* path "" is the top of a stream that is content only */
	COPY_FILE,    /* extents follow */
	COPY_LINK,
	COPY_HARD,
	COPY_ERROR, /* ends the stream; a FILE right before it is not complete */
	COPY_END,   /* ends the stream */
};

struct copy_record {
	uint8_t kind;
	uint32_t mode;     /* DIR, FILE, HARD: permission bits */
	int64_t mtime;     /* seconds since 1970 */
	uint32_t mtime_ns; /* below 1,000,000,000 */
	uint64_t size;     /* FILE: bytes, at most INT64_MAX; END: records before it; else 0 */
	const char *path;  /* copy_path_ok(); "" only for DIR, ERROR and END */
	const char
		*target; /* LINK: any text; HARD: copy_path_ok(); ERROR: what went wrong; else "" */
};

enum {
	COPY_RECORD_HEAD = 28,
	COPY_TEXT_MAX = 4 + WIRE_PATH_MAX + 1,
	COPY_RECORD_MAX = COPY_RECORD_HEAD + 2 * COPY_TEXT_MAX,
	COPY_EXTENT_HEAD = 12,
};

/* Bytes of a record into dst. 0 and *ret_len, or -EINVAL for a record that the parser would not
 * take. */
int copy_record_put(uint8_t dst[COPY_RECORD_MAX], size_t *ret_len, const struct copy_record *r)
	_must_check_;

int copy_record_parse(struct copy_record *ret, size_t *ret_used, const void *p, size_t n);

struct copy_extent {
	uint64_t offset;
	uint32_t len; /* 0 ends the file */
};
void copy_extent_put(uint8_t dst[COPY_EXTENT_HEAD], struct copy_extent x);

/* *pos is where the last extent of this file ended (0 at first), size the record's. An extent that
 * goes back or reaches beyond size is malformed. WIRE_OK moves *pos to the end of this one. */
int copy_extent_parse(struct copy_extent *ret, uint64_t *pos, uint64_t size, const void *p,
		      size_t n);

/* True for a relative path of 1 to WIRE_PATH_MAX bytes without empty, "." or ".." components, none
 * of them over COPY_NAME_MAX. */
bool copy_path_ok(const char *path);
