/* A tar archive in the pax format. */
#include "guest/init/pax.h"

#include <stdio.h>

#include "base/text.h"
#include "io/fd.h"

enum {
	BLOCK = 512,
	BUFFER = 128 * 1024,
	NAME_MAX_OLD = 100,
	OCTAL_7 = 07777777,
	DIGITS_MAX = 20,
};

static const uint64_t octal_11 = 077777777777; /* what twelve bytes hold, with their NUL */

/* Where the old header has its fields. */
enum {
	AT_NAME = 0,
	AT_MODE = 100,
	AT_UID = 108,
	AT_GID = 116,
	AT_SIZE = 124,
	AT_MTIME = 136,
	AT_SUM = 148,
	AT_TYPE = 156,
	AT_TARGET = 157,
	AT_MAGIC = 257,
	AT_MAJOR = 329,
	AT_MINOR = 337,
};

int pax_init(struct pax *x, int fd)
{
	*x = (struct pax) { .fd = fd, .p = malloc(BUFFER), .extended = BUF_INIT(PAX_EXTENDED_MAX) };
	return x->p ? 0 : -ENOMEM;
}

void pax_done(struct pax *x)
{
	free(x->p);
	buf_done(&x->extended);
	*x = (struct pax) { .fd = -1 };
}

/* ---- bytes ---- */

static void flush(struct pax *x)
{
	if (x->r == 0 && x->n)
		x->r = fd_write_all(x->fd, x->p, x->n);
	x->n = 0;
}

static void put(struct pax *x, const void *p, size_t n)
{
	const uint8_t *from = p;

	while (n && x->r == 0) {
		size_t part = MIN(n, BUFFER - x->n);

		memcpy(x->p + x->n, from, part);
		x->n += part;
		from += part;
		n -= part;
		if (x->n == BUFFER)
			flush(x);
	}
}

static void put_zeros(struct pax *x, uint64_t n)
{
	static const uint8_t zeros[4096];

	for (; n && x->r == 0; n -= MIN(n, sizeof(zeros)))
		put(x, zeros, (size_t)MIN(n, sizeof(zeros)));
}

/* ---- headers ---- */

static void octal(uint8_t *dst, size_t width, uint64_t v)
{
	dst[--width] = '\0';
	while (width) {
		dst[--width] = (uint8_t)('0' + (v & 7));
		v >>= 3;
	}
}

static void put_header(struct pax *x, const struct pax_entry *e, const char *name, uint64_t size,
		       char type)
{
	uint8_t h[BLOCK] = { 0 };
	unsigned sum = 0;
	size_t i;

	memcpy(h + AT_NAME, name, MIN(strlen(name), NAME_MAX_OLD));
	octal(h + AT_MODE, 8, e->mode & 07777);
	octal(h + AT_UID, 8, MIN(e->uid, OCTAL_7));
	octal(h + AT_GID, 8, MIN(e->gid, OCTAL_7));
	octal(h + AT_SIZE, 12, MIN(size, octal_11));
	octal(h + AT_MTIME, 12, e->mtime > 0 ? MIN((uint64_t)e->mtime, octal_11) : 0);
	h[AT_TYPE] = (uint8_t)type;
	if (e->target)
		memcpy(h + AT_TARGET, e->target, MIN(strlen(e->target), NAME_MAX_OLD));
	memcpy(h + AT_MAGIC, "ustar\00000", 8);
	octal(h + AT_MAJOR, 8, e->major);
	octal(h + AT_MINOR, 8, e->minor);
	memset(h + AT_SUM, ' ', 8);
	for (i = 0; i < BLOCK; i++)
		sum += h[i];
	octal(h + AT_SUM, 7, sum);
	put(x, h, sizeof(h));
}

/* "LENGTH KEY=VALUE\n", where the length counts its own digits. */
static void record(struct pax *x, const char *key, const void *value, size_t n)
{
	size_t rest = 1 + strlen(key) + 1 + n + 1, len = rest + 1, v, digits;

	for (;;) {
		for (digits = 0, v = len; v; v /= 10)
			digits++;
		if (len == rest + digits)
			break;
		len = rest + digits;
	}
	if (x->r == 0 &&
	    (buf_printf(&x->extended, "%zu %s=", len, key) < 0 ||
	     buf_add(&x->extended, value, n) < 0 || buf_add(&x->extended, "\n", 1) < 0))
		x->r = -E2BIG;
}

static void record_number(struct pax *x, const char *key, uint64_t v)
{
	char s[DIGITS_MAX + 1];

	(void)snprintf(s, sizeof(s), "%llu", (unsigned long long)v);
	record(x, key, s, strlen(s));
}

void pax_xattr(struct pax *x, const char *name, const void *value, size_t n)
{
	char key[320];

	(void)snprintf(key, sizeof(key), "SCHILY.xattr.%.255s", name);
	record(x, key, value, n);
}

