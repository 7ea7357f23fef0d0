/* Uses as text, and the file that the text travels in. */
#include <stdio.h>

#include "base/text.h"
#include "policy/cred-priv.h"

static const char first_line[] = "bac-credentials 1";

enum { LINE_MAX = 4096 };

static const char *const places[] = { "headers", "basic", "query", "body" };

/* ---- writing ---- */
int cred_text_begin(struct buf *out)
{
	return buf_printf(out, "%s\n", first_line);
}

/* "headers,basic" */
static void put_where(unsigned where, char ret[64])
{
	size_t i, n = 0;

	(void)snprintf(ret, 64, "-");
	for (i = 0; i < ARRAY_SIZE(places); i++)
		if (where >> i & 1)
			n += (size_t)snprintf(ret + n, 64 - n, "%s%s", n ? "," : "", places[i]);
}

int cred_text_use(struct buf *out, const struct cred_use *u, struct err *e)
{
	struct cred_use use = *u;
	char line[LINE_MAX], where[64];
	struct net_pattern p;
	enum cred_field f;
	size_t n = 0;
	int r;

	r = cred_use_check(u, &p, &f, e);
	if (r < 0)
		return r;
	put_where(u->where, where);
	for (f = 0; f < CRED_FIELDS; f++) {
		const char **text = cred_use_text(&use, f), *s = text ? *text : NULL;

		if (f == CRED_F_KIND)
			s = cred_kind_words[u->kind];
		else if (f == CRED_F_STATE)
			s = cred_state_words[u->state];
		else if (f == CRED_F_WHERE)
			s = where;
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%s", f ? "\t" : "",
				      s ? s : "-");
	}
	r = buf_printf(out, "%s\n", line);
	return r < 0 ? err_errno(e, r, "cannot write down a credential's use") : 0;
}

int cred_text_end(struct buf *out, size_t n_uses)
{
	return buf_printf(out, "end %zu\n", n_uses);
}

/* ---- reading ---- */
/* What is at fault: the message, and the place in the line. */
#define FAULT(e, line, at, ...) \
	(err_set(e, -EINVAL, __VA_ARGS__), err_ctx(e, "column %zu", (size_t)((at) - (line)) + 1))

static uint8_t word(const char *s, const char *const *words, size_t n)
{
	size_t i;

	for (i = 1; i < n; i++)
		if (streq(s, words[i]))
			return (uint8_t)i;
	return 0;
}

/* A place named twice, or out of order, is not how it is written. */
static bool get_where(const char *s, uint8_t *ret)
{
	char again[64];
	unsigned where = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(places); i++)
		if (strstr(s, places[i]))
			where |= 1U << i;
	put_where(where, again);
	*ret = (uint8_t)where;
	return streq(s, again);
}

/* Cut a line into its fields, in place. */
static int split(char *line, char *f[CRED_FIELDS], struct err *e)
{
	char *s = line;
	size_t i;

	for (i = 0; i < CRED_FIELDS; i++) {
		f[i] = s;
		s = strchr(s, '\t');
		if ((i + 1 == CRED_FIELDS) != !s)
			return FAULT(e, line, line, "a use has %d fields", CRED_FIELDS);
		if (s)
			*s++ = '\0';
	}
	return 0;
}

static int fill(struct cred_use *u, char *line, char *f[CRED_FIELDS], struct err *e)
{
	size_t i;

	u->kind = word(f[CRED_F_KIND], cred_kind_words, CRED_KIND_N);
	u->state = word(f[CRED_F_STATE], cred_state_words, CRED_STATE_N);
	if (!get_where(f[CRED_F_WHERE], &u->where))
		return FAULT(e, line, f[CRED_F_WHERE], "not a list of places");
	for (i = 0; i < CRED_FIELDS; i++) {
		const char **text = cred_use_text(u, (enum cred_field)i);

		if (text)
			*text = streq(f[i], "-") ? NULL : f[i];
	}
	return 0;
}

/* One placeholder is one secret: what stands for it must not depend on the order of lines. */
static const struct cred_use *rival(const struct cred_set *s, const struct cred_use *u)
{
	size_t i;

	for (i = 0; u->placeholder && i < s->n; i++)
		if (streq(s->v[i].use.placeholder, u->placeholder) &&
		    !streq(s->v[i].use.key, u->key))
			return &s->v[i].use;
	return NULL;
}

static int grow(struct cred_set *s)
{
	size_t cap = s->cap ? 2 * s->cap : 16;
	void *v;

	if (s->n < s->cap)
		return 0;
	v = reallocarray(s->v, cap, sizeof(*s->v));
	if (!v)
		return -ENOMEM;
	s->v = v;
	s->cap = cap;
	return 0;
}

