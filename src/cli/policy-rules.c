/* bac policy allow, deny and rm. */
#include <jansson.h>
#include <stdio.h>

#include "cli/cmds.h"
#include "cli/net-push.h"
#include "cli/policy.h"
#include "io/fd.h"

struct change {
	struct ctx c;
	const struct policy_args *o;
	char sandbox[STATE_ID_MAX + 1];
	bool allow;
	struct box_rules there; /* of this scope */
	struct box_rules more;  /* to add, or to remove */
	size_t known;           /* how many were there already */
};

static void change_done(struct change *ch)
{
	rules_done(&ch->there);
	rules_done(&ch->more);
	ctx_done(&ch->c);
}

static int check_protocol(const char *protocol, bool allow, struct err *e)
{
	static const char *const known[] = { "tcp", "udp", "tcp,udp", "udp,tcp" };
	size_t i;

	if (!protocol || streq(protocol, "tcp"))
		return 0;
	for (i = 0; i < ARRAY_SIZE(known) && !streq(protocol, known[i]); i++)
		;
	if (i == ARRAY_SIZE(known))
		return err_set(e, -EINVAL, "--protocol: '%.40s' is none of tcp, udp, tcp,udp",
			       protocol);
	if (allow)
		return err_set(
			e, -ENOTSUP,
			"--protocol %s: UDP is not built yet in this bac; all of it is refused",
			protocol);
	if (streq(protocol, "udp"))
		return err_set(
			e, -ENOTSUP,
			"--protocol udp: all UDP is refused anyway; there is nothing to deny");
	return 0;
}

static bool same_rule(const struct box_rule *a, const struct box_rule *b)
{
	return streq(a->resource, b->resource) && streq(a->method, b->method) &&
	       streq(a->path, b->path);
}

/* ---- allow and deny ---- */
static int add_one(void *arg, const char *resource, struct err *e)
{
	struct change *ch = arg;
	struct net_rule rule = { .scope = ch->sandbox[0] ? NET_SANDBOX : NET_GLOBAL,
				 .allow = ch->allow,
				 .resource = resource,
				 .method = ch->o->method,
				 .path = ch->o->path };
	struct box_rule *last;
	size_t i;
	int r = rules_append(&ch->more, &rule, ch->sandbox, "added", "", e);

	if (r < 0)
		return r;
	last = &ch->more.v[ch->more.n - 1];
	for (i = 0; i < ch->there.n; i++)
		if (ch->there.v[i].allow == last->allow && same_rule(&ch->there.v[i], last)) {
			(void)snprintf(last->id, sizeof(last->id), "%s", ch->there.v[i].id);
			ch->known++;
		}
	return 0;
}

/* A rule that allows what another denies has no effect: say so. */
static void tell_overruled(struct change *ch, const struct net_policy *p, const struct box_rule *r)
{
	struct net_request q = { 0 };
	struct net_answer a;
	struct host h;
	struct err none;

	q.host = &h;
	if (!r->allow || r->method[0] ||
	    host_port_parse(&h, &q.port, r->resource, strlen(r->resource), &none) < 0)
		return;
	q.port = q.port ? q.port : 443;
	a = net_decide(p, &q);
	if (a.verdict == NET_DENY && a.rule)
		say("note: %s stays denied by the rule '%s' (%s); deny beats allow", r->resource,
		    a.text, a.rule);
	(void)ch;
}

static void tell_all_overruled(struct change *ch)
{
	_cleanup_(net_policy_freep) struct net_policy *p = NULL;
	struct err none;
	size_t i;

	if (policy_load(&ch->c, ch->sandbox, &p, &none) < 0)
		return;
	for (i = 0; i < ch->more.n; i++)
		tell_overruled(ch, p, &ch->more.v[i]);
}

static int print_rules(struct change *ch, const char *verb, struct err *e)
{
	json_t *list = ch->o->json ? json_array() : NULL;
	char name[80];
	size_t i;

	for (i = 0; i < ch->more.n; i++) {
		const struct box_rule *r = &ch->more.v[i];

		if (list)
			(void)json_array_append_new(list, policy_rule_json(&ch->c, r));
		else
			(void)printf("%s %s %s%s%s%s%s (%s: %s)\n", verb,
				     r->allow ? "allow" : "deny", r->resource,
				     r->method[0] ? " " : "", r->method, r->path[0] ? " " : "",
				     r->path, r->sandbox[0] ? "sandbox" : "sandboxes",
				     policy_applies_to(&ch->c, r->sandbox, name, sizeof(name)));
	}
	return list ? print_json(json_pack("{s:o}", "rules", list), e) : flush_out(e);
}

static int push(struct change *ch, struct err *e)
{
	struct sandbox b = { 0 };
	int r;

	if (!ch->sandbox[0])
		return net_push(&ch->c, NULL, e);
	r = state_get(ch->c.state, ch->sandbox, &b, e);
	if (r == 0 && b.no_network)
		say("note: sandbox '%s' was made with --network none: its rules have no effect",
		    b.name);
	else if (r == 0)
		r = net_push(&ch->c, &b, e);
	sandbox_done(&b);
	return r;
}

