#include "kit/take.h"

#include <stdio.h>

#include "base/text.h"
#include "kit/args-text.h"
#include "kit/kit.h"

static const char *found(const struct yaml *y, char *dst, size_t max)
{
	static const char *const words[] = { "nothing", "", "a list", "a map" };

	if (yaml_is_null(y))
		return words[0];
	if (y->kind != YAML_TEXT)
		return words[y->kind];
	if (strstr(y->text, ARGS_TEXT_MARK))
		return "an argument";
	(void)snprintf(dst, max, "'%.60s'", y->text);
	return dst;
}

void take_wrong(struct take *t, const struct yaml *y, const char *expected)
{
	char dst[80];

	TAKE_FAULT(t, y, "found %s, expected %s", found(y, dst, sizeof(dst)), expected);
}

bool take_is(struct take *t, const struct yaml *y, enum yaml_kind kind)
{
	static const char *const words[] = { "nothing", "a text", "a list", "a map" };

	if (y->kind == kind)
		return true;
	take_wrong(t, y, words[kind]);
	return false;
}

const struct yaml *take_get(const struct yaml *map, const char *key)
{
	const struct yaml *y = yaml_get(map, key);

	return y && !yaml_is_null(y) ? y : NULL;
}

void take_missing(struct take *t, const struct yaml *map, const char *key, const char *expected)
{
	TAKE_FAULT(t, map, "found no '%s', expected %s", key, expected);
}

struct yaml take_key(const struct yaml *y)
{
	struct yaml at = *y;

	at.at_line = y->line;
	at.at_column = y->column;
	return at;
}

/* Its fields, as far as they go into a line. */
static void list_fields(const struct take_field *f, size_t n, char *dst, size_t max)
{
	size_t at = 0, i;

	dst[0] = '\0';
	for (i = 0; i < n; i++) {
		if (at + strlen(f[i].key) + 8 > max) {
			(void)snprintf(dst + at, max - at, ", ...");
			return;
		}
		at += (size_t)snprintf(dst + at, max - at, "%s%s", i ? ", " : "", f[i].key);
	}
}

static void unknown(struct take *t, const struct yaml *y, const struct take_field *f, size_t n)
{
	const char *near = text_nearest(y->key, f, n, sizeof(*f)), *moved = take_moved(y->path);
	struct yaml at = take_key(y);
	char list[120];

	list_fields(f, n, list, sizeof(list));
	if (moved)
		TAKE_FAULT(t, &at, "found a field of another schema, expected %s", moved);
	else if (near)
		TAKE_FAULT(t, &at, "found an unknown field, expected '%s'", near);
	else if (take_moved_near(y->path))
		TAKE_FAULT(t, &at, "found an unknown field, expected %s", take_moved_near(y->path));
	else
		TAKE_FAULT(t, &at, "found an unknown field, expected %s%s%s",
			   n > 1 ? "one of " : "'", list, n > 1 ? "" : "'");
}

void take_map(struct take *t, const struct yaml *y, const struct take_field *f, size_t n,
	      void *into)
{
	size_t i, k;

	if (!take_is(t, y, YAML_MAP))
		return;
	for (i = 0; i < y->n; i++) {
		const struct yaml *one = &y->v[i];

		for (k = 0; k < n && !streq(f[k].key, one->key); k++)
			;
		if (k == n)
			unknown(t, one, f, n);
		else if (f[k].read && !yaml_is_null(one))
			f[k].read(t, one, (char *)into + f[k].off);
	}
}

void *take_list(struct take *t, const struct yaml *y, size_t size,
		void (*one)(struct take *t, const struct yaml *y, void *into), size_t *ret_n)
{
	char *v;
	size_t i;

	if (!take_is(t, y, YAML_LIST) || !y->n)
		return NULL;
	if (y->n > KIT_ITEMS_MAX) {
		TAKE_FAULT(t, y, "found %zu items, expected %d at most", y->n, KIT_ITEMS_MAX);
		return NULL;
	}
	v = pool_zero(t->pool, y->n, size);
	for (i = 0; v && i < y->n; i++)
		one(t, &y->v[i], v + i * size);
	*ret_n = v ? y->n : 0;
	return v;
}

/* ---- readers of one value ---- */
void take_any(struct take *t, const struct yaml *y, void *into)
{
	if (y->kind != YAML_TEXT)
		take_wrong(t, y, "a text");
	else
		*(char **)into = pool_text(t->pool, y->text, strlen(y->text));
}

void take_text(struct take *t, const struct yaml *y, void *into)
{
	if (y->kind != YAML_TEXT || !*y->text)
		take_wrong(t, y, "a text");
	else
		take_any(t, y, into);
}

void take_bool(struct take *t, const struct yaml *y, void *into)
{
	if (y->kind == YAML_TEXT && (streq(y->text, "true") || streq(y->text, "false")))
		*(bool *)into = y->text[0] == 't';
	else
		take_wrong(t, y, "true or false");
}

void take_size(struct take *t, const struct yaml *y, void *into)
{
	uint64_t n;

	if (y->kind != YAML_TEXT || text_size(y->text, &n) < 0 || !n)
		take_wrong(t, y, "a size as '512m' or '8g'");
	else
		*(uint64_t *)into = n;
}

void take_mode(struct take *t, const struct yaml *y, void *into)
{
	const char *s = y->kind == YAML_TEXT ? y->text : "";
	size_t n = strlen(s);
	unsigned mode = 0;
	size_t i;

	if (n > 2 && s[0] == '0' && s[1] == 'o')
		s += 2;
	n = strlen(s);
	for (i = 0; i < n && s[i] >= '0' && s[i] <= '7'; i++)
		mode = mode * 8 + (unsigned)(s[i] - '0');
	if (n < 3 || n > 5 || i < n || mode > 07777)
		take_wrong(t, y, "an octal mode as '0644'");
	else
		*(unsigned *)into = mode;
}

static void word(struct take *t, const struct yaml *y, void *into)
{
	if (yaml_is_null(y))
		take_wrong(t, y, "a text");
	else
		take_text(t, y, into);
}

static void argument(struct take *t, const struct yaml *y, void *into)
{
	if (yaml_is_null(y))
		take_wrong(t, y, "a text");
	else
		take_any(t, y, into);
}

/* What could not be read is left out, so that no NULL is in it; the array has one at its end. */
static void texts(struct take *t, const struct yaml *y, struct kit_texts *into,
		  void (*one)(struct take *t, const struct yaml *y, void *into))
{
	size_t n = 0, i, k = 0;
	char **v = take_list(t, y, sizeof(*v), one, &n), **all;

	all = pool_zero(t->pool, n + 1, sizeof(*all));
	for (i = 0; all && i < n; i++)
		if (v[i])
			all[k++] = v[i];
	*into = (struct kit_texts) { .v = all, .n = k };
}

void take_words(struct take *t, const struct yaml *y, void *into)
{
	texts(t, y, into, word);
}

void take_argv(struct take *t, const struct yaml *y, void *into)
{
	texts(t, y, into, argument);
}