static int add_use(struct cred_set *s, char *line, struct cred_item *item, struct err *e)
{
	const struct cred_use *other;
	char *f[CRED_FIELDS] = { NULL };
	enum cred_field at;
	int r;

	r = split(line, f, e);
	if (r == 0)
		r = fill(&item->use, line, f, e);
	if (r < 0)
		return r;
	r = cred_use_check(&item->use, &item->pattern, &at, e);
	if (r < 0)
		return err_ctx(e, "column %zu", (size_t)(f[at] - line) + 1);
	if (cred_find(s, item->use.id))
		return FAULT(e, line, line, "there is a use %s already", item->use.id);
	other = rival(s, &item->use);
	if (other)
		return FAULT(e, line, f[CRED_F_PLACEHOLDER],
			     "the placeholder of %s is that of %s too", item->use.id, other->id);
	s->v[s->n++] = *item;
	return 0;
}

static int add_line(struct cred_set *s, const char *text, size_t n, struct err *e)
{
	struct cred_item item = { 0 };
	char *line;
	int r;

	if (s->n == CRED_USES_MAX)
		return err_set(e, -E2BIG, "column 1: there are %d uses at most", CRED_USES_MAX);
	line = grow(s) == 0 ? text_dup(text, n) : NULL;
	if (!line)
		return err_set(e, -ENOMEM, "out of memory");
	item.line = line;
	r = add_use(s, line, &item, e);
	if (r < 0)
		free(line);
	return r;
}

/* The next line without its end: 1, or 0 at the end, or an error. */
static int next_line(const char **text, size_t *n, const char **ret, size_t *ret_n, struct err *e)
{
	const char *eol = *n ? memchr(*text, '\n', *n) : NULL, *nul;

	if (!*n)
		return 0;
	if (!eol)
		return err_set(e, -EINVAL, "column 1: the line does not end");
	*ret = *text;
	*ret_n = (size_t)(eol - *text);
	if (*ret_n > LINE_MAX)
		return err_set(e, -EINVAL, "column %d: a line has %d bytes at most", LINE_MAX + 1,
			       LINE_MAX);
	nul = memchr(*ret, '\0', *ret_n);
	if (nul)
		return FAULT(e, *ret, nul, "a NUL");
	*text += *ret_n + 1;
	*n -= *ret_n + 1;
	return 1;
}

static bool is_line(const char *line, size_t n, const char *want)
{
	return strlen(want) == n && !memcmp(line, want, n);
}

static int read_lines(struct cred_set *s, const char *text, size_t n, struct err *e)
{
	const char *line = NULL;
	char end[32];
	size_t number = 1, len = 0;
	int r;

	r = next_line(&text, &n, &line, &len, e);
	if (r >= 0 && (r == 0 || !is_line(line, len, first_line)))
		r = err_set(e, -EINVAL, "column 1: '%s' stands here", first_line);
	while (r >= 0) {
		number++;
		r = next_line(&text, &n, &line, &len, e);
		if (r == 0)
			r = err_set(e, -EINVAL, "column 1: the text was cut: there is no 'end %zu'",
				    s->n);
		if (r > 0 && len > 4 && !memcmp(line, "end ", 4))
			break;
		if (r > 0)
			r = add_line(s, line, len, e);
	}
	(void)snprintf(end, sizeof(end), "end %zu", s->n);
	if (r > 0 && (!is_line(line, len, end) || n))
		r = err_set(e, -EINVAL, "column 1: '%s' is the last line", end);
	return r < 0 ? err_ctx(e, "line %zu", number) : 0;
}

int cred_text_parse(const char *text, size_t n, struct cred_set **ret, struct err *e)
{
	_cleanup_(cred_set_freep) struct cred_set *s = NULL;
	int r;

	if (n > CRED_TEXT_MAX)
		return err_set(e, -E2BIG, "credentials have %d bytes at most", CRED_TEXT_MAX);
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	r = read_lines(s, text, n, e);
	if (r < 0)
		return r;
	*ret = take_ptr(s);
	return 0;
}

/* ---- the file ---- */
/* "env NAME=value" */
static bool is_env(const char *s, size_t n)
{
	size_t i = 4;

	if (n < 6 || memcmp(s, "env ", 4) != 0 || (s[4] >= '0' && s[4] <= '9'))
		return false;
	while (i < n && (s[i] == '_' || (s[i] >= '0' && s[i] <= '9') ||
			 (s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= 'a' && s[i] <= 'z')))
		i++;
	return i > 4 && i < n && s[i] == '=';
}

int cred_file_split(const char *p, size_t n, size_t *ret_text_n)
{
	const char *all = p, *line;
	size_t len, text_n = 0, envs = 0;
	struct err e;
	int r;

	if (n > CRED_FILE_MAX)
		return -EINVAL;
	while ((r = next_line(&p, &n, &line, &len, &e)) > 0) {
		if (!text_n && len > 4 && !memcmp(line, "end ", 4))
			text_n = (size_t)(p - all);
		else if (text_n && (++envs > CRED_ENVS_MAX || !is_env(line, len)))
			return -EINVAL;
	}
	if (r < 0 || !text_n)
		return -EINVAL;
	*ret_text_n = text_n;
	return 0;
}
