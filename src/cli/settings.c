/* bac settings. */
#include <jansson.h>
#include <stdio.h>

#include "cli/cmds.h"
#include "cli/ctx.h"

struct settings_args {
	bool json;
};

static const struct opt json_opt[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct settings_args, json), NULL, "print JSON" },
};

static const char *const kind_names[] = {
	[SET_BOOL] = "bool",   [SET_INT] = "int",     [SET_SIZE] = "size",
	[SET_MS] = "duration", [SET_TEXT] = "string",
};

static json_t *one_json(const struct setting *s, const char *value, const char *source)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "key", s->key, "value", value, "source",
			 source, "default", s->standard, "type", kind_names[s->kind], "help",
			 s->help);
}

static int list(struct ctx *c, bool json, struct err *e)
{
	json_t *all = json ? json_array() : NULL;
	const struct setting *s;
	int r = 0;

	if (!json)
		(void)printf("%-22s  %-10s  %-9s  %s\n", "KEY", "VALUE", "SOURCE", "MEANING");
	for (s = settings; s->key && r == 0; s++) {
		_free_ char *v = NULL;
		const char *source;

		r = setting_get(c->state, s->key, &v, &source, e);
		if (r < 0)
			break;
		if (json)
			(void)json_array_append_new(all, one_json(s, v, source));
		else
			(void)printf("%-22s  %-10s  %-9s  %s\n", s->key, *v ? v : "\"\"", source,
				     s->help);
	}
	if (r < 0) {
		json_decref(all);
		return r;
	}
	return json ? print_json(json_pack("{s:o}", "settings", all), e) : flush_out(e);
}

static int get(struct ctx *c, const char *key, bool json, struct err *e)
{
	const struct setting *s = setting_find(key, e);
	_free_ char *v = NULL;
	const char *source;
	int r;

	if (!s)
		return e->code;
	r = setting_get(c->state, key, &v, &source, e);
	if (r < 0)
		return r;
	if (json)
		return print_json(one_json(s, v, source), e);
	(void)printf("%s\n", v);
	return flush_out(e);
}

static int set(struct ctx *c, const char *key, const char *value, struct err *e)
{
	const struct setting *s = setting_find(key, e);
	int r;

	if (!s)
		return e->code;
	r = value ? setting_check(s, value, e) : 0;
	return r < 0 ? r : state_setting_set(c->state, s->key, value, e);
}

static int with_ctx(int (*act)(struct ctx *c, const struct settings_args *o,
			       const struct args *args, struct err *e),
		    void *o, struct args *args, struct err *e)
{
	struct ctx c;
	int r = ctx_open(&c, e);

	if (r == 0)
		r = act(&c, o, args, e);
	ctx_done(&c);
	return r;
}

static int act_list(struct ctx *c, const struct settings_args *o, const struct args *args,
		    struct err *e)
{
	(void)args;
	return list(c, o->json, e);
}

static int act_get(struct ctx *c, const struct settings_args *o, const struct args *args,
		   struct err *e)
{
	return get(c, args->v[0], o->json, e);
}

static int act_set(struct ctx *c, const struct settings_args *o, const struct args *args,
		   struct err *e)
{
	(void)o;
	return set(c, args->v[0], args->v[1], e);
}

static int act_unset(struct ctx *c, const struct settings_args *o, const struct args *args,
		     struct err *e)
{
	(void)o;
	return set(c, args->v[0], NULL, e);
}

static int run_list(void *o, struct args *a, struct err *e)
{
	return with_ctx(act_list, o, a, e);
}

static int run_get(void *o, struct args *a, struct err *e)
{
	return with_ctx(act_get, o, a, e);
}

static int run_set(void *o, struct args *a, struct err *e)
{
	return with_ctx(act_set, o, a, e);
}

static int run_unset(void *o, struct args *a, struct err *e)
{
	return with_ctx(act_unset, o, a, e);
}

static const struct cmd subs[] = {
	{ .name = "ls",
	  .usage = "[OPTIONS]",
	  .brief = "list all settings",
	  .opts = json_opt,
	  .n_opts = 1,
	  .size = sizeof(struct settings_args),
	  .run = run_list },
	{ .name = "list",
	  .usage = "[OPTIONS]",
	  .brief = "the same as ls",
	  .opts = json_opt,
	  .n_opts = 1,
	  .hidden = true,
	  .size = sizeof(struct settings_args),
	  .run = run_list },
	{ .name = "get",
	  .usage = "[OPTIONS] KEY",
	  .brief = "print one setting",
	  .opts = json_opt,
	  .n_opts = 1,
	  .min_args = 1,
	  .max_args = 1,
	  .size = sizeof(struct settings_args),
	  .run = run_get },
	{ .name = "set",
	  .usage = "KEY VALUE",
	  .brief = "change a setting",
	  .min_args = 2,
	  .max_args = 2,
	  .size = sizeof(struct settings_args),
	  .run = run_set },
	{ .name = "unset",
	  .usage = "KEY",
	  .brief = "go back to the default",
	  .min_args = 1,
	  .max_args = 1,
	  .size = sizeof(struct settings_args),
	  .run = run_unset },
	{ .name = NULL },
};

const struct cmd settings_cmd = {
	.name = "settings",
	.usage = "COMMAND",
	.brief = "show and change settings",
	.text = "A value comes from the environment (vm.requireKvm: BAC_VM_REQUIRE_KVM), else "
		"from\n"
		"'bac settings set', else it is the default. A running sandbox keeps what it was "
		"started with.",
	.subs = subs,
};
