/* Rolling hashes and what they find.
 *
 * The hash of a window w0 ... w15 is the sum of w[i] * key^(15-i), modulo 2^64: one multiplication a byte, and for the byte that leaves one
 * addition of a number from a table. The key is odd, so that no power of it is zero. High bits are the good ones: they choose the bit of the filter.
 * A collision costs time and is no hit: what decides is SHA-256 of the key and the bytes.
 *
 * Two ways through a piece: step() takes a byte at a time and knows everything; quick() goes in LANES places at once, so that multiplications
 * overlap, and only asks whether there is any head; a block that has one goes by step(). */
#include "base/leak.h"

#include "base/rdwr.h"

enum { LANES = 4, LANE_MIN = 32, LANE_MAX = 512, FILTER_SHIFT = 48, MARK_MIN = 8 + 8 + 4 + 1 + 1 };
_Static_assert(1 << (64 - FILTER_SHIFT) == 64 * ARRAY_SIZE(((struct leak_set *)0)->filter),
	       "filter");

static void wipe(void *p, size_t n)
{
	if (n)
		explicit_bzero(p, n);
}

/* ---- marks of a value ---- */

/* One form as it is made, byte by byte: no copy of it lies anywhere. */
struct form {
	uint64_t key, head;
	struct sha256 all;
	size_t n;
};

static void form_begin(struct form *f, uint64_t key)
{
	uint8_t b[8];
	struct wr w = wr_init(b, sizeof(b));

	f->key = key;
	f->head = 0;
	f->n = 0;
	wr_be64(&w, key);
	sha256_init(&f->all);
	sha256_add(&f->all, b, sizeof(b));
}

static void form_byte(struct form *f, uint8_t c)
{
	if (f->n++ < LEAK_WINDOW)
		f->head = f->head * f->key + c;
	sha256_add(&f->all, &c, 1);
}

static uint64_t cut(struct sha256 *s)
{
	uint8_t b[SHA256_SIZE];
	struct rd r = rd_init(b, sizeof(b));

	sha256_end(s, b);
	return rd_be64(&r);
}

struct marks {
	struct leak_mark *v;
	size_t n, max;
	const char *name;
	uint64_t key;
	const uint8_t *value;
	size_t n_value;
};

static void name_copy(char ret[LEAK_NAME_MAX + 1], const char *name)
{
	size_t i;

	memset(ret, 0, LEAK_NAME_MAX + 1);
	for (i = 0; i < LEAK_NAME_MAX && name[i]; i++)
		ret[i] = (char)(name[i] >= ' ' && name[i] <= '~' ? name[i] : '?');
}

static void form_end(struct marks *m, struct form *f)
{
	const size_t n = f->n;
	uint64_t all = cut(&f->all);
	size_t i;

	for (i = 0; i < m->n; i++) {
		if (m->v[i].length == n && m->v[i].all == all)
			return;
	}
	if (n < LEAK_WINDOW || n > LEAK_LENGTH_MAX || m->n == m->max)
		return;
	m->v[m->n].head = f->head;
	m->v[m->n].all = all;
	m->v[m->n].length = (uint32_t)n;
	name_copy(m->v[m->n++].name, m->name);
}

static void plain(struct marks *m, struct form *f)
{
	size_t i;

	form_begin(f, m->key);
	for (i = 0; i < m->n_value; i++)
		form_byte(f, m->value[i]);
	form_end(m, f);
}

/* The characters that hold nothing but bits of the value, when `before` bytes of something else come before it in the same text. */
static void base64(struct marks *m, struct form *f, unsigned before, const char *last_two)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	const size_t end = (before + m->n_value) * 8 / 6;
	unsigned two, six;
	size_t i, bit;

	form_begin(f, m->key);
	for (i = (before * 8 + 5) / 6; i < end; i++) {
		bit = i * 6 - before * 8UL;
		two = (unsigned)m->value[bit / 8] << 8;
		if (bit / 8 + 1 < m->n_value)
			two |= m->value[bit / 8 + 1];
		six = two >> (10 - bit % 8) & 63;
		form_byte(f, (uint8_t)(six < 62 ? letters[six] : last_two[six - 62]));
	}
	form_end(m, f);
}

static void hex_byte(struct form *f, const char *digits, uint8_t c)
{
	form_byte(f, (uint8_t)digits[c >> 4]);
	form_byte(f, (uint8_t)digits[c & 15]);
}

