/* Trees of layers, lists of archives, and lines: parsed once, whole. */
#include "wire/layer.h"

#include <stdio.h>

#include "base/text.h"
#include "wire/copy.h"

/* ---- limits ---- */

const char *layer_limits_text(char dst[LAYER_LIMITS_TEXT], const struct layer_limits *l)
{
	(void)snprintf(dst, LAYER_LIMITS_TEXT, "%llu:%llu:%llu:%llu",
		       (unsigned long long)l->entries, (unsigned long long)l->bytes,
		       (unsigned long long)l->file, (unsigned long long)l->ratio);
	return dst;
}

int layer_limits_parse(const char *s, struct layer_limits *ret)
{
	struct layer_limits l = { 0 };
	uint64_t *const to[] = { &l.entries, &l.bytes, &l.file, &l.ratio };
	char copy[LAYER_LIMITS_TEXT], *rest = NULL, *word;
	size_t n = 0;

	if (text_copy(copy, sizeof(copy), s) < 0)
		return -EINVAL;
	for (word = strtok_r(copy, ":", &rest); word; word = strtok_r(NULL, ":", &rest))
		if (n == ARRAY_SIZE(to) || text_u64(word, INT64_MAX, to[n++]) < 0 || !*to[n - 1])
			return -EINVAL;
	if (n != ARRAY_SIZE(to))
		return -EINVAL;
	*ret = l;
	return 0;
}

/* ---- records ---- */

enum { HEAD = 4 };

/* A record is its length and so many bytes. WIRE_OK: *ret reads them. */
static int open_record(struct rd *ret, size_t *ret_used, const void *p, size_t n)
{
	struct rd r = rd_init(p, n);
	uint32_t len = rd_be32(&r);

	if (r.bad)
		return WIRE_AGAIN;
	if (len > LAYER_RECORD_MAX - HEAD)
		return WIRE_E_TOO_LARGE;
	if (r.n < len)
		return WIRE_AGAIN;
	*ret = rd_init(r.p, len);
	*ret_used = HEAD + len;
	return WIRE_OK;
}

static struct wr begin_record(uint8_t dst[LAYER_RECORD_MAX])
{
	struct wr w = wr_init(dst, LAYER_RECORD_MAX);

	(void)wr_room(&w, HEAD);
	return w;
}

static int end_record(struct wr *w, size_t *ret_len)
{
	struct wr head = wr_init(w->p, HEAD);

	if (!wr_ok(w))
		return -EINVAL;
	wr_be32(&head, (uint32_t)(w->n - HEAD));
	*ret_len = w->n;
	return 0;
}

/* ---- entries ---- */

/* What each kind has beside its path. */
enum {
	HAS_META = 1,   /* owner, mode, time, attributes */
	HAS_SIZE = 2,   /* size and offset */
	HAS_TARGET = 4, /* any text */
	HAS_OTHER = 8,  /* another entry's path as target */
	HAS_RDEV = 16,
	MAY_BE_TOP = 32, /* the path may be "" */
	IS_END = 64,
};
static const uint8_t has[LAYER_KINDS] = {
	[LAYER_DIR] = HAS_META | MAY_BE_TOP,
	[LAYER_FILE] = HAS_META | HAS_SIZE,
	[LAYER_SYMLINK] = HAS_META | HAS_TARGET,
	[LAYER_CHAR] = HAS_META | HAS_RDEV,
	[LAYER_BLOCKDEV] = HAS_META | HAS_RDEV,
	[LAYER_FIFO] = HAS_META,
	[LAYER_HARD] = HAS_OTHER,
	[LAYER_WHITEOUT] = 128,
	[LAYER_OPAQUE] = MAY_BE_TOP,
	[LAYER_END] = HAS_SIZE | MAY_BE_TOP | IS_END,
};

static bool size_ok(const struct layer_entry *m, uint8_t h)
{
	if (h & IS_END)
		return !m->path[0] && m->offset <= INT64_MAX && m->offset % LAYER_BLOCK == 0;
	return m->size <= INT64_MAX && m->offset <= INT64_MAX - m->size &&
	       m->offset % LAYER_BLOCK == 0 && (m->size || !m->offset);
}

