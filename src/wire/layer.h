#pragma once
/* What bac-layer writes and reads (docs/protocol/layer.md): members of an archive, the tree of a layer, and the lines that it says to
 * who started it.
 *
 * Parsers work on the bytes that are there and answer WIRE_OK, WIRE_AGAIN or WIRE_E_*; results are set only on WIRE_OK, and texts
 * borrow. What they let through is well formed by itself; what an entry means after the ones before it is for the reader to judge. */
#include "wire/frame.h"

enum {
	LAYER_BLOCK = 4096,           /* of an image; each file begins at one */
	LAYER_LAYERS_MAX = 128,       /* of one image */
	LAYER_MEMBERS_MAX = 65536,    /* of an archive that list reads */
	LAYER_XATTRS_MAX = 64,        /* of one entry */
	LAYER_VALUE_MAX = 65535,      /* bytes of one attribute's value */
	LAYER_ATTRS_MAX = 128 * 1024, /* all attributes of one entry as they are written */
	LAYER_RECORD_MAX = 160 * 1024,
	LAYER_LINE_MAX = 255, /* one line said, without its end */
	LAYER_FIELDS_MAX = 6, /* numbers of one line */
	LAYER_HEX = 64,       /* digits of a digest */
};

/* How far bac-layer goes with one layer. */
struct layer_limits {
	uint64_t entries; /* of an archive */
	uint64_t bytes;   /* that it unpacks to; holes count */
	uint64_t file;    /* of one file; holes count */
	uint64_t ratio;   /* bytes unpacked for each byte read, once LAYER_RATIO_FREE came out */
};
enum { LAYER_RATIO_FREE = 256 * 1024 * 1024 };

#define LAYER_LIMITS_DEFAULT \
	{ \
		.entries = 2000000, .bytes = 64ULL << 30, .file = 64ULL << 30, .ratio = 400 \
	}

/* "2000000:68719476736:68719476736:400", the argument of bac-layer. */
enum { LAYER_LIMITS_TEXT = 96 };
const char *layer_limits_text(char dst[LAYER_LIMITS_TEXT], const struct layer_limits *l);
/* 0 or -EINVAL; no limit is 0. */
int layer_limits_parse(const char *s, struct layer_limits *ret) _must_check_;

/* ---- a tree ---- */

#define LAYER_TREE_MAGIC "BACTREE1"

enum layer_kind {
	LAYER_DIR = 1, /* path "" is the root */
	LAYER_FILE,
	LAYER_SYMLINK,
	LAYER_CHAR,
	LAYER_BLOCKDEV,
	LAYER_FIFO,
	LAYER_HARD,     /* a further name for what stands at target, in this layer or below it */
	LAYER_WHITEOUT, /* what lower layers have at path is not there */
	LAYER_OPAQUE,   /* what lower layers have in the directory at path is not there */
	LAYER_END, /* the last: size is the number of entries before it, offset the bytes of the blob */
	LAYER_KINDS,
};

struct layer_entry {
	uint8_t kind;
	uint16_t mode; /* 07777 */
	uint32_t uid, gid;
	int64_t mtime;         /* seconds since 1970 */
	uint32_t mtime_ns;     /* below 1,000,000,000 */
	uint64_t size;         /* FILE: bytes, at most INT64_MAX */
	uint64_t offset;       /* FILE: where in the blob, in whole blocks; size 0: 0 */
	uint32_t major, minor; /* devices: below 1 << 12, 1 << 20 */
	const char *path;      /* copy_path_ok(); "" only for DIR, OPAQUE and END */
	const char *target;    /* SYMLINK: any text but ""; HARD: copy_path_ok(); else "" */
	const uint8_t *attrs;  /* layer_attr_next() */
	size_t attrs_len;
};

/* Bytes of an entry into dst. 0 and *ret_len, or -EINVAL for one that the parser would not take. */
int layer_entry_put(uint8_t dst[LAYER_RECORD_MAX], size_t *ret_len, const struct layer_entry *m)
	_must_check_;
int layer_entry_parse(struct layer_entry *ret, size_t *ret_used, const void *p, size_t n);

/* Extended attributes by the first part of their name, numbered as EROFS does it. */
enum layer_prefix { LAYER_USER = 1, LAYER_SECURITY = 6 };

struct layer_attr {
	uint8_t prefix;
	uint8_t name_len; /* at least 1 */
	uint16_t len;
	const uint8_t *name, *value;
};
void layer_attr_put(struct wr *w, const struct layer_attr *a);
/* The next one of a list: true and *ret, or false at its end or if it is malformed (r->bad). */
bool layer_attr_next(struct rd *r, struct layer_attr *ret);

/* ---- members of an archive ---- */

struct layer_member {
	uint8_t type; /* 'f', 'd', 'l'; 0 ends the list: offset is the number of members before it */
	uint64_t offset, size; /* of what it holds */
	const char *name;      /* copy_path_ok(), or "" for the top directory and the end */
	const char *target;    /* of 'l', any text; else "" */
};
int layer_member_put(uint8_t dst[LAYER_RECORD_MAX], size_t *ret_len, const struct layer_member *m)
	_must_check_;
int layer_member_parse(struct layer_member *ret, size_t *ret_used, const void *p, size_t n);

/* ---- what is said ---- */

/* "at 123 456", "done DIGEST DIFF 1 2 3", "done - - 1": a word, for done two digests or "-", and numbers. */
struct layer_line {
	bool done;
	char digest[LAYER_HEX + 1], diff[LAYER_HEX + 1]; /* "" for "-" */
	uint64_t v[LAYER_FIELDS_MAX];
	size_t n;
};
/* With its end ('\n'); returns the length. */
size_t layer_line_text(char dst[LAYER_LINE_MAX + 2], const struct layer_line *l);
/* s has no end of line. 0 or -EINVAL. */
int layer_line_parse(const char *s, struct layer_line *ret) _must_check_;