static void hex(struct marks *m, struct form *f, const char *digits)
{
	size_t i;

	form_begin(f, m->key);
	for (i = 0; i < m->n_value; i++)
		hex_byte(f, digits, m->value[i]);
	form_end(m, f);
}

static bool alnum(uint8_t c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static void percent(struct marks *m, struct form *f, const char *digits, const char *kept)
{
	uint8_t c;
	size_t i;

	form_begin(f, m->key);
	for (i = 0; i < m->n_value; i++) {
		c = m->value[i];
		if (alnum(c) || (c && strchr(kept, c))) {
			form_byte(f, c);
			continue;
		}
		form_byte(f, '%');
		hex_byte(f, digits, c);
	}
	form_end(m, f);
}

static void json_byte(struct form *f, uint8_t c, const char *escaped)
{
	static const char from[] = "\n\r\t\b\f", to[] = "nrtbf";
	const char *at = c ? strchr(from, c) : NULL;
	size_t i;

	if (at || (c && strchr(escaped, c))) {
		form_byte(f, '\\');
		form_byte(f, at ? (uint8_t)to[at - from] : c);
	} else if (c < 0x20) {
		for (i = 0; i < 4; i++)
			form_byte(f, (uint8_t) "\\u00"[i]);
		hex_byte(f, "0123456789abcdef", c);
	} else {
		form_byte(f, c);
	}
}

static void json(struct marks *m, struct form *f, const char *escaped)
{
	size_t i;

	form_begin(f, m->key);
	for (i = 0; i < m->n_value; i++)
		json_byte(f, m->value[i], escaped);
	form_end(m, f);
}

size_t leak_marks(uint64_t key, const char *name, const uint8_t *value, size_t n,
		  struct leak_mark *ret, size_t max)
{
	static const char upper[] = "0123456789ABCDEF", lower[] = "0123456789abcdef";
	struct marks m = { ret, 0, max, name, key | 1, value, n };
	struct form f;
	unsigned i;

	if (n < LEAK_WINDOW)
		return 0;
	plain(&m, &f);
	for (i = 0; i < 3; i++) {
		base64(&m, &f, i, "+/");
		base64(&m, &f, i, "-_");
	}
	hex(&m, &f, lower);
	hex(&m, &f, upper);
	percent(&m, &f, upper, "-._~");
	percent(&m, &f, lower, "-._~");
	percent(&m, &f, upper, "-._~!*'()"); /* encodeURIComponent() */
	json(&m, &f, "\"\\");
	json(&m, &f, "\"\\/");
	wipe(&f, sizeof(f));
	return m.n;
}

/* ---- sets ---- */

static int by_head(const void *a, const void *b)
{
	const struct leak_mark *x = a, *y = b;

	if (x->head != y->head)
		return x->head < y->head ? -1 : 1;
	return x->length < y->length ? -1 : x->length > y->length;
}

static uint64_t stamp_of(const struct leak_set *s)
{
	struct sha256 h;
	size_t i;

	sha256_init(&h);
	sha256_add(&h, &s->key, sizeof(s->key));
	for (i = 0; i < s->n; i++) {
		sha256_add(&h, &s->v[i].head, sizeof(s->v[i].head));
		sha256_add(&h, &s->v[i].all, sizeof(s->v[i].all));
		sha256_add(&h, &s->v[i].length, sizeof(s->v[i].length));
		sha256_add(&h, s->v[i].name, sizeof(s->v[i].name));
	}
	return cut(&h) | 1;
}

int leak_set_init(struct leak_set *s, uint64_t key, struct leak_mark *v, size_t n)
{
	uint64_t power = 1;
	size_t i, bit;

	if (n > LEAK_MARKS_MAX)
		return -E2BIG;
	memset(s, 0, sizeof(*s));
	s->key = key | 1;
	s->n = (uint32_t)n;
	s->v = v;
	if (n)
		qsort(v, n, sizeof(*v), by_head);
	for (i = 0; i < LEAK_WINDOW; i++)
		power *= s->key;
	for (i = 0; i < ARRAY_SIZE(s->gone); i++)
		s->gone[i] = -(i * power);
	for (i = 0; i < n; i++) {
		bit = v[i].head >> FILTER_SHIFT;
		s->filter[bit / 64] |= 1ULL << bit % 64;
	}
	s->stamp = stamp_of(s);
	return 0;
}

void leak_set_done(struct leak_set *s)
{
	if (s->v)
		wipe(s->v, s->n * sizeof(*s->v));
	free(s->v);
	wipe(s, sizeof(*s));
}

int leak_set_put(struct buf *out, const struct leak_set *s)
{
	uint8_t b[12 + LEAK_MARKS_MAX];
	struct wr w;
	size_t i, n, total = 12;
	int r;

	for (i = 0; i < s->n; i++)
		total += 21 + strlen(s->v[i].name);
	if (total > LEAK_SET_MAX)
		return -ENOBUFS;
	w = wr_init(b, sizeof(b));
	wr_be64(&w, s->key);
	wr_be32(&w, s->n);
	r = buf_add(out, b, w.n);
	for (i = 0; r == 0 && i < s->n; i++) {
		n = strlen(s->v[i].name);
		w = wr_init(b, sizeof(b));
		wr_be64(&w, s->v[i].head);
		wr_be64(&w, s->v[i].all);
		wr_be32(&w, s->v[i].length);
		wr_u8(&w, (uint8_t)n);
		wr_bytes(&w, s->v[i].name, n);
		r = buf_add(out, b, w.n);
	}
	return r;
}

static bool mark_parse(struct leak_mark *m, struct rd *r)
{
	const uint8_t *name;
	size_t i, n;

	m->head = rd_be64(r);
	m->all = rd_be64(r);
	m->length = rd_be32(r);
	n = rd_u8(r);
	name = rd_take(r, n);
	if (!name || n > LEAK_NAME_MAX || m->length < LEAK_WINDOW || m->length > LEAK_LENGTH_MAX)
		return false;
	memset(m->name, 0, sizeof(m->name));
	for (i = 0; i < n; i++) {
		if (name[i] < ' ' || name[i] > '~')
			return false;
		m->name[i] = (char)name[i];
	}
	return true;
}

int leak_set_parse(struct leak_set *ret, const uint8_t *p, size_t n)
{
	struct rd r = rd_init(p, n);
	const uint64_t key = rd_be64(&r);
	const uint32_t count = rd_be32(&r);
	_free_ struct leak_mark *v = NULL;
	uint32_t i;

	/* what is allocated is no more than a few times what came */
	if (r.bad || n > LEAK_SET_MAX || !(key & 1) || count > LEAK_MARKS_MAX ||
	    count > r.n / (MARK_MIN - 1))
		return -EPROTO;
	v = calloc(count ? count : 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		if (!mark_parse(&v[i], &r))
			return -EPROTO;
	}
	if (!rd_done(&r) || leak_set_init(ret, key, v, count) < 0)
		return -EPROTO;
	(void)take_ptr(v);
	return 0;
}

/* ---- streams ---- */

static bool maybe(const struct leak_set *s, uint64_t h)
{
	return s->filter[h >> FILTER_SHIFT >> 6] >> ((h >> FILTER_SHIFT) & 63) & 1;
}

/* The first mark of that head, or s->n. */
static uint32_t lookup(const struct leak_set *s, uint64_t head)
{
	uint32_t low = 0, high = s->n, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (s->v[mid].head < head)
			low = mid + 1;
		else
			high = mid;
	}
	return low < s->n && s->v[low].head == head ? low : s->n;
}