static bool attrs_ok(const struct layer_entry *m)
{
	struct rd r = rd_init(m->attrs, m->attrs_len);
	struct layer_attr a;
	size_t n = 0;

	while (layer_attr_next(&r, &a))
		n++;
	return !r.bad && n <= LAYER_XATTRS_MAX && m->attrs_len <= LAYER_ATTRS_MAX;
}

static bool entry_ok(const struct layer_entry *m)
{
	uint8_t h = m->kind < LAYER_KINDS ? has[m->kind] : 0;

	if (!h || !(copy_path_ok(m->path) || (!m->path[0] && (h & MAY_BE_TOP))))
		return false;
	if ((h & HAS_META) && (m->mode > 07777 || m->mtime_ns >= 1000000000 ||
			       m->uid == UINT32_MAX || m->gid == UINT32_MAX || !attrs_ok(m)))
		return false;
	if ((h & HAS_SIZE) && !size_ok(m, h))
		return false;
	if ((h & HAS_TARGET) && (!m->target[0] || strlen(m->target) > WIRE_PATH_MAX))
		return false;
	if ((h & HAS_OTHER) && !copy_path_ok(m->target))
		return false;
	return !(h & HAS_RDEV) || (m->major < 1 << 12 && m->minor < 1 << 20);
}

int layer_entry_put(uint8_t dst[LAYER_RECORD_MAX], size_t *ret_len, const struct layer_entry *m)
{
	struct wr w = begin_record(dst);
	uint8_t h;

	if (!entry_ok(m))
		return -EINVAL;
	h = has[m->kind];
	wr_u8(&w, m->kind);
	wr_str(&w, m->path);
	if (h & HAS_META) {
		wr_be16(&w, m->mode);
		wr_be32(&w, m->uid);
		wr_be32(&w, m->gid);
		wr_be64(&w, (uint64_t)m->mtime);
		wr_be32(&w, m->mtime_ns);
	}
	if (h & HAS_SIZE) {
		wr_be64(&w, m->size);
		wr_be64(&w, m->offset);
	}
	if (h & (HAS_TARGET | HAS_OTHER))
		wr_str(&w, m->target);
	if (h & HAS_RDEV) {
		wr_be32(&w, m->major);
		wr_be32(&w, m->minor);
	}
	if (h & HAS_META)
		wr_bytes(&w, m->attrs, m->attrs_len);
	return end_record(&w, ret_len);
}

int layer_entry_parse(struct layer_entry *ret, size_t *ret_used, const void *p, size_t n)
{
	struct layer_entry m = { .path = "", .target = "" };
	struct rd r = { 0 };
	size_t used = 0;
	uint8_t h;
	int ans = open_record(&r, &used, p, n);

	if (ans != WIRE_OK)
		return ans;
	m.kind = rd_u8(&r);
	h = m.kind < LAYER_KINDS ? has[m.kind] : 0;
	m.path = rd_str(&r, WIRE_PATH_MAX);
	if (h & HAS_META) {
		m.mode = rd_be16(&r);
		m.uid = rd_be32(&r);
		m.gid = rd_be32(&r);
		m.mtime = (int64_t)rd_be64(&r);
		m.mtime_ns = rd_be32(&r);
	}
	if (h & HAS_SIZE) {
		m.size = rd_be64(&r);
		m.offset = rd_be64(&r);
	}
	if (h & (HAS_TARGET | HAS_OTHER))
		m.target = rd_str(&r, WIRE_PATH_MAX);
	if (h & HAS_RDEV) {
		m.major = rd_be32(&r);
		m.minor = rd_be32(&r);
	}
	if (h & HAS_META) {
		m.attrs_len = r.bad ? 0 : r.n;
		m.attrs = rd_take(&r, m.attrs_len);
	}
	if (!rd_done(&r) || !entry_ok(&m))
		return WIRE_E_MALFORMED;
	*ret = m;
	*ret_used = used;
	return WIRE_OK;
}

void layer_attr_put(struct wr *w, const struct layer_attr *a)
{
	wr_u8(w, a->prefix);
	wr_u8(w, a->name_len);
	wr_be16(w, a->len);
	wr_bytes(w, a->name, a->name_len);
	wr_bytes(w, a->value, a->len);
}

