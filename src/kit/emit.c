#include "kit/emit.h"

#include <stdio.h>

static void put(struct emit *m, const void *p, size_t n)
{
	if (m->r == 0)
		m->r = buf_add(m->out, p, n);
}

static void puts_(struct emit *m, const char *s)
{
	put(m, s, strlen(s));
}

static void indent(struct emit *m, unsigned levels)
{
	while (levels-- > 0)
		puts_(m, "  ");
}

/* In double quotes: what both languages escape alike. */
static void quoted(struct emit *m, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	char code[8];

	puts_(m, "\"");
	for (; *p; p++) {
		if (*p == '"' || *p == '\\') {
			put(m, "\\", 1);
			put(m, p, 1);
		} else if (*p == '\n') {
			puts_(m, "\\n");
		} else if (*p == '\t') {
			puts_(m, "\\t");
		} else if (*p < ' ' || *p == 0x7f) {
			(void)snprintf(code, sizeof(code), "\\u%04x", *p);
			puts_(m, code);
		} else if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) {
			(void)snprintf(code, sizeof(code), "\\u%04x", p[1]);
			puts_(m, code);
			p++;
		} else if (p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9)) {
			puts_(m, p[2] == 0xa8 ? "\\u2028" : "\\u2029");
			p += 2;
		} else if (p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf) {
			puts_(m, "\\ufeff");
			p += 2;
		} else {
			put(m, p, 1);
		}
	}
	puts_(m, "\"");
}

/* May it stand without quotes, and be no number and no word that YAML knows? */
static bool is_plain(const char *s)
{
	static const char *const words[] = { "true", "false", "null", "yes", "no", "on", "off",
					     "True", "False", "Null", "Yes", "No", "On", "Off",
					     "TRUE", "FALSE", "NULL", "YES", "NO", "ON", "OFF",
					     "y",    "n",     "Y",    "N" };
	static const char chars[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
	size_t i;

	if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '/') ||
	    s[strspn(s, chars)])
		return false;
	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (streq(s, words[i]))
			return false;
	return true;
}

/* Bytes of UTF-8 that a reader of YAML may take for the end of a line, or not take at all. */
static bool is_odd(const unsigned char *p)
{
	return (*p < ' ' && *p != '\n') || *p == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0) ||
	       (p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9)) ||
	       (p[0] == 0xef && (p[1] == 0xbb || p[1] == 0xb7 || p[1] == 0xbf));
}

/* Can it be a literal block, "|" or "|-"? Several lines, no odd byte, no blank where its indentation would be guessed from. */
static bool is_block(const char *s)
{
	size_t n = strlen(s), i;

	if (n < 2 || !strchr(s, '\n') || *s == ' ' || *s == '\n' ||
	    (s[n - 1] == '\n' && s[n - 2] == '\n'))
		return false;
	for (i = 0; i < n; i++)
		if (is_odd((const unsigned char *)s + i))
			return false;
	return true;
}

static void block(struct emit *m, const char *s)
{
	puts_(m, s[strlen(s) - 1] == '\n' ? "|" : "|-");
	while (*s) {
		size_t n = strcspn(s, "\n");

		puts_(m, "\n");
		if (n)
			indent(m, m->depth);
		put(m, s, n);
		s += n + (s[n] ? 1 : 0);
	}
}

/* A new line, unless this is the first key of a map that an item of a list is: that stands behind the "- ". */
static void begin_line(struct emit *m, unsigned level)
{
	if (!m->list[level] && !m->some[level] && level > 0 && m->list[level - 1])
		return;
	if (m->started)
		puts_(m, "\n");
	indent(m, level);
}

/* What comes before a value: a comma or a line, the indentation, the key. */
static void begin(struct emit *m, const char *key)
{
	unsigned level = m->depth ? m->depth - 1 : 0;

	if (!m->depth)
		return;
	if (m->json && m->some[level])
		puts_(m, ", ");
	if (!m->json)
		begin_line(m, level);
	if (key && (m->json || !is_plain(key)))
		quoted(m, key);
	else
		puts_(m, key ? key : m->json ? "" : "-");
	if (key)
		puts_(m, m->json ? ": " : ":");
	m->some[level] = true;
	m->started = true;
}

static void deeper(struct emit *m, const char *key, bool list)
{
	bool item = !m->json && m->depth && m->list[m->depth - 1];

	begin(m, key);
	if (m->depth == EMIT_DEPTH_MAX) {
		m->r = m->r ? m->r : -E2BIG;
		return;
	}
	m->list[m->depth] = list;
	m->some[m->depth] = false;
	m->depth++;
	if (m->json)
		puts_(m, list ? "[" : "{");
	else if (item && !list)
		puts_(m, " ");
}

void emit_map(struct emit *m, const char *key)
{
	deeper(m, key, false);
}

void emit_list(struct emit *m, const char *key)
{
	deeper(m, key, true);
}

void emit_end(struct emit *m)
{
	bool list, some;

	if (!m->depth)
		return;
	m->depth--;
	list = m->list[m->depth];
	some = m->some[m->depth];
	if (m->json)
		puts_(m, list ? "]" : "}");
	else if (!some)
		puts_(m, list ? " []" : m->depth && m->list[m->depth - 1] ? "{}" : " {}");
	if (!m->json && !m->depth)
		puts_(m, "\n");
}

void emit_text(struct emit *m, const char *key, const char *text)
{
	begin(m, key);
	if (!m->json)
		puts_(m, " ");
	if (!m->json && is_plain(text))
		puts_(m, text);
	else if (!m->json && is_block(text))
		block(m, text);
	else
		quoted(m, text);
}

void emit_word(struct emit *m, const char *key, const char *word)
{
	begin(m, key);
	if (!m->json)
		puts_(m, " ");
	puts_(m, word);
}

void emit_some(struct emit *m, const char *key, const char *text)
{
	if (text && *text)
		emit_text(m, key, text);
}

/* NOLINTNEXTLINE(misc-no-recursion): at most YAML_DEPTH_MAX deep */
void emit_tree(struct emit *m, const char *key, const struct yaml *y)
{
	size_t i;

	if (y->kind == YAML_TEXT) {
		emit_text(m, key, y->text);
		return;
	}
	if (y->kind == YAML_LIST)
		emit_list(m, key);
	else
		emit_map(m, key);
	for (i = 0; i < y->n; i++)
		emit_tree(m, y->kind == YAML_LIST ? NULL : y->v[i].key, &y->v[i]);
	emit_end(m);
}
