#include <stdio.h>

#include "net-presets.h"
#include "policy/net-priv.h"

static const struct preset {
	const char *name, *text;
} presets[] = {
	{ "allow-all", allow_all },
	{ "balanced", balanced },
	{ "deny-all", deny_all },
};

const char *net_preset_find(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(presets); i++)
		if (streq(presets[i].name, name))
			return presets[i].text;
	return NULL;
}

struct reader {
	int (*each)(void *arg, const char *group, const char *resource, struct err *e);
	void *arg;
};

enum { GROUP_MAX = 63 };

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Blanks at s[*at], then a word. */
static size_t next_word(const char *s, size_t n, size_t *at, char *ret, size_t max)
{
	size_t start;

	while (*at < n && is_blank(s[*at]))
		(*at)++;
	start = *at;
	while (*at < n && !is_blank(s[*at]))
		(*at)++;
	if (*at - start > max)
		return SIZE_MAX;
	memcpy(ret, s + start, *at - start);
	ret[*at - start] = '\0';
	return *at - start;
}

static int add_resource(const struct reader *r, const char *group, const char *text, struct err *e)
{
	char resource[NET_RESOURCE_MAX + 1];
	int ret;

	ret = net_resource_check(text, resource, sizeof(resource), e);
	return ret < 0 ? ret : r->each(r->arg, group, resource, e);
}

static int add_line(const struct reader *r, const char *s, size_t n, struct err *e)
{
	char group[GROUP_MAX + 1], text[NET_RESOURCE_MAX + 2], more[2];
	size_t at = 0, got, column;
	int ret;

	got = next_word(s, n, &at, group, GROUP_MAX);
	if (!got || group[0] == '#')
		return 0;
	if (got == SIZE_MAX)
		return err_set(e, -EINVAL, "column 1: a group has %d bytes at most", GROUP_MAX);
	got = next_word(s, n, &at, text, NET_RESOURCE_MAX + 1);
	column = got == SIZE_MAX ? at : at - got;
	if (!got || got == SIZE_MAX)
		return err_set(e, -EINVAL, "column %zu: a resource stands behind the group",
			       column + 1);
	if (next_word(s, n, &at, more, 1) != 0)
		return err_set(e, -EINVAL, "column %zu: nothing stands behind the resource",
			       column + got + 2);
	if (text[0] == '+' && !starts_with(text, "+**."))
		return err_set(e, -EINVAL, "column %zu: '+' stands before '**.'", column + 1);
	ret = text[0] == '+' ? add_resource(r, group, text + 4, e) : 0;
	if (ret == 0)
		ret = add_resource(r, group, text + (text[0] == '+'), e);
	return ret < 0 ? err_ctx(e, "column %zu", column + 1) : ret;
}

int net_preset_parse(const char *text, size_t n,
		     int (*each)(void *arg, const char *group, const char *resource, struct err *e),
		     void *arg, struct err *e)
{
	struct reader r = { each, arg };
	size_t line, len;
	int ret;

	for (line = 1; n; line++) {
		const char *eol = memchr(text, '\n', n);

		len = eol ? (size_t)(eol - text) : n;
		ret = memchr(text, '\0', len) ? err_set(e, -EINVAL, "column 1: a NUL")
					      : add_line(&r, text, len, e);
		if (ret < 0)
			return err_ctx(e, "line %zu", line);
		len += eol ? 1 : 0;
		text += len;
		n -= len;
	}
	return 0;
}
