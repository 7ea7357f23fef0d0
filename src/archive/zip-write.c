/* Writing ZIP archives. */
#define ZLIB_CONST
#include <zlib.h>

#include "archive/zip.h"

enum {
	VERSION = 20,
	MADE_BY = 3 << 8 | VERSION, /* a Unix: the attributes hold a mode */
	DATE = 1 << 5 | 1,          /* 1980-01-01 */
	FLAG_UTF8 = 1 << 11,
	CENTRAL_MAX = ZIP_ENTRIES_MAX * (46 + ZIP_NAME_MAX),
};

void zip_out_begin(struct zip_out *z, struct buf *out)
{
	*z = (struct zip_out) { .out = out, .central = BUF_INIT(CENTRAL_MAX) };
}

void zip_out_done(struct zip_out *z)
{
	buf_done(&z->central);
}

static uint8_t *put(uint8_t *p, uint32_t v, unsigned bytes)
{
	for (; bytes; bytes--, v >>= 8)
		*p++ = (uint8_t)v;
	return p;
}

/* What stands in both headers: flags, method, time, date, checksum, sizes, lengths of name and extra. */
static uint8_t *put_common(uint8_t *p, const char *name, const struct zip_entry *f)
{
	p = put(p, VERSION, 2);
	p = put(p, FLAG_UTF8, 2);
	p = put(p, f->deflate ? Z_DEFLATED : 0, 2);
	p = put(p, 0, 2);
	p = put(p, DATE, 2);
	p = put(p, f->crc, 4);
	p = put(p, f->packed, 4);
	p = put(p, f->size, 4);
	p = put(p, (uint32_t)strlen(name), 2);
	return put(p, 0, 2);
}

static int add_headers(struct zip_out *z, const char *name, const struct zip_entry *f)
{
	uint8_t local[30], central[46], *p;
	int r;

	p = put(local, 0x04034b50, 4);
	(void)put_common(p, name, f);
	p = put(central, 0x02014b50, 4);
	p = put(p, MADE_BY, 2);
	p = put_common(p, name, f);
	p = put(p, 0, 2); /* comment */
	p = put(p, 0, 2); /* disk */
	p = put(p, 0, 2); /* internal attributes */
	p = put(p, (f->exec ? 0100755U : 0100644U) << 16, 4);
	(void)put(p, f->local, 4);
	r = buf_add(z->out, local, sizeof(local));
	if (r == 0)
		r = buf_add(z->out, name, strlen(name));
	if (r == 0)
		r = buf_add(&z->central, central, sizeof(central));
	return r == 0 ? buf_add(&z->central, name, strlen(name)) : r;
}

/* Packed into dst of n bytes: how many, or 0 if it is not smaller. */
static size_t pack(const void *p, size_t n, uint8_t *dst)
{
	z_stream s = { .next_in = p, .avail_in = (uInt)n };
	int r;

	s.next_out = dst;
	s.avail_out = (uInt)n;
	if (!n || deflateInit2(&s, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		return 0;
	r = deflate(&s, Z_FINISH);
	(void)deflateEnd(&s);
	return r == Z_STREAM_END ? s.total_out : 0;
}

int zip_out_add(struct zip_out *z, const char *name, const void *p, size_t n, bool exec,
		struct err *e)
{
	_free_ uint8_t *packed = n <= ZIP_BYTES_MAX ? malloc(n + 1) : NULL;
	struct zip_entry f = { .exec = exec, .size = (uint32_t)n, .local = (uint32_t)z->out->n };
	int r;

	if (!packed || z->n == ZIP_ENTRIES_MAX || strlen(name) > ZIP_NAME_MAX)
		return err_set(e, -EFBIG, "'%.200s' is too much for the ZIP", name);
	f.crc = (uint32_t)crc32_z(0, p, n);
	f.packed = (uint32_t)pack(p, n, packed);
	f.deflate = f.packed != 0;
	if (!f.deflate)
		f.packed = f.size;
	r = add_headers(z, name, &f);
	if (r == 0)
		r = buf_add(z->out, f.deflate ? packed : p, f.packed);
	z->n++;
	return r < 0 ? err_errno(e, r, "cannot write the ZIP") : 0;
}

int zip_out_end(struct zip_out *z, struct err *e)
{
	uint32_t off = (uint32_t)z->out->n;
	uint8_t end[22], *p;
	int r;

	p = put(end, 0x06054b50, 4);
	p = put(p, 0, 4);
	p = put(p, (uint32_t)z->n, 2);
	p = put(p, (uint32_t)z->n, 2);
	p = put(p, (uint32_t)z->central.n, 4);
	p = put(p, off, 4);
	(void)put(p, 0, 2);
	r = buf_add(z->out, buf_data(&z->central), z->central.n);
	if (r == 0)
		r = buf_add(z->out, end, sizeof(end));
	return r < 0 ? err_errno(e, r, "cannot write the ZIP") : 0;
}
