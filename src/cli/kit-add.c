/* bac kit add: a mixin for a sandbox that is there.
 *
 * It is applied to the machine as it runs: variables, installation and network. What a kit does only while a sandbox is made (files, startup, volumes, credentials,
 * instructions) is refused by name, all of it at once, so that a kit is never half applied. */
#include <stdio.h>
#include <unistd.h>

#include "cli/cmds.h"
#include "cli/cred-push.h"
#include "cli/kit-create.h"
#include "cli/kit-install.h"
#include "cli/kit.h"
#include "cli/net-push.h"
#include "io/fd.h"

static void name(struct buf *out, bool there, const char *what)
{
	if (there && buf_printf(out, "%s%s", out->n ? ", " : "", what) < 0)
		return; /* it is named as far as it fits */
}

static int refuse(const struct box_kit *p, struct err *e)
{
	const struct kit *k = &p->kit;
	_free_ char *files = dirs_join(p->dir, "files");
	struct buf out = BUF_INIT(1024);
	int r = 0;

	name(&out, files && access(files, F_OK) == 0, "files/");
	name(&out, k->n_startup, "setup.startup");
	name(&out, k->n_files, "setup.files");
	name(&out, k->n_volumes, "volumes");
	name(&out, k->n_ports, "ports");
	name(&out, k->credentials.n, "credentials");
	name(&out, k->n_instructions, "agentInstructions");
	name(&out, k->privileged, "security.privileged");
	if (out.n)
		r = err_set(
			e, -ENOTSUP,
			"the kit '%.64s' cannot be added to a sandbox that is there: it has %s; "
			"create one with it (bac create --kit)",
			k->name, buf_str(&out));
	buf_done(&out);
	return r;
}

/* Its rules alone. */
static int add_rules(struct ctx *c, const struct sandbox *b, const struct kit_box *k, struct err *e)
{
	struct box_rules rules = { 0 };
	const struct kit *kit = &k->v[k->n - 1].kit;
	struct kit_box one = { .v = &k->v[k->n - 1], .n = 1 };
	_close_ int lock = -1;
	int r;

	if (b->no_network || !(kit->allow.n + kit->deny.n))
		return 0;
	r = kit_create_rules(c, &one, b->id, &rules, e);
	if (r == 0)
		r = rules_lock(c->state, &lock, e);
	if (r == 0)
		r = rules_add(c->state, &rules, e);
	if (r == 0)
		r = net_push(c, b, e);
	rules_done(&rules);
	return r;
}

static int check(const struct sandbox *b, const struct kit_box *k, struct err *e)
{
	const struct box_kit *p = &k->v[k->n - 1];
	int r = refuse(p, e);

	return r == 0 ? kit_create_check(b, k, e) : r;
}

/* Rules and variables first, since the installation may need them; the last thing that is kept is that it is there. */
static int add(struct ctx *c, const struct sandbox *b, struct kit_box *k, size_t installed,
	       bool quiet, struct err *e)
{
	struct start_opts so = { 0 };
	struct door d;
	int r = start_sandbox(c, b, &so, &d, e);

	if (r < 0)
		return r;
	door_done(&d);
	r = add_rules(c, b, k, e);
	if (r == 0)
		r = kit_install_steps(c, b, k, installed, quiet, e);
	if (r == 0)
		r = kit_box_keep(c, b->id, k, e);
	return r == 0 && !b->no_network ? cred_push(c, b, e) : r;
}

int kit_run_add(void *opt, struct args *args, struct err *e)
{
	const struct kit_add_args *o = opt;
	const struct kit_load_opts l = {
		.base = args->v[1], .args = &o->args, .args_files = &o->args_files, .single = true
	};
	struct sandbox b = { 0 };
	struct kit_box k = { 0 };
	size_t installed = 0;
	struct ctx c;
	int r = ctx_open(&c, e);

	if (r == 0)
		r = state_get(c.state, args->v[0], &b, e);
	if (r == 0)
		r = kit_box_load(&c, b.id, &k, e);
	if (r > 0)
		r = err_set(e, -ENOTSUP,
			    "sandbox '%s' was made before this bac knew kits; make a new one",
			    b.name);
	installed = k.kit.n_install;
	if (r == 0)
		r = kit_box_add(&c, &k, &l, e);
	if (r == 0)
		r = check(&b, &k, e);
	if (r == 0)
		r = add(&c, &b, &k, installed, false, e);
	if (r == 0)
		say("the kit '%s' was added to '%s'", k.v[k.n - 1].kit.name, b.name);
	kit_box_done(&k);
	sandbox_done(&b);
	ctx_done(&c);
	return r;
}
