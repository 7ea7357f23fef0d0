#include "policy/gitconfig-read.h"

#include "policy/gitconfig.h"

struct reader {
	const uint8_t *p;
	size_t n, at;
	unsigned line;
	bool eof;
	char name[GITCONFIG_KEY_MAX]; /* the section and its dot, then the key behind it */
	size_t name_n;
	bool name_long;
	char *value; /* n + 1 bytes */
};

static bool is_blank(int c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_alpha(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_key(int c)
{
	return is_alpha(c) || (c >= '0' && c <= '9') || c == '-';
}

static int lower(int c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* The end is a final newline, as often as it is read. */
static int next(struct reader *r)
{
	int c;

	if (r->at == r->n) {
		r->eof = true;
		return '\n';
	}
	c = r->p[r->at++];
	if (c == '\r' && r->at < r->n && r->p[r->at] == '\n')
		c = r->p[r->at++];
	if (c == '\n')
		r->line++;
	return c;
}

static void put_name(struct reader *r, int c)
{
	if (r->name_n == sizeof(r->name) - 1)
		r->name_long = true;
	else
		r->name[r->name_n++] = (char)c;
}

/* Behind '[section ': "subsection"]. */
static bool read_subsection(struct reader *r, int c)
{
	do {
		if (c == '\n')
			return false;
		c = next(r);
	} while (is_blank(c));
	if (c != '"')
		return false;
	put_name(r, '.');
	for (;;) {
		c = next(r);
		if (c == '\n')
			return false;
		if (c == '"')
			break;
		if (c == '\\') {
			c = next(r);
			if (c == '\n')
				return false;
		}
		put_name(r, c);
	}
	return next(r) == ']';
}

/* Behind '['. */
static bool read_section(struct reader *r)
{
	int c;

	r->name_n = 0;
	r->name_long = false;
	for (;;) {
		c = next(r);
		if (r->eof)
			return false;
		if (c == ']')
			return r->name_n > 0;
		if (is_blank(c))
			return read_subsection(r, c);
		if (!is_key(c) && c != '.')
			return false;
		put_name(r, lower(c));
	}
}

/* What a backslash and c stand for; -1 if nothing. */
static int unescape(int c)
{
	static const char from[] = "tbn\\\"", to[] = "\t\b\n\\\"";
	const char *at = c ? strchr(from, c) : NULL;

	return at ? to[at - from] : -1;
}

/* The byte that a backslash stands for, or CONTINUED at the end of a line; -1: nothing. */
enum { CONTINUED = -2 };

static int read_escape(struct reader *r)
{
	int c = next(r);

	return c == '\n' ? CONTINUED : unescape(c);
}

static void skip_comment(struct reader *r)
{
	while (next(r) != '\n')
		;
}

static bool read_value(struct reader *r)
{
	bool quoted = false;
	size_t n = 0, trim = 0;
	int c;

	while ((c = next(r)) != '\n') {
		if (is_blank(c) && !quoted) {
			trim = trim ? trim : n;
			if (n)
				r->value[n++] = (char)c;
			continue;
		}
		if (!quoted && (c == ';' || c == '#')) {
			skip_comment(r);
			break;
		}
		trim = 0;
		if (c == '"') {
			quoted = !quoted;
			continue;
		}
		if (c == '\\')
			c = read_escape(r);
		if (c == CONTINUED)
			continue;
		if (c < 0)
			return false;
		r->value[n++] = (char)c;
	}
	r->value[trim ? trim : n] = '\0';
	return !quoted;
}

/* What is not the subsection in lower case: git compares the rest so, however it came in. */
static void fold(char *key)
{
	char *last = strrchr(key, '.');

	for (; *key && *key != '.'; key++)
		*key = (char)lower((unsigned char)*key);
	for (; last && *last; last++)
		*last = (char)lower((unsigned char)*last);
}

/* A key of which c is the first letter. GITCONFIG_READ and the like, or what fn said. */
static int read_entry(struct reader *r, int c, int (*fn)(void *, const struct gitconfig_entry *),
		      void *user)
{
	struct gitconfig_entry entry = { NULL };
	char key[sizeof(r->name)];

	do {
		put_name(r, lower(c));
		c = next(r);
	} while (!r->eof && is_key(c));
	while (c == ' ' || c == '\t')
		c = next(r);
	if (c != '\n') {
		if (c != '=' || !read_value(r))
			return GITCONFIG_READ_BAD;
		entry.value = r->value;
	}
	if (r->name_long)
		return GITCONFIG_READ_LONG;
	memcpy(key, r->name, r->name_n);
	key[r->name_n] = '\0';
	fold(key);
	entry.key = key;
	entry.line = r->line - !r->eof;
	return fn(user, &entry);
}

/* False if there is only a part of the mark. */
static bool skip_mark(struct reader *r)
{
	static const char mark[] = "\xef\xbb\xbf";
	size_t n;

	for (n = 0; n < 3 && n < r->n && r->p[n] == (uint8_t)mark[n]; n++)
		;
	r->at = n;
	return n == 0 || n == 3;
}

static int read_all(struct reader *r, int (*fn)(void *, const struct gitconfig_entry *), void *user)
{
	bool comment = false;
	size_t base = 0;
	int c, ans;

	if (!skip_mark(r))
		return GITCONFIG_READ_BAD;
	for (;;) {
		c = next(r);
		if (c == '\n') {
			if (r->eof)
				return GITCONFIG_READ;
			comment = false;
		} else if (comment || is_blank(c)) {
			continue;
		} else if (c == '#' || c == ';') {
			comment = true;
		} else if (c == '[') {
			if (!read_section(r))
				return GITCONFIG_READ_BAD;
			put_name(r, '.');
			base = r->name_n;
		} else if (is_alpha(c)) {
			r->name_n = base;
			ans = read_entry(r, c, fn, user);
			if (ans)
				return ans;
		} else {
			return GITCONFIG_READ_BAD;
		}
	}
}

int gitconfig_read(const void *p, size_t n,
		   int (*fn)(void *user, const struct gitconfig_entry *entry), void *user,
		   unsigned *ret_line)
{
	struct reader r = { .p = p, .n = n, .line = 1 };
	_free_ char *value = malloc(n + 1);
	int ans;

	if (!value)
		return -ENOMEM;
	r.value = value;
	ans = read_all(&r, fn, user);
	/* what ends too early is to blame, not the line behind it */
	*ret_line = r.line - (ans == GITCONFIG_READ_BAD && !r.eof && r.p[r.at - 1] == '\n');
	return ans;
}
