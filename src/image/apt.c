/* sources.list(5). Third parties also use the name of Debian's suite and the component main, so an entry
 * must in addition end in "/debian" (or be a snapshot of it), as all mirrors of Debian do. */
#include "image/apt.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#include "base/text.h"

enum { WORD_MAX = IMAGE_URI_MAX, WORDS_MAX = 32 };

/* The words of one entry, each field a list. */
struct words {
	char v[WORDS_MAX][WORD_MAX];
	size_t n;
};

struct entry {
	struct words types, uris, suites, components;
	bool disabled;
};

static void words_add(struct words *w, const char *p, size_t n)
{
	if (w->n == WORDS_MAX || n == 0 || n >= WORD_MAX)
		return;
	memcpy(w->v[w->n], p, n);
	w->v[w->n++][n] = '\0';
}

static void words_split(struct words *w, const char *p, size_t len)
{
	size_t i = 0, start;

	while (i < len) {
		while (i < len && isspace((unsigned char)p[i]))
			i++;
		start = i;
		while (i < len && !isspace((unsigned char)p[i]))
			i++;
		words_add(w, p + start, i - start);
	}
}

static bool words_have(const struct words *w, const char *s)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		if (streq(w->v[i], s))
			return true;
	return false;
}

bool image_apt_is_uri(const char *uri)
{
	const char *p;

	if (!starts_with(uri, "http://") && !starts_with(uri, "https://"))
		return false;
	for (p = uri; *p; p++)
		if (*p <= ' ' || *p >= 0x7f || strchr("[]\"'\\`$;", *p))
			return false;
	return strlen(uri) < IMAGE_URI_MAX;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	while (n && s[n - 1] == '/')
		n--;
	return n >= m && memcmp(s + n - m, end, m) == 0;
}

static void take(struct image_apt *a, const struct entry *en, const char *codename)
{
	char security[64];
	size_t i;

	(void)snprintf(security, sizeof(security), "%.40s-security", codename);
	if (en->disabled || !words_have(&en->types, "deb") || !words_have(&en->components, "main"))
		return;
	for (i = 0; i < en->uris.n; i++) {
		const char *uri = en->uris.v[i];
		bool list = starts_with(uri, "mirror+file:");

		if (!list && !image_apt_is_uri(uri))
			continue;
		if (words_have(&en->suites, security) && strstr(uri, "debian-security")) {
			if (!a->security[0])
				(void)!text_copy(a->security, sizeof(a->security), uri);
		} else if (words_have(&en->suites, codename) &&
			   (ends_with(uri, "/debian") || strstr(uri, "/archive/debian/") ||
			    (list && strstr(uri, "debian")))) {
			if (!a->mirror[0])
				(void)!text_copy(a->mirror, sizeof(a->mirror), uri);
		}
	}
}

/* deb [options] URI suite component... */
static void read_line(struct image_apt *a, const char *line, size_t n, const char *codename,
		      struct entry *en)
{
	const char *hash = memchr(line, '#', n), *open, *close;
	struct words w = { .n = 0 };
	size_t i;

	*en = (struct entry) { 0 };
	if (hash)
		n = (size_t)(hash - line);
	open = memchr(line, '[', n);
	close = open ? memchr(open, ']', n - (size_t)(open - line)) : NULL;
	if (open && !close)
		return;
	words_split(&w, line, open ? (size_t)(open - line) : n);
	if (close)
		words_split(&w, close + 1, n - (size_t)(close + 1 - line));
	if (w.n < 4)
		return;
	words_add(&en->types, w.v[0], strlen(w.v[0]));
	words_add(&en->uris, w.v[1], strlen(w.v[1]));
	words_add(&en->suites, w.v[2], strlen(w.v[2]));
	for (i = 3; i < w.n; i++)
		words_add(&en->components, w.v[i], strlen(w.v[i]));
	take(a, en, codename);
}

static bool is_field(const char *line, size_t n, const char *name)
{
	return n > strlen(name) && strncasecmp(line, name, strlen(name)) == 0 &&
	       line[strlen(name)] == ':';
}

static struct words *field_of(struct entry *en, const char *line, size_t n)
{
	static const struct {
		const char *name;
		size_t off;
	} fields[] = {
		{ "Types", offsetof(struct entry, types) },
		{ "URIs", offsetof(struct entry, uris) },
		{ "Suites", offsetof(struct entry, suites) },
		{ "Components", offsetof(struct entry, components) },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fields); i++)
		if (is_field(line, n, fields[i].name))
			return (struct words *)((char *)en + fields[i].off);
	return NULL;
}

/* One line of a stanza; *last is the field that a continued line belongs to. */
static void read_field(struct entry *en, const char *line, size_t n, struct words **last)
{
	const char *colon = memchr(line, ':', n);

	if (line[0] == '#')
		return;
	if (line[0] == ' ' || line[0] == '\t') {
		if (*last)
			words_split(*last, line, n);
		return;
	}
	*last = field_of(en, line, n);
	if (*last)
		words_split(*last, colon + 1, n - (size_t)(colon + 1 - line));
	else if (is_field(line, n, "Enabled"))
		en->disabled = memmem(line, n, "no", 2) || memmem(line, n, "false", 5);
}

void image_apt_read(struct image_apt *a, const char *text, bool deb822, const char *codename)
{
	_free_ struct entry *en = calloc(1, sizeof(*en));
	struct words *last = NULL;

	while (en && *text) {
		size_t n = strcspn(text, "\n"), used = n;

		while (n && isspace((unsigned char)text[n - 1]))
			n--;
		if (!deb822) {
			read_line(a, text, n, codename, en);
		} else if (n == 0) {
			take(a, en, codename);
			*en = (struct entry) { 0 };
			last = NULL;
		} else {
			read_field(en, text, n, &last);
		}
		text += used + (text[used] == '\n');
	}
	if (en && deb822)
		take(a, en, codename);
}

/* The value of NAME=value in the form of os-release(5) into dst. */
static bool release_value(const char *text, const char *name, char *dst, size_t max)
{
	size_t len = strlen(name), n;

	while (*text) {
		n = strcspn(text, "\n");
		if (n > len && strncmp(text, name, len) == 0 && text[len] == '=') {
			const char *v = text + len + 1;
			size_t m = n - len - 1;

			if (m >= 2 && (*v == '"' || *v == '\'') && v[m - 1] == *v) {
				v++;
				m -= 2;
			}
			if (m == 0 || m >= max)
				return false;
			memcpy(dst, v, m);
			dst[m] = '\0';
			return true;
		}
		text += n + (text[n] == '\n');
	}
	return false;
}

bool image_apt_codename(const char *os_release, char *dst, size_t max)
{
	char id[32];

	return release_value(os_release, "ID", id, sizeof(id)) && streq(id, "debian") &&
	       release_value(os_release, "VERSION_CODENAME", dst, max);
}
