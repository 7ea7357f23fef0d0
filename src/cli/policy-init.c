/* bac policy init and reset, and the question of the first run. */
#include <stdio.h>
#include <unistd.h>

#include "cli/cmds.h"
#include "cli/net-push.h"
#include "cli/policy.h"
#include "io/fd.h"

static const struct choice {
	const char *name, *meaning;
} choices[] = {
	{ "allow-all", "everything public; private and metadata addresses stay shut" },
	{ "balanced", "what agents need for their work: models, registries, code hosts" },
	{ "deny-all", "nothing, until you allow it" },
};

static int take(void *arg, const char *group, const char *resource, struct err *e)
{
	struct net_rule rule = { .scope = NET_GLOBAL, .allow = true, .resource = resource };

	return rules_append(arg, &rule, "", "default", group, e);
}

static int choose(struct ctx *c, const char *preset, struct err *e)
{
	const char *text = net_preset_find(preset);
	struct box_rules rules = { 0 };
	_close_ int lock = -1;
	int r;

	if (!text)
		return err_set(e, -EINVAL, "'%.40s' is none of allow-all, balanced, deny-all",
			       preset);
	r = rules_lock(c->state, &lock, e);
	if (r == 0)
		r = net_preset_parse(text, strlen(text), take, &rules, e);
	if (r == 0)
		r = rules_init(c->state, preset, &rules, e);
	if (r == 0)
		r = net_push(c, NULL, e);
	rules_done(&rules);
	return r;
}

int policy_run_init(void *opt, struct args *args, struct err *e)
{
	struct ctx c;
	int r = ctx_open(&c, e);

	(void)opt;
	if (r == 0)
		r = choose(&c, args->v[0], e);
	ctx_done(&c);
	if (r < 0)
		return r;
	(void)printf("The network policy is %s. See it with: bac policy ls\n", args->v[0]);
	return flush_out(e);
}

/* The number or name that the user typed; NULL: neither. */
static const char *meant(const char *answer)
{
	size_t i;

	if (!*answer)
		return "balanced";
	for (i = 0; i < ARRAY_SIZE(choices); i++)
		if (streq(answer, choices[i].name) || (answer[0] == (char)('1' + i) && !answer[1]))
			return choices[i].name;
	return NULL;
}

static const char *pick(void)
{
	char answer[32];
	const char *name;
	size_t i;

	(void)fprintf(stderr,
		      "What may sandboxes reach in the network? Rules can be added at any time.\n");
	for (i = 0; i < ARRAY_SIZE(choices); i++)
		(void)fprintf(stderr, "  %zu  %-10s %s\n", i + 1, choices[i].name,
			      choices[i].meaning);
	do {
		(void)fprintf(stderr, "1 to %zu [2 balanced]: ", ARRAY_SIZE(choices));
		(void)fflush(stderr);
		if (!fgets(answer, sizeof(answer), stdin))
			return NULL;
		answer[strcspn(answer, "\r\n")] = '\0';
		name = meant(answer);
	} while (!name);
	return name;
}

int policy_ensure(struct ctx *c, struct err *e)
{
	_free_ char *preset = NULL;
	const char *name = NULL;
	int r = rules_preset(c->state, &preset, e);

	if (r < 0 || preset)
		return r;
	if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
		name = pick();
	if (!name)
		return err_set(
			e, -ENOENT,
			"the network policy has not been chosen; run: bac policy init balanced (or "
			"allow-all, deny-all)");
	return choose(c, name, e);
}

int policy_run_reset(void *opt, struct args *args, struct err *e)
{
	struct policy_args *o = opt;
	_close_ int lock = -1;
	struct ctx c;
	int r = ctx_open(&c, e);

	(void)args;
	if (r == 0 && !o->force) {
		r = ask("Forget the preset and all network rules? Until one is chosen again, "
			"sandboxes reach nothing.",
			e);
		if (r == 0)
			r = err_set(e, -ECANCELED, "nothing was changed");
	}
	if (r >= 0)
		r = rules_lock(c.state, &lock, e);
	if (r == 0)
		r = rules_reset(c.state, e);
	if (r == 0)
		r = net_push(&c, NULL, e);
	ctx_done(&c);
	return r;
}
