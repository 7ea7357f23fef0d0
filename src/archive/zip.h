#pragma once
/* ZIP archives (APPNOTE.TXT 6.3) of kits, read and written: no more of the format than that takes.
 *
 * Read strictly: one archive from the first byte to the last, methods "stored" and "deflate", regular files and directories. Encryption, ZIP64,
 * several disks, links and devices, names that are not plain relative paths, names that come twice, data that overlaps, and headers that
 * contradict each other are refused. Hostile bytes are fine. */
#include "base/buf.h"
#include "base/err.h"

enum {
	ZIP_FILE_MAX = 64 * 1024 * 1024,  /* bytes of an archive */
	ZIP_BYTES_MAX = 64 * 1024 * 1024, /* what all of its files unpack to */
	ZIP_ENTRIES_MAX = 4096,
	ZIP_NAME_MAX = 1024,
	ZIP_RATIO_MAX = 300, /* unpacked to packed, for a file of more than ZIP_RATIO_FROM bytes */
	ZIP_RATIO_FROM = 1024 * 1024,
};

struct zip_entry {
	char *name; /* "files/home/a"; without the slash behind a directory's */
	bool dir, exec;
	uint32_t size, packed, crc, local; /* local: offset of its own header */
	uint32_t data;                     /* offset of its bytes */
	bool deflate;
};

struct zip {
	const uint8_t *p; /* borrowed */
	size_t n;
	struct zip_entry *v; /* in the order of the directory */
	size_t n_v;
};

/* Read the directory of the archive at p, which must outlive *ret. 0; -EINVAL, -EFBIG with a message; zip_done() on success. */
int zip_read(const void *p, size_t n, struct zip *ret, struct err *e) _must_check_;
void zip_done(struct zip *z);
/* Append what a file unpacks to. 0, or -EINVAL if it is damaged. */
int zip_data(const struct zip *z, const struct zip_entry *f, struct buf *out, struct err *e)
	_must_check_;

/* An archive from in_fd as a copy stream (docs/protocol/ctl.md), content only. 0, or -Exxx with *e set and an ERROR record sent. */
int zip_to_copy(int in_fd, int out_fd, struct err *e) _must_check_;

/* Writing: the same members in the same order make the same bytes. Times are 1980-01-01, modes 0644 or 0755. */
struct zip_out {
	struct buf *out;    /* the caller's */
	struct buf central; /* the directory so far */
	size_t n;
};
void zip_out_begin(struct zip_out *z, struct buf *out);
int zip_out_add(struct zip_out *z, const char *name, const void *p, size_t n, bool exec,
		struct err *e) _must_check_;
int zip_out_end(struct zip_out *z, struct err *e) _must_check_;
void zip_out_done(struct zip_out *z);
