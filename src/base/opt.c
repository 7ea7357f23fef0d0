/* The one option parser, and the help that is printed from the same tables. */
#include "base/opt.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"

static int put_list(struct opt_list *l, const char *val, const struct opt *o, struct err *e)
{
	const char **v;

	if (l->n >= OPT_LIST_MAX)
		return err_set(e, -EINVAL, "--%s was given more than %d times", o->name,
			       OPT_LIST_MAX);
	v = realloc(l->v, (l->n + 1) * sizeof(*v));
	if (!v)
		return err_errno(e, -ENOMEM, "--%s", o->name);
	l->v = v;
	l->v[l->n++] = val;
	return 0;
}

static int fault(const struct opt *o, const char *val, int r, const char *what, struct err *e)
{
	if (r == -ERANGE)
		return err_set(e, -EINVAL, "--%s: '%s' is too large", o->name, val);
	return err_set(e, -EINVAL, "--%s: '%s' is not %s", o->name, val, what);
}

static int put_value(const struct opt *o, void *into, const char *val, struct err *e)
{
	void *slot = (char *)into + o->off;
	uint64_t num;
	int r;

	switch (o->kind) {
	case OPT_FLAG:
		*(bool *)slot = true;
		return 0;
	case OPT_STR:
		*(const char **)slot = val;
		return 0;
	case OPT_LIST:
		return put_list(slot, val, o, e);
	case OPT_U32:
		r = text_u64(val, UINT32_MAX, &num);
		if (r < 0)
			return fault(o, val, r, "a number", e);
		*(uint32_t *)slot = (uint32_t)num;
		return 0;
	case OPT_SIZE:
		r = text_size(val, slot);
		return r < 0 ? fault(o, val, r, "a size (as in 512m or 8g)", e) : 0;
	case OPT_MS:
		r = text_duration_ms(val, slot);
		return r < 0 ? fault(o, val, r, "a duration (as in 90s or 1h30m)", e) : 0;
	}
	return err_set(e, -EINVAL, "--%s: unknown kind", o->name);
}

static const struct opt *find_long(const struct cmd *c, const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < c->n_opts; i++)
		if (strlen(c->opts[i].name) == len && !memcmp(c->opts[i].name, name, len))
			return &c->opts[i];
	return NULL;
}

static const struct opt *find_short(const struct cmd *c, char letter)
{
	size_t i;

	for (i = 0; i < c->n_opts; i++)
		if (c->opts[i].letter == letter)
			return &c->opts[i];
	return NULL;
}

static int unknown(const struct cmd *c, const char *name, size_t len, struct err *e)
{
	char word[64];
	const char *near;

	(void)snprintf(word, sizeof(word), "%.*s", (int)MIN(len, sizeof(word) - 1), name);
	near = text_nearest(word, c->opts, c->n_opts, sizeof(*c->opts));
	if (near)
		return err_set(e, -EINVAL, "unknown option '--%s' (did you mean '--%s'?)", word,
			       near);
	return err_set(e, -EINVAL, "unknown option '--%s' (see 'bac %s --help')", word, c->name);
}

/* --name, --name=value, --name value. *pos moves on where a value is taken. */
static int long_option(const struct cmd *c, void *into, char **argv, size_t *pos, struct err *e)
{
	const char *name = argv[*pos] + 2, *val = NULL;
	size_t len = strcspn(name, "=");
	const struct opt *o = find_long(c, name, len);

	if (!o)
		return unknown(c, name, len, e);
	if (name[len])
		val = name + len + 1;
	if (o->kind == OPT_FLAG) {
		if (val && !streq(val, "true"))
			return err_set(e, -EINVAL, "--%s takes no value", o->name);
		return put_value(o, into, NULL, e);
	}
	if (!val) {
		val = argv[*pos + 1];
		if (!val)
			return err_set(e, -EINVAL, "--%s needs a value (%s)", o->name, o->arg);
		(*pos)++;
	}
	return put_value(o, into, val, e);
}

/* -x, -xyz (flags), -xVALUE, -x VALUE. */
static int short_options(const struct cmd *c, void *into, char **argv, size_t *pos, struct err *e)
{
	const char *p = argv[*pos] + 1;

	for (; *p; p++) {
		const struct opt *o = find_short(c, *p);
		int r;

		if (!o)
			return err_set(e, -EINVAL, "unknown option '-%c' (see 'bac %s --help')", *p,
				       c->name);
		if (o->kind == OPT_FLAG) {
			r = put_value(o, into, NULL, e);
			if (r < 0)
				return r;
			continue;
		}
		if (p[1])
			return put_value(o, into, p + 1 + (p[1] == '='), e);
		if (!argv[*pos + 1])
			return err_set(e, -EINVAL, "-%c needs a value (%s)", *p, o->arg);
		(*pos)++;
		return put_value(o, into, argv[*pos], e);
	}
	return 0;
}

