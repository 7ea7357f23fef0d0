/* bac template: its commands, and build. */
#include <jansson.h>

#include "base/text.h"
#include "cli/cmds.h"
#include "cli/ctx.h"
#include "cli/progress.h"
#include "cli/template-pull.h"
#include "cli/template-save.h"
#include "cli/template.h"
#include "image/image.h"

/* ---- build ---- */

struct build_args {
	const char *mirror, *suite;
	bool fresh, json, quiet;
};

static const struct opt build_opts[] = {
	{ "fresh", 0, OPT_FLAG, offsetof(struct build_args, fresh), NULL,
	  "build even if there is a template from the same inputs" },
	{ "json", 0, OPT_FLAG, offsetof(struct build_args, json), NULL, "print JSON" },
	{ "mirror", 0, OPT_STR, offsetof(struct build_args, mirror), "URL",
	  "Debian mirror (default: the setting template.mirror, else the host's)" },
	{ "quiet", 'q', OPT_FLAG, offsetof(struct build_args, quiet), NULL,
	  "show no progress, print the digest only" },
	{ "suite", 0, OPT_STR, offsetof(struct build_args, suite), "SUITE",
	  "Debian suite (default: the setting template.suite)" },
};

static int show_built(const struct build_args *o, const struct image_template *t, bool made,
		      struct err *e)
{
	char size[32];

	if (o->json) {
		json_t *j = template_json(t);

		(void)json_object_set_new(j, "made", json_boolean(made));
		return print_json(j, e);
	}
	if (o->quiet)
		(void)printf("%s\n", t->digest);
	else
		(void)printf("%s template %s (%.*s, %s, %s)\n",
			     made ? "Built" : "Up to date:", t->tag, TEMPLATE_DIGITS, t->digest,
			     t->source, text_from_size(size, sizeof(size), t->size));
	return flush_out(e);
}

static int build(struct ctx *c, const struct build_args *o, struct err *e)
{
	_free_ char *mirror = NULL, *suite = NULL, *init = dirs_join(c->dirs.libexec, "bac-init");
	struct image_template t = { 0 };
	struct progress progress;
	struct image_build b = { .cache = c->dirs.cache, .data = c->dirs.data, .init = init };
	bool made = false;
	int r;

	if (!init)
		return err_errno(e, -ENOMEM, "cannot build the template");
	r = setting_get(c->state, "template.mirror", &mirror, NULL, e);
	if (r == 0)
		r = setting_get(c->state, "template.suite", &suite, NULL, e);
	if (r < 0)
		return r;
	b.mirror = o->mirror ? o->mirror : mirror;
	b.suite = o->suite ? o->suite : suite;
	b.fresh = o->fresh;
	progress_begin(&progress, o->quiet);
	b.progress = &progress.p;
	r = image_template_build(&b, &t, &made, e);
	progress_end(&progress);
	if (r == 0)
		r = show_built(o, &t, made, e);
	image_template_done(&t);
	if (r == -EINTR && progress_signal()) {
		say("%s", e->msg);
		return progress_signal();
	}
	return r < 0 ? err_ctx(e, "cannot build the template") : r;
}

static int run_build(void *opt, struct args *args, struct err *e)
{
	struct ctx c;
	int r = ctx_open(&c, e);

	(void)args;
	if (r == 0)
		r = build(&c, opt, e);
	ctx_done(&c);
	return r;
}

static const struct cmd subs[] = {
	{
		.name = "build",
		.usage = "[OPTIONS]",
		.brief = "make the default template from Debian packages",
		.text = "Downloads Debian packages and Node.js, and makes a read-only root and a "
			"kernel of them. Does\n"
			"nothing if there is a template from the same inputs. Sandboxes keep the "
			"template that they were\n"
			"created from.",
		.opts = build_opts,
		.n_opts = ARRAY_SIZE(build_opts),
		.size = sizeof(struct build_args),
		.run = run_build,
	},
	{
		.name = "inspect",
		.usage = "[OPTIONS] TEMPLATE",
		.brief = "show what a template is",
		.text = "With its layers, and which other templates share them; its image's "
			"configuration; the\n"
			"sandboxes that stand on it.",
		.opts = template_inspect_opts,
		.n_opts = TEMPLATE_INSPECT_OPTS,
		.min_args = 1,
		.max_args = 1,
		.size = sizeof(struct template_args),
		.run = template_run_inspect,
	},
	{
		.name = "load",
		.usage = "[OPTIONS] FILE|FOLDER",
		.brief = "make templates of images in a file",
		.text = "FILE is what 'docker save' or 'podman save' write, or an OCI archive; "
			"compressed or not. FOLDER is\n"
			"an OCI layout. All images for this machine are loaded. A layer that is "
			"here already is not read again.",
		.opts = template_load_opts,
		.n_opts = TEMPLATE_LOAD_OPTS,
		.min_args = 1,
		.max_args = 1,
		.size = sizeof(struct template_args),
		.run = template_run_load,
	},
	{
		.name = "ls",
		.usage = "[OPTIONS]",
		.brief = "list templates",
		.text = "SIZE counts all layers of a template; what several share is on the disk "
			"once.",
		.opts = template_ls_opts,
		.n_opts = TEMPLATE_LS_OPTS,
		.size = sizeof(struct template_args),
		.run = template_run_ls,
	},
	{
		.name = "prune",
		.usage = "[OPTIONS]",
		.brief = "remove templates that no sandbox uses",
		.text = "And layers that no template has. The template that is tagged default "
			"stays.",
		.opts = template_prune_opts,
		.n_opts = TEMPLATE_PRUNE_OPTS,
		.size = sizeof(struct template_args),
		.run = template_run_prune,
	},
	{
		.name = "pull",
		.usage = "[OPTIONS] REGISTRY/PATH[:TAG][@sha256:DIGEST]",
		.brief = "make a template of an image from a registry",
		.text = "The registry has to be named, as in docker.io/library/alpine:3. What is "
			"here already is not fetched\n"
			"again. Passwords of registries: bac secret set --registry.",
		.opts = template_pull_opts,
		.n_opts = TEMPLATE_PULL_OPTS,
		.min_args = 1,
		.max_args = 1,
		.size = sizeof(struct template_pull_args),
		.run = template_run_pull,
	},
	{
		.name = "rm",
		.usage = "[OPTIONS] TEMPLATE...",
		.brief = "remove templates",
		.text = "A template is named by a tag or the first digits of its digest. Of "
			"several "
			"tags only the one named goes.\n"
			"A template that a sandbox uses stays.",
		.opts = template_rm_opts,
		.n_opts = TEMPLATE_RM_OPTS,
		.min_args = 1,
		.max_args = SIZE_MAX,
		.size = sizeof(struct template_args),
		.run = template_run_rm,
	},
	{
		.name = "save",
		.usage = "[OPTIONS] SANDBOX TAG",
		.brief = "make a template of a sandbox's files",
		.text = "All of its root, but for mounts, workspaces and /var/lib/docker. The "
			"programs of a "
			"sandbox that runs stand\n"
			"still meanwhile, which is asked about; one that is stopped is started for "
			"it. "
			"What secrets were written to\n"
			"files are in the template too.",
		.opts = template_save_opts,
		.n_opts = TEMPLATE_SAVE_OPTS,
		.min_args = 2,
		.max_args = 2,
		.size = sizeof(struct template_save_args),
		.run = template_run_save,
	},
	{ .name = NULL },
};

const struct cmd template_cmd = {
	.name = "template",
	.usage = "COMMAND",
	.brief = "build, load, pull, save, list and remove templates",
	.subs = subs,
};
