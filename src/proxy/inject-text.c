#include "proxy/inject-priv.h"

#include "base/base64.h"
#include "proxy/http-priv.h"

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = http_lower((uint8_t)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int escape(const char *p, size_t n)
{
	if (n < 3 || p[0] != '%' || digit(p[1]) < 0 || digit(p[2]) < 0)
		return -1;
	return digit(p[1]) * 16 + digit(p[2]);
}

/* How many bytes at p are the placeholder, 0: none. */
static size_t match(const char *p, size_t n, const char *want, bool *ret_escaped)
{
	bool escaped = false;
	size_t i = 0;

	for (; *want; want++) {
		if (escape(p + i, n - i) == (unsigned char)*want) {
			i += 3;
			escaped = true;
		} else if (i < n && p[i] == *want) {
			i++;
		} else {
			return 0;
		}
	}
	*ret_escaped = escaped;
	return i;
}

/* The next one at or behind *at: its length, 0: no more. */
static size_t next(const char *p, size_t n, const char *want, size_t *at, bool *ret_escaped)
{
	size_t len;

	for (; *at < n; (*at)++) {
		if (p[*at] != want[0] && p[*at] != '%')
			continue;
		len = match(p + *at, n - *at, want, ret_escaped);
		if (len)
			return len;
	}
	return 0;
}

bool inject_seen(const char *p, size_t n, const char *placeholder)
{
	bool escaped;
	size_t at = 0;

	return next(p, n, placeholder, &at, &escaped) != 0;
}

static const char *json_escape(uint8_t c)
{
	static const char *const two[] = {
		['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f",
		['\r'] = "\\r", ['"'] = "\\\"", ['\\'] = "\\\\"
	};

	return c < ARRAY_SIZE(two) ? two[c] : NULL;
}

/* One byte, written as; at most 6. */
static size_t written(char to[7], uint8_t c, enum inject_as as)
{
	static const char hex[] = "0123456789ABCDEF";
	const char *two = as == INJECT_AS_JSON ? json_escape(c) : NULL;

	if (two)
		memcpy(to, two, 3);
	else if (as == INJECT_AS_JSON && c < ' ')
		(void)snprintf(to, 7, "\\u%04x", c);
	else if (as == INJECT_AS_PERCENT && !(c && strchr("-._~", c)) && digit((char)c) < 0 &&
		 !(http_lower(c) >= 'a' && http_lower(c) <= 'z'))
		(void)snprintf(to, 7, "%%%c%c", hex[c >> 4], hex[c & 15]);
	else
		return to[0] = (char)c, 1;
	return strlen(to);
}

size_t inject_put_size(const uint8_t *value, size_t n, enum inject_as as)
{
	size_t i, sum = 0;
	char to[7];

	for (i = 0; i < n; i++)
		sum += written(to, value[i], as);
	explicit_bzero(to, sizeof(to));
	return sum;
}

int inject_put(struct buf *out, const uint8_t *value, size_t n, enum inject_as as)
{
	size_t i, len = inject_put_size(value, n, as);
	char *room, to[7];

	if (len > buf_space(out))
		return -ENOBUFS;
	room = buf_room(out, len + 1);
	if (!room)
		return buf_space(out) < len + 1 ? -ENOBUFS : -ENOMEM;
	for (i = 0; i < n; i++) {
		len = written(to, value[i], as);
		memcpy(room, to, len);
		room += len;
		buf_added(out, len);
	}
	explicit_bzero(to, sizeof(to));
	return 0;
}

/* Room for all of it at once, so that growing leaves no copies behind. */
static int reserve(struct buf *out, const char *p, size_t n, const struct inject_swap *s,
		   enum inject_as as)
{
	const size_t one =
		inject_put_size(s->value, s->n, as == INJECT_AS_SEEN ? INJECT_AS_PERCENT : as) + 1;
	size_t at = 0, len, total = n + 1;
	bool escaped;

	while ((len = next(p, n, s->placeholder, &at, &escaped))) {
		total += one;
		at += len;
		if (total > out->max)
			return -ENOBUFS;
	}
	return buf_room(out, total) ? 0 : buf_space(out) < total ? -ENOBUFS : -ENOMEM;
}

int inject_swap(struct buf *out, const char *p, size_t n, const struct inject_swap *s,
		enum inject_as as, size_t *ret_n)
{
	size_t from = 0, at = 0, len, count = 0;
	bool escaped;
	int r = reserve(out, p, n, s, as);

	while (r == 0 && (len = next(p, n, s->placeholder, &at, &escaped))) {
		r = buf_add(out, p + from, at - from);
		if (r == 0)
			r = inject_put(out, s->value, s->n,
				       as == INJECT_AS_SEEN && escaped ? INJECT_AS_PERCENT : as);
		at += len;
		from = at;
		count++;
	}
	if (r == 0)
		r = buf_add(out, p + from, n - from);
	if (r == 0)
		*ret_n = count;
	return r;
}

/* ---- base64 ---- */

int inject_unbase64(struct buf *out, const char *p, size_t n)
{
	uint8_t *room = buf_room(out, n + 1);
	size_t len = 0;
	int r;

	if (!room)
		return buf_space(out) < n + 1 ? -ENOBUFS : -ENOMEM;
	r = base64_get(room, p, n, BASE64, &len);
	if (r == 0)
		buf_added(out, len);
	return r;
}

int inject_base64(struct buf *out, const uint8_t *p, size_t n)
{
	const size_t total = BASE64_SIZE(n);
	char *room = buf_room(out, total + 1);

	if (!room)
		return buf_space(out) < total + 1 ? -ENOBUFS : -ENOMEM;
	(void)base64_put(room, p, n, BASE64);
	buf_added(out, total);
	return 0;
}

const char *inject_basic(const struct hfield *f, size_t *ret_n)
{
	const char *p = f->value;

	if (!http_word_is((const uint8_t *)f->name, f->name_len, "authorization") ||
	    f->value_len < 6 || !http_word_is((const uint8_t *)p, 5, "basic") || p[5] != ' ')
		return NULL;
	for (p += 6; *p == ' '; p++)
		;
	*ret_n = f->value_len - (size_t)(p - f->value);
	return p;
}

bool inject_is_sentinel(const char *p, size_t n)
{
	static const char word[] = "proxy-managed";
	size_t i;

	for (i = 0; i < n; i++) {
		const char c = http_lower((uint8_t)p[i]);

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !(c && strchr("._~-", c)))
			return false;
	}
	return n && memmem(p, n, word, sizeof(word) - 1);
}
