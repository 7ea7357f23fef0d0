/* Copy streams: every path is checked here, before anybody gives it to the kernel. */
#include "wire/copy.h"

bool copy_path_ok(const char *path)
{
	size_t total = 0;

	for (;;) {
		size_t len = strcspn(path, "/");

		total += len;
		if (!len || len > COPY_NAME_MAX || total > WIRE_PATH_MAX)
			return false;
		if (path[0] == '.' && (len == 1 || (len == 2 && path[1] == '.')))
			return false;
		if (!path[len])
			return true;
		path += len + 1;
		total++;
	}
}

/* What each kind may carry. */
static bool makes_sense(const struct copy_record *r)
{
	bool path = copy_path_ok(r->path), target = r->target[0] != '\0';
	bool plain = !r->mode && !r->mtime && !r->mtime_ns;

	switch (r->kind) {
	case COPY_DIR:
		return (path || !r->path[0]) && !target && !r->size;
	case COPY_FILE:
		return path && !target && r->size <= INT64_MAX;
	case COPY_LINK:
		return path && target && !r->mode && !r->size;
	case COPY_HARD:
		return path && copy_path_ok(r->target) && !r->size;
	case COPY_ERROR:
		return (path || !r->path[0]) && target && plain && !r->size;
	case COPY_END:
		return !r->path[0] && !target && plain;
	default:
		return false;
	}
}

static bool head_ok(const struct copy_record *r)
{
	return r->kind >= COPY_DIR && r->kind <= COPY_END && !(r->mode & ~0777U) &&
	       r->mtime_ns < 1000000000;
}

int copy_record_put(uint8_t dst[COPY_RECORD_MAX], size_t *ret_len, const struct copy_record *r)
{
	struct wr w = wr_init(dst, COPY_RECORD_MAX);

	if (!head_ok(r) || !makes_sense(r) || strlen(r->target) > WIRE_PATH_MAX)
		return -EINVAL;
	wr_be32(&w, (uint32_t)r->kind << 24); /* and three bytes of 0 */
	wr_be32(&w, r->mode);
	wr_be64(&w, (uint64_t)r->mtime);
	wr_be32(&w, r->mtime_ns);
	wr_be64(&w, r->size);
	wr_str(&w, r->path);
	wr_str(&w, r->target);
	if (!wr_ok(&w))
		return -EINVAL;
	*ret_len = w.n;
	return 0;
}

/* rd_str(), but tells a text that is not all there yet from one that is wrong. */
static int text(struct rd *r, const char **ret)
{
	struct rd peek = *r;
	uint32_t len = rd_be32(&peek);

	if (peek.bad)
		return WIRE_AGAIN;
	if (len > WIRE_PATH_MAX)
		return WIRE_E_TOO_LARGE;
	if (peek.n < (size_t)len + 1)
		return WIRE_AGAIN;
	*ret = rd_str(r, WIRE_PATH_MAX);
	return r->bad ? WIRE_E_MALFORMED : WIRE_OK;
}

int copy_record_parse(struct copy_record *ret, size_t *ret_used, const void *p, size_t n)
{
	struct rd r = rd_init(p, n);
	struct copy_record m = { 0 };
	bool zero;
	int ans;

	if (n < COPY_RECORD_HEAD)
		return WIRE_AGAIN;
	m.kind = rd_u8(&r);
	zero = rd_u8(&r) == 0;
	zero = rd_be16(&r) == 0 && zero;
	m.mode = rd_be32(&r);
	m.mtime = (int64_t)rd_be64(&r);
	m.mtime_ns = rd_be32(&r);
	m.size = rd_be64(&r);
	if (!zero || !head_ok(&m))
		return WIRE_E_MALFORMED;
	ans = text(&r, &m.path);
	if (ans == WIRE_OK)
		ans = text(&r, &m.target);
	if (ans != WIRE_OK)
		return ans;
	if (!makes_sense(&m))
		return WIRE_E_MALFORMED;
	*ret = m;
	*ret_used = n - r.n;
	return WIRE_OK;
}

void copy_extent_put(uint8_t dst[COPY_EXTENT_HEAD], struct copy_extent x)
{
	struct wr w = wr_init(dst, COPY_EXTENT_HEAD);

	wr_be64(&w, x.offset);
	wr_be32(&w, x.len);
}

int copy_extent_parse(struct copy_extent *ret, uint64_t *pos, uint64_t size, const void *p,
		      size_t n)
{
	struct rd r = rd_init(p, n);
	struct copy_extent x;

	if (n < COPY_EXTENT_HEAD)
		return WIRE_AGAIN;
	x.offset = rd_be64(&r);
	x.len = rd_be32(&r);
	if (x.len > COPY_EXTENT_MAX)
		return WIRE_E_TOO_LARGE;
	if (x.offset < *pos || x.offset > size || x.len > size - x.offset)
		return WIRE_E_MALFORMED;
	*pos = x.offset + x.len;
	*ret = x;
	return WIRE_OK;
}