static uint64_t window(const struct leak_set *s, const uint8_t *p)
{
	uint64_t h = 0;
	size_t i;

	for (i = 0; i < LEAK_WINDOW; i++)
		h = h * s->key + p[i];
	return h;
}

/* LANES times n bytes at p, with LEAK_WINDOW before them. Is a head in it? */
static bool block(const struct leak_set *s, uint64_t h[LANES], const uint8_t *p, size_t n)
{
	const uint64_t key = s->key;
	const uint8_t *out = p - LEAK_WINDOW;
	bool some;
	size_t i, k;

	for (i = 0; i < n; i++, p++, out++) {
		some = false;
		for (k = 0; k < LANES; k++) {
			h[k] = h[k] * key + p[k * n] + s->gone[out[k * n]];
			some |= maybe(s, h[k]);
		}
		for (k = 0; some && k < LANES; k++) {
			if (maybe(s, h[k]) && lookup(s, h[k]) < s->n)
				return true;
		}
	}
	return false;
}

/* How many bytes at p have no head in them; a multiple of something, perhaps 0. */
static size_t quick(const struct leak_set *s, uint64_t *roll, const uint8_t *p, size_t n)
{
	uint64_t h[LANES];
	size_t used = 0, one, k;

	while (n - used >= (size_t)LANES * LANE_MIN) {
		one = MIN((n - used) / LANES, LANE_MAX);
		h[0] = *roll;
		for (k = 1; k < LANES; k++)
			h[k] = window(s, p + used + k * one - LEAK_WINDOW);
		if (block(s, h, p + used, one))
			break;
		*roll = h[LANES - 1];
		used += one * LANES;
	}
	return used;
}