/* Only what is new. */
static int store(struct change *ch, struct err *e)
{
	struct box_rules fresh = { 0 };
	size_t i, k;
	int r;

	fresh.v = calloc(ch->more.n + 1, sizeof(*fresh.v));
	if (!fresh.v)
		return err_errno(e, -ENOMEM, "cannot keep the rules");
	for (i = 0; i < ch->more.n; i++) { /* their texts are borrowed */
		for (k = 0; k < ch->there.n && !streq(ch->there.v[k].id, ch->more.v[i].id); k++)
			;
		if (k == ch->there.n)
			fresh.v[fresh.n++] = ch->more.v[i];
	}
	r = fresh.n ? rules_add(ch->c.state, &fresh, e) : 0;
	free(fresh.v);
	return r;
}

static int need_preset(struct ctx *c, struct err *e)
{
	_free_ char *preset = NULL;
	int r = rules_preset(c->state, &preset, e);

	if (r == 0 && !preset)
		r = err_set(
			e, -ENOENT,
			"the network policy has not been chosen; run: bac policy init balanced (or "
			"allow-all, deny-all)");
	return r;
}

static int begin(struct change *ch, int *ret_lock, struct err *e)
{
	int r = ctx_open(&ch->c, e);

	if (r == 0)
		r = policy_scope(&ch->c, ch->o->sandbox, ch->sandbox, e);
	if (r == 0)
		r = rules_lock(ch->c.state, ret_lock, e);
	if (r == 0)
		r = need_preset(&ch->c, e);
	return r == 0 ? rules_list(ch->c.state, ch->sandbox, &ch->there, e) : r;
}

static int add(const struct policy_args *o, const struct args *args, bool allow, struct err *e)
{
	_cleanup_(change_done) struct change ch = { .o = o, .allow = allow };
	_close_ int lock = -1;
	size_t i;
	int r = check_protocol(o->protocol, allow, e);

	if (r == 0)
		r = begin(&ch, &lock, e);
	for (i = 0; i < args->n && r == 0; i++)
		r = policy_split(args->v[i], add_one, &ch, e);
	if (r == 0)
		r = store(&ch, e);
	if (r == 0)
		r = push(&ch, e);
	if (r < 0)
		return r;
	if (ch.known && !o->json)
		say("%zu of these rules %s there already", ch.known,
		    ch.known == 1 ? "was" : "were");
	tell_all_overruled(&ch);
	return print_rules(&ch, "added", e);
}

static int run_allow(void *opt, struct args *args, struct err *e)
{
	return add(opt, args, true, e);
}

static int run_deny(void *opt, struct args *args, struct err *e)
{
	return add(opt, args, false, e);
}

/* ---- rm ---- */
static int take_out(struct change *ch, size_t i, struct err *e)
{
	struct box_rule *v = reallocarray(ch->more.v, ch->more.n + 1, sizeof(*v));

	if (!v)
		return err_errno(e, -ENOMEM, "cannot remove the rules");
	ch->more.v = v;
	v[ch->more.n++] = ch->there.v[i];
	memmove(ch->there.v + i, ch->there.v + i + 1, (ch->there.n - i - 1) * sizeof(*v));
	ch->there.n--;
	return 0;
}

static int rm_resource(void *arg, const char *resource, struct err *e)
{
	struct change *ch = arg;
	struct box_rules want = { 0 };
	struct net_rule rule = { .scope = NET_GLOBAL,
				 .resource = resource,
				 .method = ch->o->method,
				 .path = ch->o->path };
	size_t i, before = ch->more.n;
	int r = rules_append(&want, &rule, "", "added", "", e);

	for (i = 0; i < ch->there.n && r == 0;) {
		if (same_rule(&ch->there.v[i], &want.v[0]))
			r = take_out(ch, i, e);
		else
			i++;
	}
	if (r == 0 && ch->more.n == before)
		r = err_set(e, -ENOENT,
			    "no rule for '%.100s%s%s%s%s' %s%s (see 'bac policy ls --wide')",
			    want.v[0].resource, want.v[0].method[0] ? " " : "", want.v[0].method,
			    want.v[0].path[0] ? " " : "", want.v[0].path,
			    ch->o->sandbox ? "of sandbox " : "for all sandboxes",
			    ch->o->sandbox ? ch->o->sandbox : "");
	rules_done(&want);
	return r;
}

static int rm_id(struct change *ch, struct err *e)
{
	size_t i;

	for (i = 0; i < ch->there.n; i++)
		if (streq(ch->there.v[i].id, ch->o->id))
			return take_out(ch, i, e);
	return err_set(e, -ENOENT, "no rule has the id '%.60s' %s%s (see 'bac policy ls --wide')",
		       ch->o->id, ch->o->sandbox ? "in sandbox " : "among those for all sandboxes",
		       ch->o->sandbox ? ch->o->sandbox : "");
}

