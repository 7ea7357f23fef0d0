#pragma once
/* A tar archive in the pax format (POSIX.1-2001, pax(1)), written to a descriptor.
 *
 * What the old header cannot say goes into an extended header before it: long names, big numbers, nanoseconds, extended attributes
 * (SCHILY.xattr.NAME, as star, Go and libarchive have it), holes (GNU's sparse format 1.0). Names are bytes. The first failure
 * is kept, and everything after it does nothing. */
#include "base/buf.h"

enum { PAX_EXTENDED_MAX = 2 << 20 }; /* bytes of one entry's extended header */

struct pax {
	int fd;
	int r; /* 0, or the first -errno: -E2BIG if an entry has too many attributes */
	uint8_t *p;
	size_t n;
	uint64_t body; /* of the entry under way: bytes that are still to come */
	uint64_t pad;
	struct buf extended;
};

enum pax_type {
	PAX_FILE = '0',
	PAX_HARD = '1',
	PAX_LINK = '2',
	PAX_CHAR = '3',
	PAX_BLOCK = '4',
	PAX_DIR = '5',
	PAX_FIFO = '6',
};

struct pax_entry {
	const char *path; /* relative; of a directory without the final '/' */
	char type;
	uint32_t mode; /* permission bits */
	uint32_t uid, gid;
	int64_t mtime;
	uint32_t mtime_ns;
	uint64_t size;      /* PAX_FILE: bytes that follow by pax_data() */
	const char *target; /* PAX_HARD: a path of the archive; PAX_LINK */
	uint32_t major, minor;
};

struct pax_extent {
	uint64_t offset, len;
};

/* 0 or -ENOMEM; pax_done() in any case. */
int pax_init(struct pax *x, int fd) _must_check_;
void pax_done(struct pax *x);

/* An attribute of the next entry. */
void pax_xattr(struct pax *x, const char *name, const void *value, size_t n);

/* The next entry. If it is a file with bytes, pax_data() brings them. */
void pax_entry(struct pax *x, const struct pax_entry *e);

/* A file with holes: only the bytes of these extents follow. */
void pax_sparse(struct pax *x, const struct pax_entry *e, const struct pax_extent *v, size_t n);

/* Bytes of the file under way; more than were announced are dropped. */
void pax_data(struct pax *x, const void *p, size_t n);

/* Zeros for what did not come: a file that became shorter while it was read. */
void pax_fill(struct pax *x);

/* The end of the archive, and x->r. */
int pax_end(struct pax *x) _must_check_;