static void record_time(struct pax *x, const struct pax_entry *e)
{
	/* before 1970 the fraction counts from the second below: -1.5 is -2 and 500,000,000 ns */
	int64_t s = e->mtime < 0 && e->mtime_ns ? e->mtime + 1 : e->mtime;
	uint32_t ns = e->mtime < 0 && e->mtime_ns ? 1000000000 - e->mtime_ns : e->mtime_ns;
	char text[64];

	if (!e->mtime_ns && e->mtime >= 0 && (uint64_t)e->mtime <= octal_11)
		return;
	(void)snprintf(text, sizeof(text), "%s%lld.%09u", s == 0 && e->mtime < 0 ? "-" : "",
		       (long long)s, ns);
	record(x, "mtime", text, strlen(text));
}

/* The extended header, if anything is to be said there. */
static void put_extended(struct pax *x)
{
	static const struct pax_entry plain = { .mode = 0644 };
	size_t n = x->extended.n;

	if (n) {
		put_header(x, &plain, "PaxHeaders/0", n, 'x');
		put(x, buf_data(&x->extended), n);
		put_zeros(x, -n % BLOCK);
	}
	buf_consume(&x->extended, n);
}

/* What the old header cannot say of both kinds of entry. */
static void extend(struct pax *x, const struct pax_entry *e, const char *path, uint64_t size)
{
	const char *target = e->target ? e->target : "";
	bool named = strlen(path) > NAME_MAX_OLD, targeted = strlen(target) > NAME_MAX_OLD;

	if ((named && !text_is_utf8(path, strlen(path))) ||
	    (targeted && !text_is_utf8(target, strlen(target))))
		record(x, "hdrcharset", "BINARY", strlen("BINARY"));
	if (named)
		record(x, "path", path, strlen(path));
	if (targeted)
		record(x, "linkpath", target, strlen(target));
	if (size > octal_11)
		record_number(x, "size", size);
	if (e->uid > OCTAL_7)
		record_number(x, "uid", e->uid);
	if (e->gid > OCTAL_7)
		record_number(x, "gid", e->gid);
	record_time(x, e);
}

static void begin_body(struct pax *x, uint64_t size)
{
	x->body = size;
	x->pad = -size % BLOCK;
}

static void end_body(struct pax *x)
{
	if (x->body)
		return;
	put_zeros(x, x->pad);
	x->pad = 0;
}

void pax_entry(struct pax *x, const struct pax_entry *e)
{
	uint64_t size = e->type == PAX_FILE ? e->size : 0;
	char *path = NULL;

	if (x->r < 0)
		return;
	if (asprintf(&path, "%s%s", e->path, e->type == PAX_DIR ? "/" : "") < 0) {
		x->r = -ENOMEM;
		return;
	}
	extend(x, e, path, size);
	put_extended(x);
	put_header(x, e, path, size, e->type);
	begin_body(x, size);
	free(path);
}

void pax_sparse(struct pax *x, const struct pax_entry *e, const struct pax_extent *v, size_t n)
{
	struct buf map = BUF_INIT(64UL << 20);
	uint64_t size = 0;
	char name[64];
	size_t i;
	int r = buf_printf(&map, "%zu\n", n + 1);

	for (i = 0; i < n && r == 0; i++) {
		r = buf_printf(&map, "%llu\n%llu\n", (unsigned long long)v[i].offset,
			       (unsigned long long)v[i].len);
		size += v[i].len;
	}
	if (r == 0) /* as GNU tar does: readers take the end from it */
		r = buf_printf(&map, "%llu\n0\n", (unsigned long long)e->size);
	if (r < 0 && x->r == 0)
		x->r = r;
	record_number(x, "GNU.sparse.major", 1);
	record_number(x, "GNU.sparse.minor", 0);
	record(x, "GNU.sparse.name", e->path, strlen(e->path));
	record_number(x, "GNU.sparse.realsize", e->size);
	(void)snprintf(name, sizeof(name), "GNUSparseFile.0/file");
	extend(x, e, name, size + map.n + (-map.n % BLOCK));
	put_extended(x);
	put_header(x, e, name, size + map.n + (-map.n % BLOCK), PAX_FILE);
	put(x, buf_data(&map), map.n);
	put_zeros(x, -map.n % BLOCK);
	begin_body(x, size);
	if (!size)
		end_body(x);
	buf_done(&map);
}

void pax_data(struct pax *x, const void *p, size_t n)
{
	size_t part = (size_t)MIN(n, x->body);

	put(x, p, part);
	x->body -= part;
	if (part)
		end_body(x);
}

void pax_fill(struct pax *x)
{
	if (!x->body)
		return;
	put_zeros(x, x->body);
	x->body = 0;
	end_body(x);
}

int pax_end(struct pax *x)
{
	put_zeros(x, 2UL * BLOCK);
	flush(x);
	return x->r;
}