static int run_rm(void *opt, struct args *args, struct err *e)
{
	struct policy_args *o = opt;
	_cleanup_(change_done) struct change ch = { .o = o };
	_close_ int lock = -1;
	int r;

	(void)args;
	if (!o->resource == !o->id)
		return err_set(e, -EINVAL, "name what to remove: --resource RESOURCE or --id ID");
	if (o->id && (o->method || o->path))
		return err_set(e, -EINVAL,
			       "--method and --path go with --resource; the id says all");
	r = begin(&ch, &lock, e);
	if (r == 0)
		r = o->id ? rm_id(&ch, e) : policy_split(o->resource, rm_resource, &ch, e);
	if (r == 0)
		r = rules_remove(ch.c.state, &ch.more, e);
	if (r == 0)
		r = push(&ch, e);
	return r == 0 ? print_rules(&ch, "removed", e) : r;
}

#define O     POLICY_OPT
#define SCOPE O(OPT_STR, sandbox, 0, "sandbox", "SANDBOX", "a rule of this sandbox only")
#define HTTP \
	O(OPT_STR, method, 0, "method", "METHOD", \
	  "only HTTP requests with this method (GET, ..., ANY)"), \
		O(OPT_STR, path, 0, "path", "PATH", \
		  "and this path: '*' is one segment, '**' any number")
static const struct opt add_opts[] = {
	SCOPE,
	O(OPT_STR, protocol, 0, "protocol", "tcp|udp", "tcp; UDP is always refused"),
	HTTP,
	O(OPT_FLAG, json, 0, "json", NULL, "print the rules as JSON"),
};
static const struct opt rm_opts[] = {
	SCOPE,
	O(OPT_STR, resource, 0, "resource", "RESOURCES", "the rules for this, as they are listed"),
	HTTP,
	O(OPT_STR, id, 0, "id", "ID", "the rule with this id"),
	O(OPT_FLAG, json, 0, "json", NULL, "print what was removed as JSON"),
};

#define RESOURCES_TEXT \
	"RESOURCES is a list with commas of\n" \
	"  a.example          exactly that name, on any port\n" \
	"  a.example:443      on this port; also :80,443 and :8000-8010\n" \
	"  *.a.example        one label more; **.a.example any number, and neither is a.example " \
	"itself\n" \
	"  crl*.a.example     a part of a label\n" \
	"  192.0.2.7, 192.0.2.0/24, [2001:db8::1], 2001:db8::/32\n" \
	"  **                 everything public\n" \
	"  localhost:8080     a port of this machine: host.docker.internal in the sandbox\n" \
	"Deny beats allow. With --method a rule speaks of HTTP requests: TLS to its hosts is " \
	"opened " \
	"by bac,\n" \
	"under an authority that this sandbox alone trusts."

const struct cmd policy_allow_subs[] = {
	{ .name = "network",
	  .usage = "[OPTIONS] RESOURCES...",
	  .brief = "let sandboxes reach hosts and ports",
	  .text = RESOURCES_TEXT,
	  .opts = add_opts,
	  .n_opts = ARRAY_SIZE(add_opts),
	  .min_args = 1,
	  .max_args = SIZE_MAX,
	  .size = sizeof(struct policy_args),
	  .run = run_allow },
	{ .name = NULL },
};

const struct cmd policy_deny_subs[] = {
	{ .name = "network",
	  .usage = "[OPTIONS] RESOURCES...",
	  .brief = "keep sandboxes from hosts and ports",
	  .text = RESOURCES_TEXT,
	  .opts = add_opts,
	  .n_opts = ARRAY_SIZE(add_opts),
	  .min_args = 1,
	  .max_args = SIZE_MAX,
	  .size = sizeof(struct policy_args),
	  .run = run_deny },
	{ .name = NULL },
};

const struct cmd policy_rm_subs[] = {
	{ .name = "network",
	  .usage = "[OPTIONS]",
	  .brief = "remove network rules",
	  .text = "Without --sandbox it is a rule for all sandboxes.",
	  .opts = rm_opts,
	  .n_opts = ARRAY_SIZE(rm_opts),
	  .max_args = 0,
	  .size = sizeof(struct policy_args),
	  .run = run_rm },
	{ .name = NULL },
};

/* ---- create and run ---- */
struct provision {
	struct box_rules *ret;
	const char *sandbox;
	bool allow;
};

static int provision_one(void *arg, const char *resource, struct err *e)
{
	struct provision *p = arg;
	struct net_rule rule = { .scope = NET_SANDBOX, .allow = p->allow, .resource = resource };

	return rules_append(p->ret, &rule, p->sandbox, "provisioned", "", e);
}

int policy_provision(struct box_rules *ret, const struct opt_list *allow,
		     const struct opt_list *deny, const char *sandbox, struct err *e)
{
	struct provision p = { .ret = ret, .sandbox = sandbox, .allow = true };
	size_t i;
	int r;

	for (i = 0; i < allow->n; i++) {
		r = policy_split(allow->v[i], provision_one, &p, e);
		if (r < 0)
			return err_ctx(e, "--allow-network");
	}
	p.allow = false;
	for (i = 0; i < deny->n; i++) {
		r = policy_split(deny->v[i], provision_one, &p, e);
		if (r < 0)
			return err_ctx(e, "--deny-network");
	}
	return 0;
}
