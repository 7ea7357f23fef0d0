/* A reader that remembers where two lists end; it is as strict as it needs to be to know that. */
#include "guest/init/spec.h"

enum { WORD_MAX = 256 };

struct in {
	const char *p;
	size_t n, at;
	unsigned depth;
	bool bad;
	struct spec *s;
	const char *const *names;
	size_t n_names;
	const char *where;
};

static bool fail(struct in *in)
{
	in->bad = true;
	return false;
}

/* The byte that is here; NUL at the end. */
static char here(const struct in *in)
{
	if (in->at < in->n)
		return in->p[in->at];
	return '\0';
}

/* It, and on to the one behind it. */
static char take(struct in *in)
{
	char c = here(in);

	if (in->at < in->n)
		in->at++;
	return c;
}

/* The next byte that is no space; NUL at the end. */
static char peek(struct in *in)
{
	while (here(in) && strchr(" \t\r\n", here(in)))
		in->at++;
	return here(in);
}

static bool eat(struct in *in, char c)
{
	if (in->bad || peek(in) != c || in->at >= in->n)
		return false;
	in->at++;
	return true;
}

/* ---- strings ---- */

static bool hex4(struct in *in, uint32_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	uint32_t v = 0;
	int i;

	if (in->n - in->at < 4)
		return fail(in);
	for (i = 0; i < 4; i++) {
		char c = in->p[in->at++];
		const char *d;

		c = (char)(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
		d = c ? strchr(digits, c) : NULL;
		if (!d)
			return fail(in);
		v = v << 4 | (uint32_t)(d - digits);
	}
	*ret = v;
	return true;
}

/* Of the pairs that JSON writes for what is beyond 16 bits nothing here needs the meaning. */
static size_t utf8(char dst[3], uint32_t v)
{
	if (v < 0x80) {
		dst[0] = (char)v;
		return 1;
	}
	if (v < 0x800) {
		dst[0] = (char)(0xc0 | v >> 6);
		dst[1] = (char)(0x80 | (v & 0x3f));
		return 2;
	}
	dst[0] = (char)(0xe0 | v >> 12);
	dst[1] = (char)(0x80 | (v >> 6 & 0x3f));
	dst[2] = (char)(0x80 | (v & 0x3f));
	return 3;
}

/* Behind a backslash. The bytes it means; 0: the text is bad. */
static size_t escape(struct in *in, char dst[3])
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	char c = take(in);
	const char *f = c ? strchr(from, c) : NULL;
	uint32_t v;

	if (f) {
		dst[0] = to[f - from];
		return 1;
	}
	if (c != 'u' || !hex4(in, &v) || v == 0) {
		(void)fail(in);
		return 0;
	}
	return utf8(dst, v);
}

/* dst gets the beginning of a string that does not fit; *ret_fits says so. */
static bool string(struct in *in, char *dst, size_t max, bool *ret_fits)
{
	size_t n = 0;

	*ret_fits = true;
	dst[0] = '\0';
	if (!eat(in, '"'))
		return fail(in);
	for (;;) {
		char c = take(in), out[3] = { c };
		size_t len = 1;

		if (c == '"')
			break;
		if ((unsigned char)c < 0x20)
			return fail(in);
		if (c == '\\')
			len = escape(in, out);
		if (!len)
			return false;
		if (*ret_fits && n + len < max) {
			memcpy(dst + n, out, len);
			n += len;
		} else {
			*ret_fits = false;
		}
	}
	dst[n] = '\0';
	return true;
}

/* ---- values ---- */

static bool value(struct in *in);

static bool down(struct in *in, char c)
{
	if (in->depth >= SPEC_DEPTH || !eat(in, c))
		return fail(in);
	in->depth++;
	return true;
}

/* More in the list or object that ends with this byte; n: what came so far. It ends: the byte is eaten. */
static bool more(struct in *in, char end, size_t n)
{
	if (in->bad)
		return false;
	if (peek(in) == end) {
		in->at++;
		in->depth--;
		return false;
	}
	if (n && !eat(in, ','))
		return fail(in);
	if (n && peek(in) == end)
		return fail(in);
	return true;
}

static bool key(struct in *in, char dst[WORD_MAX])
{
	bool fits;

	if (!string(in, dst, WORD_MAX, &fits))
		return false;
	if (!fits)
		dst[0] = '\0';
	return eat(in, ':') || fail(in);
}

/* A number or one of the three words: as far as it goes. */
static bool word(struct in *in)
{
	size_t from = in->at;

	while (in->at < in->n && in->p[in->at] && strchr("0123456789+-.eEtrufalsn", in->p[in->at]))
		in->at++;
	return in->at > from || fail(in);
}

/* NOLINTNEXTLINE(misc-no-recursion): at most SPEC_DEPTH deep */
static bool object(struct in *in)
{
	char name[WORD_MAX];
	size_t n;

	if (!down(in, '{'))
		return false;
	for (n = 0; more(in, '}', n); n++)
		if (!key(in, name) || !value(in))
			return false;
	return !in->bad;
}

/* NOLINTNEXTLINE(misc-no-recursion): as above */
static bool array(struct in *in)
{
	size_t n;

	if (!down(in, '['))
		return false;
	for (n = 0; more(in, ']', n); n++)
		if (!value(in))
			return false;
	return !in->bad;
}

