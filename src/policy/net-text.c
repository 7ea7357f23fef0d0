/* A whole policy as text, and the presets. */
#include <stdio.h>

#include "base/buf.h"
#include "policy/net-priv.h"

static const char first_line[] = "bac-net-policy 1";
static const char *const scopes[] = {
	[NET_GLOBAL] = "global", [NET_SANDBOX] = "sandbox", [NET_KIT] = "kit"
};

enum { FIELDS = 6, LINE_MAX = 2048 };

int net_text_begin(struct buf *out)
{
	return buf_printf(out, "%s\n", first_line);
}

static bool is_field(const char *s)
{
	return *s && !s[strcspn(s, "\t\n\r")];
}

int net_text_rule(struct buf *out, const struct net_rule *r)
{
	const char *method = r->method ? r->method : "-", *path = r->path ? r->path : "-";

	if (r->scope < NET_GLOBAL || r->scope > NET_KIT || !is_field(r->id) || !is_field(method) ||
	    !is_field(path) || !is_field(r->resource))
		return -EINVAL;
	return buf_printf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", r->id, scopes[r->scope],
			  r->allow ? "allow" : "deny", method, path, r->resource);
}

int net_text_end(struct buf *out, size_t n_rules)
{
	return buf_printf(out, "end %zu\n", n_rules);
}

static uint8_t scope_of(const char *s)
{
	size_t i;

	for (i = NET_GLOBAL; i < ARRAY_SIZE(scopes); i++)
		if (streq(scopes[i], s))
			return (uint8_t)i;
	return 0;
}

/* Cut a line into its fields, in place. */
static bool split(char *line, char *fields[FIELDS])
{
	size_t i;

	for (i = 0; i < FIELDS; i++) {
		fields[i] = line;
		line = strchr(line, '\t');
		if (i + 1 == FIELDS)
			return !line;
		if (!line)
			return false;
		*line++ = '\0';
	}
	return true;
}

static int add_line(struct net_builder *b, char *line, struct err *e)
{
	char *f[FIELDS];
	struct net_rule r = { 0 };
	int ret;

	if (!split(line, f))
		return err_set(e, -EINVAL, "column 1: a rule has %d fields", FIELDS);
	r.id = f[0];
	r.scope = scope_of(f[1]);
	if (!r.scope)
		return err_set(e, -EINVAL, "column %zu: not a scope", (size_t)(f[1] - line) + 1);
	r.allow = streq(f[2], "allow");
	if (!r.allow && !streq(f[2], "deny"))
		return err_set(e, -EINVAL, "column %zu: neither allow nor deny",
			       (size_t)(f[2] - line) + 1);
	r.method = streq(f[3], "-") ? NULL : f[3];
	r.path = streq(f[4], "-") ? NULL : f[4];
	r.resource = f[5];
	ret = net_builder_add(b, &r, e);
	if (ret == -EEXIST)
		e->code = -EINVAL;
	return ret < 0 ? err_ctx(e, "column %zu", (size_t)(f[5] - line) + 1) : 0;
}

/* The next line, copied with a NUL; 1, 0 at the end, or an error. */
static int next_line(const char **text, size_t *n, char line[LINE_MAX + 1], struct err *e)
{
	const char *eol = *n ? memchr(*text, '\n', *n) : NULL;
	size_t len;

	if (!*n)
		return 0;
	if (!eol)
		return err_set(e, -EINVAL, "column 1: the line does not end");
	len = (size_t)(eol - *text);
	if (len > LINE_MAX)
		return err_set(e, -EINVAL, "column %d: a line has %d bytes at most", LINE_MAX + 1,
			       LINE_MAX);
	if (memchr(*text, '\0', len))
		return err_set(e, -EINVAL, "column %zu: a NUL",
			       (size_t)((const char *)memchr(*text, '\0', len) - *text) + 1);
	memcpy(line, *text, len);
	line[len] = '\0';
	*text += len + 1;
	*n -= len + 1;
	return 1;
}

static bool is_end(const struct net_builder *b, const char *line)
{
	char end[32];

	(void)snprintf(end, sizeof(end), "end %zu", b->n);
	return streq(end, line);
}

static int read_lines(struct net_builder *b, const char *text, size_t n, struct err *e)
{
	char line[LINE_MAX + 1];
	size_t number = 1;
	int r;

	r = next_line(&text, &n, line, e);
	if (r >= 0 && (r == 0 || !streq(line, first_line)))
		r = err_set(e, -EINVAL, "column 1: '%s' stands here", first_line);
	while (r >= 0) {
		number++;
		r = next_line(&text, &n, line, e);
		if (r == 0)
			r = err_set(e, -EINVAL, "column 1: the text was cut: there is no 'end %zu'",
				    b->n);
		if (r > 0 && starts_with(line, "end "))
			break;
		if (r > 0)
			r = add_line(b, line, e);
	}
	if (r > 0 && (!is_end(b, line) || n))
		r = err_set(e, -EINVAL, "column 1: 'end %zu' is the last line", b->n);
	return r < 0 ? err_ctx(e, "line %zu", number) : 0;
}

int net_text_parse(const char *text, size_t n, struct net_policy **ret, struct err *e)
{
	_cleanup_(net_builder_freep) struct net_builder *b = NULL;
	int r;

	if (n > NET_TEXT_MAX)
		return err_set(e, -E2BIG, "a policy has %d bytes at most", NET_TEXT_MAX);
	r = net_builder_new(&b);
	if (r == 0)
		r = read_lines(b, text, n, e);
	else
		err_errno(e, r, "cannot read a policy");
	if (r < 0)
		return r;
	r = net_freeze(b, ret);
	return r < 0 ? err_errno(e, r, "cannot read a policy") : 0;
}
