/* bac policy: the table of its commands, and what they share. */
#include "cli/policy.h"

#include <jansson.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/cmds.h"
#include "cli/policy-log.h"

int policy_scope(struct ctx *c, const char *name, char ret_id[STATE_ID_MAX + 1], struct err *e)
{
	struct sandbox b = { 0 };
	int r;

	ret_id[0] = '\0';
	if (!name)
		return 0;
	r = state_get(c->state, name, &b, e);
	if (r == 0)
		memcpy(ret_id, b.id, sizeof(b.id));
	sandbox_done(&b);
	return r;
}

static bool is_ports(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if ((s[i] < '0' || s[i] > '9') && s[i] != '-')
			return false;
	return n > 0;
}

int policy_split(const char *list, int (*each)(void *arg, const char *resource, struct err *e),
		 void *arg, struct err *e)
{
	char one[NET_RESOURCE_MAX + 2];
	int r = 0;

	while (r == 0) {
		size_t n = strcspn(list, ","), more;

		while (list[n] && strchr(list, ':') && memchr(list, ':', n) &&
		       is_ports(list + n + 1, more = strcspn(list + n + 1, ",")))
			n += 1 + more;
		if (!n)
			return err_set(e, -EINVAL,
				       "an empty resource in the list; write them as "
				       "'a.example,b.example:443'");
		if (n > NET_RESOURCE_MAX)
			return err_set(e, -EINVAL, "a resource has %d bytes at most",
				       NET_RESOURCE_MAX);
		memcpy(one, list, n);
		one[n] = '\0';
		r = each(arg, one, e);
		if (!list[n])
			break;
		list += n + 1;
	}
	return r;
}

const char *policy_applies_to(struct ctx *c, const char *id, char *dst, size_t max)
{
	struct sandbox b = { 0 };
	struct err none = { 0 };

	if (!id[0])
		return "all";
	(void)snprintf(dst, max, "%s", state_get(c->state, id, &b, &none) == 0 ? b.name : id);
	sandbox_done(&b);
	return dst;
}

struct json_t *policy_rule_json(struct ctx *c, const struct box_rule *r)
{
	char name[80], at[32];
	json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "id", r->id, "type",
			      r->method[0] ? "http" : "network", "decision",
			      r->allow ? "allow" : "deny", "resource", r->resource, "applies_to",
			      policy_applies_to(c, r->sandbox, name, sizeof(name)), "source",
			      rules_is_kit(r) ? "kit" : "local", "created_via", r->via, "protocol",
			      "tcp", "created_at", utc(at, sizeof(at), r->created));

	if (j && r->method[0]) {
		(void)json_object_set_new(j, "method", json_string(r->method));
		(void)json_object_set_new(j, "path", json_string(r->path));
	}
	if (j && r->group[0])
		(void)json_object_set_new(j, "group", json_string(r->group));
	return j;
}

int policy_load(struct ctx *c, const char *sandbox, struct net_policy **ret, struct err *e)
{
	struct buf out = BUF_INIT(NET_TEXT_MAX);
	int r = rules_text(c->state, sandbox, &out, e);

	if (r == 0)
		r = net_text_parse((const char *)buf_data(&out), out.n, ret, e);
	buf_done(&out);
	return r;
}

#define O POLICY_OPT
static const struct opt reset_opts[] = { O(OPT_FLAG, force, 'f', "force", NULL, "do not ask") };
static const struct opt ls_opts[] = {
	O(OPT_STR, decision, 0, "decision", "allow|deny", "only rules that allow, or that deny"),
	O(OPT_STR, source, 0, "source", "local|kit", "only rules that come from there"),
	O(OPT_STR, type, 0, "type", "all|network|http", "only rules of this type"),
	O(OPT_STR, via, 0, "created-via", "default|added|provisioned",
	  "only those of the preset, of 'bac policy', or of 'bac create'"),
	O(OPT_FLAG, wide, 0, "wide", NULL, "each rule, with its id"),
	O(OPT_FLAG, json, 0, "json", NULL, "print JSON"),
};
static const struct opt inspect_opts[] = { O(OPT_FLAG, json, 0, "json", NULL, "print JSON") };

