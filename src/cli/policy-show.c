/* bac policy ls and inspect. */
#include <jansson.h>
#include <stdio.h>

#include "cli/cmds.h"
#include "cli/policy.h"

struct listing {
	struct ctx c;
	const struct policy_args *o;
	char sandbox[STATE_ID_MAX + 1]; /* "": all */
	struct box_rules rules;
	char *preset;
};

static void listing_done(struct listing *l)
{
	rules_done(&l->rules);
	free(l->preset);
	ctx_done(&l->c);
}

static int check_word(const char *option, const char *value, const char *const *words,
		      struct err *e)
{
	size_t i;

	for (i = 0; value && words[i]; i++)
		if (streq(words[i], value))
			return 0;
	return value ? err_set(e, -EINVAL, "--%s: '%.40s' is not one of its values (see --help)",
			       option, value)
		     : 0;
}

static int check_options(const struct policy_args *o, struct err *e)
{
	static const char *const decisions[] = { "allow", "deny", NULL };
	static const char *const sources[] = { "local", "kit", NULL };
	static const char *const types[] = { "all", "network", "http", NULL };
	static const char *const vias[] = { "default", "added", "provisioned", NULL };
	int r = check_word("decision", o->decision, decisions, e);

	if (r == 0)
		r = check_word("source", o->source, sources, e);
	if (r == 0)
		r = check_word("type", o->type, types, e);
	return r == 0 ? check_word("created-via", o->via, vias, e) : r;
}

static bool is_wanted(const struct listing *l, const struct box_rule *r)
{
	const struct policy_args *o = l->o;

	if (l->sandbox[0] && r->sandbox[0] && !streq(r->sandbox, l->sandbox))
		return false;
	if (o->decision && r->allow != streq(o->decision, "allow"))
		return false;
	if (o->source && !streq(o->source, rules_is_kit(r) ? "kit" : "local"))
		return false;
	if (o->type && !streq(o->type, "all") && !r->method[0] != streq(o->type, "network"))
		return false;
	return !o->via || streq(o->via, r->via);
}

/* "default-ai-services", or who made it. */
static const char *policy_name(const struct box_rule *r)
{
	return r->group[0] ? r->group : streq(r->via, "provisioned") ? "create" : "local";
}

static int ls_wide(struct listing *l, struct err *e)
{
	int w_who = 10, w_policy = 6;
	char name[80];
	size_t i;

	for (i = 0; i < l->rules.n; i++) {
		const struct box_rule *r = &l->rules.v[i];

		w_who = MAX(w_who,
			    (int)strlen(policy_applies_to(&l->c, r->sandbox, name, sizeof(name))));
		w_policy = MAX(w_policy, (int)strlen(policy_name(r)));
	}
	(void)printf("%-6s   %-*s   %-*s   %-36s   %-7s   %-7s   %-12s   %-8s   %s\n", "SOURCE",
		     w_who, "APPLIES TO", w_policy, "POLICY", "RULE_ID", "TYPE", "METHOD", "PATH",
		     "DECISION", "RESOURCES");
	for (i = 0; i < l->rules.n; i++) {
		const struct box_rule *r = &l->rules.v[i];

		if (is_wanted(l, r))
			(void)printf(
				"%-6s   %-*s   %-*s   %-36s   %-7s   %-7s   %-12s   %-8s   %s\n",
				rules_is_kit(r) ? "kit" : "local", w_who,
				policy_applies_to(&l->c, r->sandbox, name, sizeof(name)), w_policy,
				policy_name(r), r->id, r->method[0] ? "http" : "network",
				r->method[0] ? r->method : "-", r->path[0] ? r->path : "-",
				r->allow ? "allow" : "deny", r->resource);
	}
	return flush_out(e);
}

static int ls_json(struct listing *l, struct err *e)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < l->rules.n; i++)
		if (is_wanted(l, &l->rules.v[i]))
			(void)json_array_append_new(list, policy_rule_json(&l->c, &l->rules.v[i]));
	return print_json(json_pack("{s:s?, s:o}", "preset", l->preset, "rules", list), e);
}

/* Of the rules with this policy name and sandbox, from i on: "network: 42 allow, 1 deny; http: 1 allow". */
static const char *summary(const struct listing *l, size_t i, char dst[160])
{
	unsigned count[2][2] = { { 0 } };
	const struct box_rule *first = &l->rules.v[i];
	const char *sep = "";
	size_t n = 0, t;

	for (; i < l->rules.n; i++) {
		const struct box_rule *r = &l->rules.v[i];

		if (is_wanted(l, r) && streq(policy_name(r), policy_name(first)) &&
		    streq(r->sandbox, first->sandbox))
			count[!!r->method[0]][r->allow]++;
	}
	for (t = 0; t < 2; t++) {
		if (!count[t][0] && !count[t][1])
			continue;
		n += (size_t)snprintf(dst + n, 160 - n, "%s%s:", sep, t ? "http" : "network");
		if (count[t][1])
			n += (size_t)snprintf(dst + n, 160 - n, " %u allow", count[t][1]);
		if (count[t][0])
			n += (size_t)snprintf(dst + n, 160 - n, "%s %u deny",
					      count[t][1] ? "," : "", count[t][0]);
		sep = "; ";
	}
	return dst;
}

