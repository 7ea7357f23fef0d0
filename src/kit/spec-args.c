/* args: what a kit lets its user say. */
#include <stdio.h>

#include "kit/args-text.h"
#include "kit/pattern.h"
#include "kit/spec.h"

struct declaration {
	const struct yaml *y;
	char *value, *description, *pattern;
	struct kit_texts choices;
	bool required, has_default;
};

static void default_of(struct take *t, const struct yaml *y, void *into)
{
	struct declaration *d = into;

	d->has_default = true;
	take_any(t, y, &d->value);
}

static void pattern(struct take *t, const struct yaml *y, void *into)
{
	struct declaration *d = into;
	struct err e;

	take_text(t, y, &d->pattern);
	if (!d->pattern)
		return;
	if (pattern_check(d->pattern, &e) < 0) {
		TAKE_FAULT(t, y, "found '%.60s', expected a regular expression of RE2: %s",
			   d->pattern, e.msg);
		d->pattern = NULL;
	}
}

static void choices(struct take *t, const struct yaml *y, void *into)
{
	struct declaration *d = into;
	size_t i, k;

	take_argv(t, y, &d->choices);
	if (y->kind == YAML_LIST && !y->n)
		take_wrong(t, y, "at least one value");
	for (i = 0; i < d->choices.n; i++)
		for (k = 0; k < i; k++)
			if (streq(d->choices.v[i], d->choices.v[k]))
				TAKE_FAULT(t, y, "found '%.60s' twice", d->choices.v[i]);
}

/* May the argument have this value? */
static bool fits(const struct declaration *d, const char *value)
{
	size_t i;

	if (d->pattern)
		return pattern_matches(d->pattern, value) == 1;
	for (i = 0; i < d->choices.n; i++)
		if (streq(d->choices.v[i], value))
			return true;
	return !d->choices.n;
}

static void not_fitting(struct take *t, const struct declaration *d, const char *value)
{
	struct buf list = BUF_INIT(200);
	size_t i;

	for (i = 0; i < d->choices.n; i++)
		if (buf_printf(&list, "%s%.40s", i ? ", " : "", d->choices.v[i]) < 0)
			break;
	if (d->pattern)
		TAKE_FAULT(t, d->y,
			   "found the value '%.60s', expected what the pattern '%.60s' matches",
			   value, d->pattern);
	else
		TAKE_FAULT(t, d->y, "found the value '%.60s', expected one of: %s", value,
			   list.n && buf_str(&list) ? buf_str(&list) : "");
	buf_done(&list);
}

/* What was given for it: for this kit beats for every kit. */
static struct kit_arg *given_for(struct kit_args *given, const char *kit, const char *name)
{
	struct kit_arg *any = NULL;
	size_t i;

	for (i = 0; given && i < given->n; i++) {
		struct kit_arg *one = &given->v[i];

		if (!streq(one->name, name) || (one->kit && !streq(one->kit, kit)))
			continue;
		one->used = true;
		any = !any || one->kit ? one : any;
	}
	return any;
}

static void declared(struct take *t, const struct yaml *y, struct declaration *d)
{
	static const struct take_field f[] = {
		{ "default", NULL, 0 },
		{ "required", take_bool, offsetof(struct declaration, required) },
		{ "description", take_any, offsetof(struct declaration, description) },
		{ "enum", choices, 0 },
		{ "pattern", pattern, 0 },
	};
	const struct yaml *def = yaml_get(y, "default");

	d->y = y;
	take_map(t, y, f, ARRAY_SIZE(f), d);
	if (y->kind != YAML_MAP)
		return;
	if (def && (def->kind != YAML_TEXT || !yaml_is_null(def)))
		default_of(t, def, d);
	if (d->required == d->has_default)
		TAKE_FAULT(t, y, "found %s, expected either 'default' or 'required: true'",
			   d->required ? "both" : "neither");
	if (yaml_get(y, "enum") && yaml_get(y, "pattern"))
		TAKE_FAULT(t, y, "found both 'enum' and 'pattern', expected one of them");
	if (d->value && !fits(d, d->value))
		not_fitting(t, d, d->value);
}

static void one_argument(struct take *t, const struct yaml *y, const char *kit,
			 struct kit_args *given, struct kit_arg *into)
{
	struct declaration d = { 0 };
	struct yaml at = take_key(y);
	struct kit_arg *g;

	if (!kit_args_is_name(y->key, strlen(y->key))) {
		TAKE_FAULT(t, &at, "found '%.60s', expected a name of letters, digits, '_' and '-'",
			   y->key);
		return;
	}
	declared(t, y, &d);
	g = given_for(given, kit, y->key);
	if (g && !fits(&d, g->value))
		not_fitting(t, &d, g->value);
	if (!g && d.required)
		TAKE_FAULT(t, y, "found no value, expected --%s-arg %.60s=VALUE",
			   t->kit->version ? "kit" : "env", y->key);
	*into = (struct kit_arg) { .name = pool_text(t->pool, y->key, strlen(y->key)),
				   .description = d.description,
				   .value = g ? pool_text(t->pool, g->value, strlen(g->value))
					      : d.value };
	if (!into->value)
		into->value = pool_text(t->pool, "", 0);
}

int spec_args(struct take *t, const struct yaml *tree, struct kit_args *given)
{
	const struct yaml *map = take_get(tree, "args"), *name = take_get(tree, "name");
	const char *kit = name && name->text ? name->text : "";
	struct kit_args *a = &t->kit->args;
	size_t i;

	if (!map || !take_is(t, map, YAML_MAP))
		return 0;
	if (map->n > KIT_ARGS_MAX) {
		TAKE_FAULT(t, map, "found %zu arguments, expected %d at most", map->n,
			   KIT_ARGS_MAX);
		return 0;
	}
	a->v = pool_zero(t->pool, map->n, sizeof(*a->v));
	for (i = 0; a->v && i < map->n; i++) {
		one_argument(t, &map->v[i], kit, given, &a->v[a->n]);
		a->n += a->v[a->n].name ? 1 : 0;
	}
	return t->pool->failed ? -ENOMEM : 0;
}