/* The end of what has been seen, up to p. */
static void remember(struct leak_scan *c, const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 1; i <= MIN(n, LEAK_WINDOW); i++)
		c->last[(c->seen - i) % LEAK_WINDOW] = *(p - i);
}

static void adopt(struct leak_scan *c, const struct leak_set *s)
{
	size_t i;

	c->n_open = 0;
	c->roll = 0;
	for (i = 0; i < LEAK_WINDOW; i++)
		c->roll = c->roll * s->key + c->last[(c->seen + i) % LEAK_WINDOW];
	c->set = s->stamp;
}

/* One that has its length: is it? */
static void settle(struct leak_open *o, const struct leak_set *s, struct leak_hit *ret)
{
	const struct leak_mark *m = &s->v[o->mark];

	if (cut(&o->hash) != m->all || (ret->length && ret->start <= o->start))
		return;
	ret->start = o->start;
	ret->length = m->length;
	ret->name = m->name;
}

static void open_all(struct leak_scan *c, const struct leak_set *s, struct leak_hit *ret)
{
	struct leak_open o;
	struct form f;
	uint32_t i = lookup(s, c->roll);
	size_t k;

	if (i == s->n)
		return;
	form_begin(&f, s->key);
	for (k = 0; k < LEAK_WINDOW; k++)
		form_byte(&f, c->last[(c->seen + k) % LEAK_WINDOW]);
	for (; i < s->n && s->v[i].head == c->roll; i++) {
		o.start = c->seen - LEAK_WINDOW;
		o.mark = i;
		o.hash = f.all;
		if (s->v[i].length == LEAK_WINDOW)
			settle(&o, s, ret);
		else if (c->n_open < LEAK_OPEN_MAX)
			c->open[c->n_open++] = o;
	}
}

static void step(struct leak_scan *c, const struct leak_set *s, uint8_t byte, struct leak_hit *ret)
{
	uint8_t *last = &c->last[c->seen % LEAK_WINDOW];
	size_t i, kept = 0;

	c->roll = c->roll * s->key + byte + s->gone[*last];
	*last = byte;
	c->seen++;
	for (i = 0; i < c->n_open; i++) {
		sha256_add(&c->open[i].hash, &byte, 1);
		if (c->seen - c->open[i].start == s->v[c->open[i].mark].length)
			settle(&c->open[i], s, ret);
		else if (kept++ != i)
			c->open[kept - 1] = c->open[i];
	}
	c->n_open = (uint8_t)kept;
	if (maybe(s, c->roll) && c->seen >= LEAK_WINDOW)
		open_all(c, s, ret);
}

size_t leak_scan(struct leak_scan *c, const struct leak_set *s, const uint8_t *p, size_t n,
		 struct leak_hit *ret)
{
	size_t i = 0, used, slow = LEAK_WINDOW;

	ret->length = 0;
	if (!s || !s->n) {
		c->seen += n;
		c->set = 0;
		c->n_open = 0;
		remember(c, p + n, n);
		return n;
	}
	if (c->set != s->stamp)
		adopt(c, s);
	while (i < n && !ret->length) {
		if (i >= slow && !c->n_open) {
			used = quick(s, &c->roll, p + i, n - i);
			i += used;
			c->seen += used;
			remember(c, p + i, used);
			slow = i + (size_t)LANES * LANE_MAX;
			if (i == n)
				break;
		}
		step(c, s, p[i++], ret);
	}
	return i;
}

uint64_t leak_held(const struct leak_scan *c)
{
	uint64_t from = c->seen;
	size_t i;

	for (i = 0; i < c->n_open; i++)
		from = MIN(from, c->open[i].start);
	return from;
}
