#include "policy/path-file.h"

#include "paths.h"

static const struct word {
	const char *name;
	enum path_rule_kind kind;
} words[] = {
	{ "hide", PATH_HIDE },
	{ "protect", PATH_PROTECT },
	{ "allow", PATH_ALLOW },
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static const struct word *word_find(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (strlen(words[i].name) == n && !memcmp(words[i].name, s, n))
			return &words[i];
	return NULL;
}

/* A line without blanks at its ends, not empty. column is that of its first byte. */
static int add_rule(struct path_builder *b, const char *s, size_t n, size_t column,
		    const char *origin, struct err *e)
{
	char pattern[PATH_PATTERN_MAX + 2];
	const struct word *word;
	size_t at = 0;

	while (at < n && !is_blank(s[at]))
		at++;
	word = word_find(s, at);
	if (!word)
		return err_set(e, -EINVAL, "column %zu: '%.*s' is none of hide, protect, allow",
			       column, (int)MIN(at, (size_t)40), s);
	while (at < n && is_blank(s[at]))
		at++;
	n = MIN(n - at, sizeof(pattern) - 1);
	memcpy(pattern, s + at, n);
	pattern[n] = '\0';
	if (path_builder_add(b, word->kind, pattern, origin, e) == 0)
		return 0;
	return err_ctx(e, "column %zu", column + at);
}

static int add_line(struct path_builder *b, const char *s, size_t n, const char *origin,
		    struct err *e)
{
	size_t at = 0;

	if (memchr(s, '\0', n))
		return err_set(e, -EINVAL, "column %zu: a NUL is part of no name",
			       (size_t)((const char *)memchr(s, '\0', n) - s) + 1);
	if (n && s[n - 1] == '\r')
		n--;
	while (n && is_blank(s[n - 1]))
		n--;
	while (at < n && is_blank(s[at]))
		at++;
	if (at == n || s[at] == '#')
		return 0;
	return add_rule(b, s + at, n - at, at + 1, origin, e);
}

int path_file_add(struct path_builder *b, const char *text, size_t n, const char *origin,
		  struct err *e)
{
	const char *end = text + n, *eol;
	size_t line;
	int r;

	if (n > PATH_FILE_MAX)
		return err_set(e, -EINVAL, "path rules: a file has %lu bytes at most",
			       PATH_FILE_MAX);
	for (line = 1; text < end; text = eol + 1, line++) {
		eol = memchr(text, '\n', (size_t)(end - text));
		if (!eol)
			eol = end;
		r = add_line(b, text, (size_t)(eol - text), origin, e);
		if (r < 0)
			return err_ctx(e, "line %zu", line);
	}
	return 0;
}

int path_file_add_defaults(struct path_builder *b, struct err *e)
{
	return path_file_add(b, paths, sizeof(paths) - 1, "default", e);
}
