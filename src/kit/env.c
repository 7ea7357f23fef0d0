/* Variables: PATH, and what a project's own files say. */
#include "kit/kit.h"

int kit_path(const char *value, const char *there, struct buf *out)
{
	const char *mark = strstr(value, "${PATH}");
	int r;

	if (!mark)
		return buf_add(out, value, strlen(value));
	r = buf_add(out, value, (size_t)(mark - value));
	if (r == 0)
		r = buf_add(out, there, strlen(there));
	mark += strlen("${PATH}");
	return r == 0 ? buf_add(out, mark, strlen(mark)) : r;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* The end of a word at p: is it set there? NAME=, "NAME": , NAME: value, and in Dockerfiles NAME value */
static bool is_set(const char *p, const char *end, bool dockerfile)
{
	if (p < end && (*p == '"' || *p == '\''))
		p++;
	if (p < end && is_blank(*p) && dockerfile)
		return true;
	while (p < end && is_blank(*p))
		p++;
	return p < end && (*p == '=' || *p == ':');
}

static bool is_comment(const char *line, const char *end)
{
	while (line < end && is_blank(*line))
		line++;
	return line < end && (*line == '#' || (*line == '/' && line + 1 < end && line[1] == '/'));
}

static bool line_sets(const char *line, const char *end, const char *name, size_t n)
{
	const char *p = line, *word = line;
	bool dockerfile;

	if (is_comment(line, end))
		return false;
	while (word < end && is_blank(*word))
		word++;
	dockerfile = end - word > 4 && !memcmp(word, "ENV ", 4);
	while ((p = memmem(p, (size_t)(end - p), name, n)) != NULL) {
		bool begins = p == line || (!is_word(p[-1]) && p[-1] != '$' && p[-1] != '{' &&
					    p[-1] != '-' && p[-1] != '.');

		if (begins && (p + n == end || !is_word(p[n])) && is_set(p + n, end, dockerfile))
			return true;
		p += n;
	}
	return false;
}

bool kit_sets(const char *text, size_t n, const char *name)
{
	const char *end = text + n;
	size_t len = strlen(name);

	while (text < end && len) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));

		if (line_sets(text, eol ? eol : end, name, len))
			return true;
		if (!eol)
			break;
		text = eol + 1;
	}
	return false;
}
