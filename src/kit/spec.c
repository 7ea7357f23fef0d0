/* A specification: from text to kit, and what concerns all of it. */
#include "kit/spec.h"

#include <stdio.h>

#include "kit/args-text.h"
#include "kit/old.h"
#include "kit/rules.h"

void kit_done(struct kit *k)
{
	declare_done(&k->credentials);
	pool_done(&k->pool);
	*k = (struct kit) { 0 };
}

/* ---- the fields at the top ---- */
static void security(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = { { "privileged", take_bool,
						 offsetof(struct kit, privileged) } };

	take_map(t, y, f, ARRAY_SIZE(f), into);
}

static void affinity(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = { { "agent", take_text,
						 offsetof(struct kit, requires_agent) } };
	const struct yaml *agent = take_get(y, "agent");
	struct kit *k = into;
	struct yaml at = take_key(y);

	if (k->kind == KIT_SANDBOX)
		TAKE_FAULT(t, &at, "found it in a sandbox, expected it in a mixin only");
	take_map(t, y, f, ARRAY_SIZE(f), into);
	if (y->kind == YAML_MAP && !agent)
		take_missing(t, y, "agent", "the name of an agent");
	else if (k->requires_agent && !rules_is_name(k->requires_agent))
		take_wrong(t, agent, "the name of an agent");
}

/* A text of a list that came before. */
static void refuse_twice(struct take *t, const struct yaml *y)
{
	size_t i, k;

	for (i = 0; y->kind == YAML_LIST && i < y->n; i++)
		for (k = 0; k < i; k++)
			if (y->v[i].text && streq(y->v[i].text, y->v[k].text))
				TAKE_FAULT(t, &y->v[i], "found '%.60s' a second time",
					   y->v[i].text);
}

static void licenses(struct take *t, const struct yaml *y, void *into)
{
	take_words(t, y, into);
	refuse_twice(t, y);
}

static void locked(struct take *t, const struct yaml *y, void *into)
{
	size_t i;

	take_words(t, y, into);
	refuse_twice(t, y);
	for (i = 0; y->kind == YAML_LIST && i < y->n; i++)
		if (y->v[i].kind == YAML_TEXT && !rules_is_dotted(y->v[i].text))
			take_wrong(t, &y->v[i], "a path as 'sandbox.image'");
}

static void mixins(struct take *t, const struct yaml *y, void *into)
{
	struct kit *k = into;
	struct yaml at = take_key(y);

	if (k->kind == KIT_MIXIN)
		TAKE_FAULT(t, &at, "found it in a mixin, expected it in kind 'sandbox' only");
	take_words(t, y, &k->mixins);
	if (k->mixins.n)
		TAKE_WARN(t, &at, "not applied: name mixins with --kit");
}

static void credentials(struct take *t, const struct yaml *y, void *into)
{
	struct kit *k = into;

	declare_read(t, y, &k->credentials);
}

static const struct take_field fields[] = {
	{ "schemaVersion", NULL, 0 },
	{ "kind", NULL, 0 },
	{ "name", NULL, 0 },
	{ "version", take_any, offsetof(struct kit, kit_version) },
	{ "displayName", take_any, offsetof(struct kit, display_name) },
	{ "description", take_any, offsetof(struct kit, description) },
	{ "sourceURL", take_any, offsetof(struct kit, source_url) },
	{ "licenses", licenses, offsetof(struct kit, licenses) },
	{ "locked", locked, offsetof(struct kit, locked) },
	{ "security", security, 0 },
	{ "args", NULL, 0 },
	{ "requires", NULL, 0 },
	{ "extends", NULL, 0 },
	{ "mixins", mixins, 0 },
	{ "sandbox", spec_sandbox, 0 },
	{ "agentInstructions", spec_instructions, 0 },
	{ "permissions", spec_permissions, 0 },
	{ "ports", spec_ports, 0 },
	{ "credentials", credentials, 0 },
	{ "environment", spec_environment, 0 },
	{ "setup", spec_setup, 0 },
	{ "volumes", spec_volumes, 0 },
};

/* ---- what the rest depends on ---- */
static void read_kind(struct take *t, const struct yaml *tree)
{
	const struct yaml *y = take_get(tree, "kind");
	const char *s = y && y->kind == YAML_TEXT ? y->text : "";

	if (!y)
		take_missing(t, tree, "kind", "sandbox or mixin");
	else if (streq(s, "sandbox") || streq(s, "mixin"))
		t->kit->kind = *s == 's' ? KIT_SANDBOX : KIT_MIXIN;
	else if (streq(s, "agent"))
		take_wrong(t, y, "sandbox (agent is what schema 1 calls it)");
	else if (streq(s, "workload") || streq(s, "set"))
		take_wrong(t, y, "sandbox or mixin (schema 3 is not read)");
	else
		take_wrong(t, y, "sandbox or mixin");
}