bool layer_attr_next(struct rd *r, struct layer_attr *ret)
{
	struct layer_attr a;

	if (r->bad || !r->n)
		return false;
	a.prefix = rd_u8(r);
	a.name_len = rd_u8(r);
	a.len = rd_be16(r);
	a.name = rd_take(r, a.name_len);
	a.value = rd_take(r, a.len);
	if ((a.prefix != LAYER_USER && a.prefix != LAYER_SECURITY) || !a.name_len ||
	    (!r->bad && memchr(a.name, '\0', a.name_len)))
		r->bad = true;
	if (r->bad)
		return false;
	*ret = a;
	return true;
}

/* ---- members ---- */

static bool member_ok(const struct layer_member *m)
{
	bool path = copy_path_ok(m->name);

	switch (m->type) {
	case 'f':
		return path && !m->target[0] && m->offset <= INT64_MAX &&
		       m->size <= INT64_MAX - m->offset;
	case 'd':
		return (path || !m->name[0]) && !m->target[0] && !m->size;
	case 'l':
		return path && m->target[0] && strlen(m->target) <= WIRE_PATH_MAX && !m->size;
	case 0:
		return !m->name[0] && !m->target[0] && !m->size;
	default:
		return false;
	}
}

int layer_member_put(uint8_t dst[LAYER_RECORD_MAX], size_t *ret_len, const struct layer_member *m)
{
	struct wr w = begin_record(dst);

	if (!member_ok(m))
		return -EINVAL;
	wr_u8(&w, m->type);
	wr_be64(&w, m->offset);
	wr_be64(&w, m->size);
	wr_str(&w, m->name);
	wr_str(&w, m->target);
	return end_record(&w, ret_len);
}

int layer_member_parse(struct layer_member *ret, size_t *ret_used, const void *p, size_t n)
{
	struct layer_member m;
	struct rd r = { 0 };
	size_t used = 0;
	int ans = open_record(&r, &used, p, n);

	if (ans != WIRE_OK)
		return ans;
	m.type = rd_u8(&r);
	m.offset = rd_be64(&r);
	m.size = rd_be64(&r);
	m.name = rd_str(&r, WIRE_PATH_MAX);
	m.target = rd_str(&r, WIRE_PATH_MAX);
	if (!rd_done(&r) || !member_ok(&m))
		return WIRE_E_MALFORMED;
	*ret = m;
	*ret_used = used;
	return WIRE_OK;
}

/* ---- lines ---- */

static const char *digest_text(const char *digest)
{
	return digest[0] ? digest : "-";
}

size_t layer_line_text(char dst[LAYER_LINE_MAX + 2], const struct layer_line *l)
{
	size_t n = (size_t)snprintf(dst, LAYER_LINE_MAX, "at");

	if (l->done)
		n = (size_t)snprintf(dst, LAYER_LINE_MAX, "done %s %s", digest_text(l->digest),
				     digest_text(l->diff));
	for (size_t i = 0; i < l->n && i < LAYER_FIELDS_MAX; i++)
		n += (size_t)snprintf(dst + n, LAYER_LINE_MAX + 1 - n, " %llu",
				      (unsigned long long)l->v[i]);
	dst[n++] = '\n';
	dst[n] = '\0';
	return n;
}

static int read_digest(const char *word, char ret[LAYER_HEX + 1])
{
	ret[0] = '\0';
	if (!word)
		return -EINVAL;
	if (streq(word, "-"))
		return 0;
	if (strlen(word) != LAYER_HEX || strspn(word, "0123456789abcdef") != LAYER_HEX)
		return -EINVAL;
	return text_copy(ret, LAYER_HEX + 1, word);
}

int layer_line_parse(const char *s, struct layer_line *ret)
{
	char copy[LAYER_LINE_MAX + 1], *rest = NULL, *word;
	struct layer_line l = { 0 };
	int r = 0;

	if (text_copy(copy, sizeof(copy), s) < 0)
		return -EINVAL;
	word = strtok_r(copy, " ", &rest);
	if (!word || !(streq(word, "at") || streq(word, "done")))
		return -EINVAL;
	l.done = streq(word, "done");
	if (l.done)
		r = read_digest(strtok_r(NULL, " ", &rest), l.digest);
	if (l.done && r == 0)
		r = read_digest(strtok_r(NULL, " ", &rest), l.diff);
	while (r == 0 && (word = strtok_r(NULL, " ", &rest)))
		r = l.n == LAYER_FIELDS_MAX ? -EINVAL : text_u64(word, UINT64_MAX, &l.v[l.n++]);
	if (r < 0)
		return -EINVAL;
	*ret = l;
	return 0;
}