static int count_args(const struct cmd *c, const struct args *a, struct err *e)
{
	if (a->n < c->min_args)
		return err_set(e, -EINVAL, "%s: too few arguments (usage: bac %s %s)", c->name,
			       c->name, c->usage);
	if (a->n > c->max_args)
		return err_set(e, -EINVAL, "%s: unexpected argument '%s' (usage: bac %s %s)",
			       c->name, a->v[c->max_args], c->name, c->usage);
	return 0;
}

int opts_parse(const struct cmd *c, void *into, char **argv, struct args *ret, struct err *e)
{
	struct args a = { .v = argv, .dashes = SIZE_MAX };
	size_t pos;
	int r;

	for (pos = 0; argv[pos]; pos++) {
		char *arg = argv[pos];
		bool plain = a.dashes != SIZE_MAX || (c->stop_at_first && a.n);

		if (!plain && streq(arg, "--")) {
			a.dashes = a.n;
			continue;
		}
		if (plain || arg[0] != '-' || !arg[1]) {
			argv[a.n++] = arg;
			continue;
		}
		r = arg[1] == '-' ? long_option(c, into, argv, &pos, e)
				  : short_options(c, into, argv, &pos, e);
		if (r < 0)
			return r;
	}
	argv[a.n] = NULL;
	r = count_args(c, &a, e);
	if (r < 0)
		return r;
	*ret = a;
	return 0;
}

void opts_done(const struct cmd *c, void *into)
{
	size_t i;

	for (i = 0; i < c->n_opts; i++) {
		struct opt_list *l = (void *)((char *)into + c->opts[i].off);

		if (c->opts[i].kind != OPT_LIST)
			continue;
		free((void *)l->v);
		*l = (struct opt_list) { 0 };
	}
}

bool opts_wants_help(const struct cmd *c, char **argv)
{
	size_t pos;

	for (pos = 0; argv[pos]; pos++) {
		const char *arg = argv[pos];
		const struct opt *o = NULL;

		if (streq(arg, "--"))
			return false;
		if (streq(arg, "-h") || streq(arg, "--help"))
			return true;
		if (arg[0] != '-' || !arg[1]) {
			if (c->stop_at_first)
				return false;
			continue;
		}
		if (arg[1] == '-' && !strchr(arg, '='))
			o = find_long(c, arg + 2, strlen(arg + 2));
		else if (arg[1] != '-' && !arg[2])
			o = find_short(c, arg[1]);
		if (o && o->kind != OPT_FLAG && argv[pos + 1])
			pos++;
	}
	return false;
}

const struct cmd *cmd_find(const struct cmd *list, const char *name, const char *parent,
			   struct err *e)
{
	const char *near;
	size_t n;

	for (n = 0; list[n].name; n++)
		if (streq(list[n].name, name))
			return &list[n];
	near = text_nearest(name, list, n, sizeof(*list));
	if (near)
		(void)err_set(e, -EINVAL, "unknown command '%s%.60s' (did you mean '%s'?)", parent,
			      name, near);
	else
		(void)err_set(e, -EINVAL, "unknown command '%s%.60s' (see 'bac --help')", parent,
			      name);
	return NULL;
}

static int help_options(struct buf *out, const struct cmd *c)
{
	size_t i;
	int r;

	r = buf_printf(out, "\nOptions:\n");
	for (i = 0; i < c->n_opts && r == 0; i++) {
		const struct opt *o = &c->opts[i];
		char left[64];

		(void)snprintf(left, sizeof(left), "%c%c%s--%s%s%s", o->letter ? '-' : ' ',
			       o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name,
			       o->arg ? " " : "", o->arg ? o->arg : "");
		if (strlen(left) > 28)
			r = buf_printf(out, "  %s\n  %28s  %s\n", left, "", o->help);
		else
			r = buf_printf(out, "  %-28s  %s\n", left, o->help);
	}
	if (r == 0)
		r = buf_printf(out, "  %-28s  %s\n", "-h, --help", "show this text");
	return r;
}

int cmd_help(struct buf *out, const char *path, const struct cmd *c)
{
	const struct cmd *s;
	int r;

	r = buf_printf(out, "Usage: %s %s\n\n%c%s.\n", path, c->usage,
		       c->brief[0] >= 'a' && c->brief[0] <= 'z' ? c->brief[0] - 32 : c->brief[0],
		       c->brief + 1);
	if (r == 0 && c->text)
		r = buf_printf(out, "\n%s\n", c->text);
	if (r == 0 && c->subs) {
		r = buf_printf(out, "\nCommands:\n");
		for (s = c->subs; s->name && r == 0; s++)
			if (!s->hidden)
				r = buf_printf(out, "  %-12s  %s\n", s->name, s->brief);
	}
	return r == 0 ? help_options(out, c) : r;
}