static bool is_first(const struct listing *l, size_t i)
{
	const struct box_rule *r = &l->rules.v[i];
	size_t k;

	for (k = 0; k < i; k++)
		if (is_wanted(l, &l->rules.v[k]) &&
		    streq(policy_name(&l->rules.v[k]), policy_name(r)) &&
		    streq(l->rules.v[k].sandbox, r->sandbox))
			return false;
	return is_wanted(l, r);
}

static int ls_table(struct listing *l, struct err *e)
{
	char name[80], text[160];
	size_t i, shown = 0;

	(void)printf("Preset: %s. What no rule allows is denied; deny beats allow.\n",
		     l->preset ? l->preset : "none was chosen (bac policy init)");
	for (i = 0; i < l->rules.n; i++) {
		if (!is_first(l, i))
			continue;
		if (!shown++)
			(void)printf("\n%-28s   %-6s   %-20s   %s\n", "POLICY", "SOURCE",
				     "APPLIES TO", "SUMMARY");
		(void)printf("%-28s   %-6s   %-20s   %s\n", policy_name(&l->rules.v[i]),
			     rules_is_kit(&l->rules.v[i]) ? "kit" : "local",
			     policy_applies_to(&l->c, l->rules.v[i].sandbox, name, sizeof(name)),
			     summary(l, i, text));
	}
	return flush_out(e);
}

int policy_run_ls(void *opt, struct args *args, struct err *e)
{
	struct policy_args *o = opt;
	_cleanup_(listing_done) struct listing l = { .o = o };
	int r = check_options(o, e);

	if (r == 0)
		r = ctx_open(&l.c, e);
	if (r == 0)
		r = policy_scope(&l.c, args->n ? args->v[0] : NULL, l.sandbox, e);
	if (r == 0)
		r = rules_preset(l.c.state, &l.preset, e);
	if (r == 0)
		r = rules_list(l.c.state, NULL, &l.rules, e);
	if (r < 0)
		return r;
	return o->json ? ls_json(&l, e) : o->wide ? ls_wide(&l, e) : ls_table(&l, e);
}

/* ---- inspect ---- */
static int find_rule(const struct box_rules *all, const char *word, const struct box_rule **ret,
		     struct err *e)
{
	const struct box_rule *found = NULL;
	size_t i;

	for (i = 0; i < all->n; i++) {
		if (!starts_with(all->v[i].id, word))
			continue;
		if (found)
			return err_set(e, -EINVAL, "more than one rule's id begins with '%.40s'",
				       word);
		found = &all->v[i];
	}
	if (!found || !*word)
		return err_set(e, -ENOENT,
			       "no rule has the id '%.60s' (see 'bac policy ls --wide')", word);
	*ret = found;
	return 0;
}

static int inspect(struct listing *l, const struct box_rule *r, struct err *e)
{
	char name[80], at[32], remove[160];
	const char *who = policy_applies_to(&l->c, r->sandbox, name, sizeof(name));
	json_t *j;

	(void)snprintf(remove, sizeof(remove), "bac policy rm network%s%s --id %s",
		       r->sandbox[0] ? " --sandbox " : "", r->sandbox[0] ? who : "", r->id);
	if (l->o->json) {
		j = policy_rule_json(&l->c, r);
		if (j)
			(void)json_object_set_new(j, "remove", json_string(remove));
		return print_json(j, e);
	}
	(void)printf("Id:          %s\nDecision:    %s\nResource:    %s\n", r->id,
		     r->allow ? "allow" : "deny", r->resource);
	if (r->method[0])
		(void)printf("Method:      %s\nPath:        %s\n", r->method, r->path);
	(void)printf("Protocol:    tcp\nApplies to:  %s\nPolicy:      %s\nCreated:     %s, "
		     "%s\nRemove with: %s\n",
		     who, policy_name(r), utc(at, sizeof(at), r->created), r->via, remove);
	return flush_out(e);
}

int policy_run_inspect(void *opt, struct args *args, struct err *e)
{
	_cleanup_(listing_done) struct listing l = { .o = opt };
	const struct box_rule *rule;
	int r = ctx_open(&l.c, e);

	if (r == 0)
		r = rules_list(l.c.state, NULL, &l.rules, e);
	if (r == 0)
		r = find_rule(&l.rules, args->v[0], &rule, e);
	return r == 0 ? inspect(&l, rule, e) : r;
}