static void read_name(struct take *t, const struct yaml *tree)
{
	const struct yaml *y = take_get(tree, "name");

	if (!y)
		take_missing(t, tree, "name", "the kit's name");
	else if (y->kind != YAML_TEXT || !rules_is_name(y->text))
		take_wrong(t, y, "1 to 64 of a-z, 0-9 and '-', without '-' at an end");
	else
		take_text(t, y, &t->kit->name);
}

static void read_extends(struct take *t, const struct yaml *tree)
{
	const struct yaml *y = take_get(tree, "extends");
	struct yaml at;

	if (!y)
		return;
	at = take_key(y);
	if (t->kit->kind == KIT_MIXIN)
		TAKE_FAULT(t, &at, "found it in a mixin, expected it in kind 'sandbox' only");
	take_text(t, y, &t->kit->extends);
	if (t->kit->extends && streq(t->kit->extends, t->kit->name))
		take_wrong(t, y, "another kit than itself");
}

static void read_all(struct take *t, const struct yaml *tree)
{
	const struct yaml *y = take_get(tree, "requires");

	read_extends(t, tree);
	if (y)
		affinity(t, y, t->kit);
	take_map(t, tree, fields, ARRAY_SIZE(fields), t->kit);
	if (t->kit->kind == KIT_SANDBOX && !take_get(tree, "sandbox") && !t->kit->extends)
		take_missing(t, tree, "sandbox",
			     "a map with at least 'image', since the kind is sandbox");
}

/* 1 or 2; 0: it is told. */
static unsigned schema(struct take *t, const struct yaml *tree)
{
	const struct yaml *y = take_get(tree, "schemaVersion");
	const char *s = y && y->kind == YAML_TEXT ? y->text : "";

	if (!y)
		return old_is_short(tree) ? 1
					  : (take_missing(t, tree, "schemaVersion", "\"2\""), 0);
	if (streq(s, "1") || streq(s, "2"))
		return (unsigned)(*s - '0');
	take_wrong(t, y, streq(s, "3") ? "\"2\": schema 3 is not read" : "\"2\"");
	return 0;
}

/* The tree is whole: from here on it is read. */
static int read_tree(struct take *t, struct yaml *tree, const struct args_text *text,
		     struct kit_args *given)
{
	int r;

	if (!take_is(t, tree, YAML_MAP))
		return 0;
	t->kit->version = (uint8_t)schema(t, tree);
	if (!t->kit->version)
		return 0;
	r = t->kit->version == 2 ? spec_args(t, tree, given) : 0;
	if (r == 0)
		r = args_text_fill(text, t, tree, &t->kit->args);
	if (r == 0 && t->kit->version == 1)
		r = old_renew(t, tree);
	if (r < 0)
		return r;
	read_name(t, tree);
	read_kind(t, tree);
	if (t->kit->kind)
		read_all(t, tree);
	return t->pool->failed ? -ENOMEM : 0;
}

/* Declarations point into the tree. 0 or -ENOMEM. */
static int keep_tree(struct kit *k, struct yaml *tree)
{
	k->credentials.source = *tree;
	*tree = (struct yaml) { 0 };
	if (asprintf(&k->credentials.origin, "kit:%s", k->name ? k->name : "") >= 0)
		return 0;
	k->credentials.origin = NULL;
	return -ENOMEM;
}

int kit_parse(const char *file, const char *text, size_t n, struct kit_args *args, struct kit *ret,
	      struct kit_report *rep, struct err *e)
{
	struct kit k = { 0 };
	struct take t = { .file = file, .rep = rep, .pool = &k.pool, .kit = &k };
	struct args_text refs = { 0 };
	struct yaml tree = { 0 };
	int r = n > YAML_MAX ? 0 : args_text_mask(&refs, file, text, n, rep);

	if (r == 0)
		r = yaml_read(refs.masked ? refs.masked : text, n, file, &tree, rep, e);
	if (r == 0)
		r = read_tree(&t, &tree, &refs, args);
	args_text_done(&refs);
	if (keep_tree(&k, &tree) < 0)
		r = -ENOMEM;
	if (r == -ENOMEM)
		(void)err_set(e, r, "out of memory");
	else
		r = report_result(rep, e);
	if (r < 0)
		kit_done(&k);
	else
		*ret = k;
	return r;
}