/* NOLINTNEXTLINE(misc-no-recursion): as above */
static bool value(struct in *in)
{
	char text[WORD_MAX];
	bool fits;

	switch (peek(in)) {
	case '{':
		return object(in);
	case '[':
		return array(in);
	case '"':
		return string(in, text, sizeof(text), &fits);
	default:
		return word(in);
	}
}

/* ---- what is looked at ---- */

static bool list(struct in *in, struct spec_list *l, bool (*one)(struct in *in))
{
	size_t n;

	if (l->there)
		return fail(in);
	if (peek(in) == 'n') /* null */
		return word(in);
	if (!down(in, '['))
		return false;
	for (n = 0; more(in, ']', n); n++)
		if (!one(in))
			return false;
	if (in->bad)
		return false;
	*l = (struct spec_list) { true, n == 0, in->at - 1 };
	return true;
}

static bool variable(struct in *in)
{
	char text[WORD_MAX];
	bool fits;
	size_t i;

	if (!string(in, text, sizeof(text), &fits))
		return false;
	text[strcspn(text, "=")] = '\0';
	for (i = 0; i < in->n_names; i++)
		if (streq(text, in->names[i]))
			in->s->has |= UINT32_C(1) << i;
	return true;
}

static bool mount(struct in *in)
{
	char name[WORD_MAX], where[WORD_MAX] = "", type[WORD_MAX] = "";
	bool fits;
	size_t n;

	if (!down(in, '{'))
		return false;
	for (n = 0; more(in, '}', n); n++) {
		if (!key(in, name))
			return false;
		if (streq(name, "destination") && !string(in, where, WORD_MAX, &fits))
			return false;
		if (streq(name, "type") && !string(in, type, WORD_MAX, &fits))
			return false;
		if (!streq(name, "destination") && !streq(name, "type") && !value(in))
			return false;
	}
	if (streq(where, "/dev"))
		in->s->dev = streq(type, "tmpfs");
	in->s->taken |= streq(where, in->where);
	return !in->bad;
}

static bool root(struct in *in)
{
	char name[WORD_MAX];
	bool fits = true;
	size_t n;

	if (!down(in, '{'))
		return false;
	for (n = 0; more(in, '}', n); n++) {
		if (!key(in, name))
			return false;
		if (!streq(name, "path")) {
			if (!value(in))
				return false;
		} else if (!string(in, in->s->root, sizeof(in->s->root), &fits)) {
			return false;
		} else if (!fits) {
			in->s->root[0] = '\0';
		}
	}
	return !in->bad;
}

static bool process(struct in *in)
{
	char name[WORD_MAX];
	size_t n;

	if (!down(in, '{'))
		return false;
	for (n = 0; more(in, '}', n); n++)
		if (!key(in, name) ||
		    !(streq(name, "env") ? list(in, &in->s->env, variable) : value(in)))
			return false;
	return !in->bad;
}

static bool container(struct in *in)
{
	char name[WORD_MAX];
	size_t n;

	if (!down(in, '{'))
		return false;
	for (n = 0; more(in, '}', n); n++) {
		bool good;

		if (!key(in, name))
			return false;
		if (streq(name, "mounts"))
			good = list(in, &in->s->mounts, mount);
		else if (streq(name, "process"))
			good = process(in);
		else
			good = streq(name, "root") ? root(in) : value(in);
		if (!good)
			return false;
	}
	return !in->bad;
}

int spec_read(struct spec *ret, enum spec_kind kind, const char *text, size_t n,
	      const char *const *names, size_t n_names, const char *where)
{
	struct in in = { .p = text, .n = n, .s = ret, .names = names, .where = where };
	bool good;

	in.n_names = MIN(n_names, (size_t)SPEC_NAMES_MAX);
	memset(ret, 0, sizeof(*ret));
	if (n > SPEC_MAX)
		return -EFBIG;
	good = kind == SPEC_CONTAINER ? container(&in) : process(&in);
	return good && peek(&in) == '\0' && in.at == n ? 0 : -EBADMSG;
}

/* ---- writing ---- */

struct piece {
	const struct spec_list *at;
	const char *text;
};

int spec_write(struct buf *out, const struct spec *s, const char *text, size_t n, const char *mount,
	       const char *env)
{
	struct piece p[2] = { { &s->mounts, mount }, { &s->env, env } };
	size_t done = 0, i;
	int r = 0;

	if (s->env.end < s->mounts.end)
		p[0] = (struct piece) { &s->env, env }, p[1] = (struct piece) { &s->mounts, mount };
	for (i = 0; r == 0 && i < 2; i++) {
		const struct spec_list *l = p[i].at;

		if (!l->there || !p[i].text || !*p[i].text)
			continue;
		r = buf_add(out, text + done, l->end - done);
		if (r == 0)
			r = buf_printf(out, "%s%s", l->empty ? "" : ",", p[i].text);
		done = l->end;
	}
	return r == 0 ? buf_add(out, text + done, n - done) : r;
}

int spec_quote(struct buf *out, const char *s)
{
	int r = buf_add(out, "\"", 1);

	for (; r == 0 && *s; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			r = buf_printf(out, "\\u%04x", (unsigned)*s);
		else if (*s == '"' || *s == '\\')
			r = buf_printf(out, "\\%c", *s);
		else
			r = buf_add(out, s, 1);
	}
	return r == 0 ? buf_add(out, "\"", 1) : r;
}
