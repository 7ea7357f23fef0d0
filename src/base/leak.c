/* Words, rolling hashes and what they find.
 *
 * The hash of a window w0 ... w15 is the sum of w[i] * key^(15-i), modulo 2^64: one multiplication a byte, and for the byte that leaves one
 * addition of a number from a table. The key is odd, so that no power of it is zero. High bits are the good ones: they choose the bit of the filter.
 * The hash of a word is what is highest in its product with the key. A collision costs time and is no hit: what decides is SHA-256 of the key and the bytes.
 *
 * Two ways through a piece: step() takes a byte at a time and knows everything; quick() looks at a word for every eight bytes, and at
 * windows only about a word that may be a mark's. It stops before the byte that makes a head full, and the rest of that goes by step().
 *
 * Why no window escapes quick(): of LEAK_WINDOW bytes from any place, the first LEAK_WORD places have one that is a multiple of eight away from where quick() began;
 * the word there ends within the window. Which of a secret's first eight words that is depends on where the stream has it: so a mark has all of them. */
#include "base/leak.h"

#include <endian.h>

#include "base/rdwr.h"

enum { QUICK_MIN = 32, FILTER_SHIFT = 48, MARK_MIN = 8 + 8 + 4 + 2 * LEAK_WORDS + 1 };
_Static_assert(1 << (64 - FILTER_SHIFT) == 64 * ARRAY_SIZE(((struct leak_set *)0)->filter),
	       "filter");
_Static_assert(sizeof(((struct leak_set *)0)->words) == sizeof(((struct leak_set *)0)->filter),
	       "words");
_Static_assert(LEAK_WORD == sizeof(uint64_t) && LEAK_WORDS >= LEAK_WORD, "each place has a word");

static void wipe(void *p, size_t n)
{
	if (n)
		explicit_bzero(p, n);
}

/* ---- marks of a value ---- */

/* One form as it is made, byte by byte: no copy of it lies anywhere. */
struct form {
	uint64_t key, head, last; /* the last eight bytes */
	struct sha256 all;
	size_t n;
	uint16_t word[LEAK_WORDS];
};

/* Of eight bytes, the first one lowest. */
static uint16_t word_hash(uint64_t key, uint64_t word)
{
	return (uint16_t)(word * key >> FILTER_SHIFT);
}

static void form_begin(struct form *f, uint64_t key)
{
	uint8_t b[8];
	struct wr w = wr_init(b, sizeof(b));

	memset(f, 0, sizeof(*f));
	f->key = key;
	wr_be64(&w, key);
	sha256_init(&f->all);
	sha256_add(&f->all, b, sizeof(b));
}

static void form_byte(struct form *f, uint8_t c)
{
	if (f->n < LEAK_WINDOW)
		f->head = f->head * f->key + c;
	f->last = f->last >> 8 | (uint64_t)c << 56;
	f->n++;
	if (f->n >= LEAK_WORD && f->n < LEAK_WORD + LEAK_WORDS)
		f->word[f->n - LEAK_WORD] = word_hash(f->key, f->last);
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
	memcpy(m->v[m->n].word, f->word, sizeof(f->word));
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
		sha256_add(&h, s->v[i].word, sizeof(s->v[i].word));
		sha256_add(&h, s->v[i].name, sizeof(s->v[i].name));
	}
	return cut(&h) | 1;
}

static void set_bit(uint64_t *filter, size_t bit)
{
	filter[bit / 64] |= 1ULL << bit % 64;
}

int leak_set_init(struct leak_set *s, uint64_t key, struct leak_mark *v, size_t n)
{
	uint64_t power = 1;
	size_t i, k;

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
		set_bit(s->filter, v[i].head >> FILTER_SHIFT);
		for (k = 0; k < LEAK_WORDS; k++)
			set_bit(s->words, v[i].word[k]);
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
	size_t i, k, n, total = 12;
	int r;

	for (i = 0; i < s->n; i++)
		total += MARK_MIN + strlen(s->v[i].name);
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
		for (k = 0; k < LEAK_WORDS; k++)
			wr_be16(&w, s->v[i].word[k]);
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
	for (i = 0; i < LEAK_WORDS; i++)
		m->word[i] = rd_be16(r);
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
	    count > r.n / MARK_MIN)
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

/* 1 or 0: a number, so that four can be asked without a branch between them. */
static unsigned suspect(const struct leak_set *s, const uint8_t *p)
{
	uint64_t word;
	uint16_t bit;

	memcpy(&word, p, sizeof(word));
	bit = word_hash(s->key, le64toh(word));
	return s->words[bit / 64] >> bit % 64 & 1;
}

/* The first word from p on, by steps of eight, that may be a mark's; or where no whole one is left. */
static const uint8_t *next_suspect(const struct leak_set *s, const uint8_t *p, const uint8_t *end)
{
	while (end - p >= 4L * LEAK_WORD &&
	       !(suspect(s, p) | suspect(s, p + LEAK_WORD) | suspect(s, p + 2L * LEAK_WORD) |
		 suspect(s, p + 3L * LEAK_WORD)))
		p += 4L * LEAK_WORD;
	while (end - p >= LEAK_WORD && !suspect(s, p))
		p += LEAK_WORD;
	return p;
}

/* The first of the windows from p to last that is a head, or NULL. */
static const uint8_t *head_at(const struct leak_set *s, const uint8_t *p, const uint8_t *last)
{
	uint64_t h = window(s, p);

	for (; p <= last; p++) {
		if (maybe(s, h) && lookup(s, h) < s->n)
			return p;
		if (p < last)
			h = h * s->key + p[LEAK_WINDOW] + s->gone[*p];
	}
	return NULL;
}

/* How many of n bytes at p no head ends in; at least LEAK_WINDOW bytes are before p, and belong to the stream. */
static size_t quick(const struct leak_set *s, uint64_t *roll, const uint8_t *p, size_t n)
{
	const uint8_t *const first = p - (LEAK_WINDOW - 1), *const end = p + n;
	const uint8_t *at = first, *head = NULL;
	size_t used = n;

	/* a word that ends at the end is of no window that does, nor of an earlier one */
	while (!head && (at = next_suspect(s, at, end - 1), end - 1 - at >= LEAK_WORD)) {
		head = head_at(s, MAX(at - (LEAK_WORD - 1), first), MIN(at, end - LEAK_WINDOW));
		at += LEAK_WORD;
	}
	if (head)
		used = (size_t)(head - first);
	*roll = window(s, p + used - LEAK_WINDOW);
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
	size_t i = 0, used;

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
		if (i >= LEAK_WINDOW && n - i >= QUICK_MIN && !c->n_open) {
			used = quick(s, &c->roll, p + i, n - i);
			i += used;
			c->seen += used;
			remember(c, p + i, used);
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