static const struct opt suggest_opts[] = {
	O(OPT_FLAG, apply, 0, "apply", NULL, "add them to the sandbox's rules"),
	O(OPT_FLAG, json, 0, "json", NULL, "print JSON"),
};

static const struct cmd subs[] = {
	{ .name = "init",
	  .usage = "allow-all|balanced|deny-all",
	  .brief = "choose what sandboxes may reach to begin with",
	  .text = "allow-all   everything public; private, link-local and metadata addresses need "
		  "a rule that\n"
		  "            names them\n"
		  "balanced    the services that agents need for their work: models, package "
		  "registries, code\n"
		  "            hosts, certificate checks\n"
		  "deny-all    nothing\n\n"
		  "Once, for all sandboxes; 'allow' and 'deny' add to it, and 'reset' begins anew.",
	  .min_args = 1,
	  .max_args = 1,
	  .size = sizeof(struct policy_args),
	  .run = policy_run_init },
	{ .name = "allow",
	  .usage = "network",
	  .brief = "let sandboxes reach something",
	  .subs = policy_allow_subs },
	{ .name = "deny",
	  .usage = "network",
	  .brief = "keep sandboxes from something",
	  .subs = policy_deny_subs },
	{ .name = "rm", .usage = "network", .brief = "remove rules", .subs = policy_rm_subs },
	{ .name = "ls",
	  .usage = "[OPTIONS] [SANDBOX]",
	  .brief = "list what holds, for all sandboxes or for one",
	  .opts = ls_opts,
	  .n_opts = ARRAY_SIZE(ls_opts),
	  .max_args = 1,
	  .size = sizeof(struct policy_args),
	  .run = policy_run_ls },
	{ .name = "inspect",
	  .usage = "[OPTIONS] RULE",
	  .brief = "show one rule, and how to remove it",
	  .text = "RULE is its id, or the beginning of it.",
	  .opts = inspect_opts,
	  .n_opts = ARRAY_SIZE(inspect_opts),
	  .min_args = 1,
	  .max_args = 1,
	  .size = sizeof(struct policy_args),
	  .run = policy_run_inspect },
	{ .name = "check",
	  .usage = "network",
	  .brief = "say what would be decided, and why",
	  .subs = policy_check_subs },
	POLICY_LOG_CMD,
	{ .name = "suggest",
	  .usage = "[OPTIONS] SANDBOX",
	  .brief = "turn what was refused into the narrowest rules",
	  .text = "Prints commands to read and to run. Nothing is suggested that a deny forbids; "
		  "private\n"
		  "addresses and ports of this machine are shown, and left out by --apply.",
	  .opts = suggest_opts,
	  .n_opts = ARRAY_SIZE(suggest_opts),
	  .min_args = 1,
	  .max_args = 1,
	  .size = sizeof(struct policy_args),
	  .run = policy_run_suggest },
	{ .name = "reset",
	  .usage = "[OPTIONS]",
	  .brief = "forget the preset and all rules",
	  .text = "Running sandboxes reach nothing any more until a preset is chosen again.",
	  .opts = reset_opts,
	  .n_opts = ARRAY_SIZE(reset_opts),
	  .max_args = 0,
	  .size = sizeof(struct policy_args),
	  .run = policy_run_reset },
	{ .name = NULL },
};

const struct cmd policy_cmd = {
	.name = "policy",
	.usage = "COMMAND",
	.brief = "what sandboxes may reach in the network",
	.text = "Nothing is reached that no rule allows, and deny beats allow, whichever is "
		"narrower. Changes hold\n"
		"at once, also for connections that are open. docs/network.md has the grammar.",
	.subs = subs,
};
