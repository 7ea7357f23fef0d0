/* bac kernel build and ls. */
#include <jansson.h>
#include <time.h>

#include "base/text.h"
#include "cli/cmds.h"
#include "cli/ctx.h"
#include "cli/progress.h"
#include "image/image.h"

enum { DIGITS = 12 };

/* ---- build ---- */

struct build_args {
	const char *config, *mirror, *suite;
	bool fresh, json, quiet;
};

static const struct opt build_opts[] = {
	{ "config", 0, OPT_STR, offsetof(struct build_args, config), "FILE",
	  "kernel configuration, over allnoconfig (default: bac's own)" },
	{ "fresh", 0, OPT_FLAG, offsetof(struct build_args, fresh), NULL,
	  "build even if there is a kernel from the same inputs" },
	{ "json", 0, OPT_FLAG, offsetof(struct build_args, json), NULL, "print JSON" },
	{ "mirror", 0, OPT_STR, offsetof(struct build_args, mirror), "URL",
	  "Debian mirror (default: the setting template.mirror, else the host's)" },
	{ "quiet", 'q', OPT_FLAG, offsetof(struct build_args, quiet), NULL,
	  "show no progress, print the digest only" },
	{ "suite", 0, OPT_STR, offsetof(struct build_args, suite), "SUITE",
	  "Debian suite (default: the setting template.suite)" },
};

static json_t *kernel_json(const struct image_kernel *k)
{
	char created[32];

	return json_pack("{s:s, s:s, s:s, s:I, s:s}", "release", k->release, "kind", k->kind,
			 "digest", k->digest, "size", (json_int_t)k->size, "created_at",
			 utc(created, sizeof(created), k->created));
}

static int show_built(const struct build_args *o, const struct image_kernel *k, bool made,
		      struct err *e)
{
	char size[32];

	if (o->json) {
		json_t *j = kernel_json(k);

		(void)json_object_set_new(j, "made", json_boolean(made));
		return print_json(j, e);
	}
	if (o->quiet)
		(void)printf("%s\n", k->digest);
	else
		(void)printf("%s kernel %s (%.*s, %s, %s)\n",
			     made ? "Built" : "Up to date:", k->release, DIGITS, k->digest, k->kind,
			     text_from_size(size, sizeof(size), k->size));
	return flush_out(e);
}

static int build(struct ctx *c, const struct build_args *o, struct err *e)
{
	_free_ char *mirror = NULL, *suite = NULL, *init = dirs_join(c->dirs.libexec, "bac-init");
	_free_ char *config =
		o->config ? strdup(o->config) : dirs_join(c->dirs.data, "kernel/minimal.config");
	struct image_kernel k = { 0 };
	struct progress progress;
	struct image_build b = { .cache = c->dirs.cache, .data = c->dirs.data, .init = init };
	bool made = false;
	int r;

	if (!init || !config)
		return err_errno(e, -ENOMEM, "cannot build the kernel");
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
	r = image_kernel_build(&b, config, &k, &made, e);
	progress_end(&progress);
	if (r == 0)
		r = show_built(o, &k, made, e);
	image_kernel_done(&k);
	if (r == -EINTR && progress_signal()) {
		say("%s", e->msg);
		return progress_signal();
	}
	return r < 0 ? err_ctx(e, "cannot build the kernel") : r;
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

/* ---- ls ---- */

struct ls_args {
	bool json, quiet;
};

static const struct opt ls_opts[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct ls_args, json), NULL, "print JSON" },
	{ "quiet", 'q', OPT_FLAG, offsetof(struct ls_args, quiet), NULL, "print digests only" },
};

static int ls_json(const struct image_kernel *v, size_t n, struct err *e)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < n; i++)
		(void)json_array_append_new(list, kernel_json(&v[i]));
	return print_json(json_pack("{s:o}", "kernels", list), e);
}

static int ls_table(const struct image_kernel *v, size_t n, struct err *e)
{
	char size[32], age[64];
	int wide = (int)strlen("KERNEL");
	size_t i;

	if (!n) {
		(void)printf("No kernels found. One comes with a template: bac template build\n");
		return flush_out(e);
	}
	for (i = 0; i < n; i++)
		wide = MAX(wide, (int)strlen(v[i].release));
	(void)printf("%-*s   %-8s   %-*s   %-9s   %s\n", wide, "KERNEL", "KIND", DIGITS, "DIGEST",
		     "SIZE", "CREATED");
	for (i = 0; i < n; i++) {
		int64_t s = MAX(time(NULL) - v[i].created, 0);

		(void)printf("%-*s   %-8s   %.*s   %-9s   %s ago\n", wide, v[i].release, v[i].kind,
			     DIGITS, v[i].digest, text_from_size(size, sizeof(size), v[i].size),
			     text_from_ms(age, sizeof(age), (uint64_t)s * 1000));
	}
	return flush_out(e);
}

static int ls_names(const struct image_kernel *v, size_t n, struct err *e)
{
	size_t i;

	for (i = 0; i < n; i++)
		(void)printf("%.*s\n", DIGITS, v[i].digest);
	return flush_out(e);
}

static int run_ls(void *opt, struct args *args, struct err *e)
{
	struct ls_args *o = opt;
	struct image_kernel *v;
	struct dirs d = { 0 };
	size_t n, i;
	int r = dirs_get(&d, e);

	(void)args;
	if (r == 0) {
		image_sweep(d.cache);
		r = image_kernel_ls(d.cache, &v, &n, e);
	}
	dirs_done(&d);
	if (r != 0)
		return r;
	if (o->json)
		r = ls_json(v, n, e);
	else
		r = o->quiet ? ls_names(v, n, e) : ls_table(v, n, e);
	for (i = 0; i < n; i++)
		image_kernel_done(&v[i]);
	free(v);
	return r;
}

static const struct cmd subs[] = {
	{
		.name = "build",
		.usage = "[OPTIONS]",
		.brief = "make a minimal kernel from Debian's source",
		.text = "Takes some minutes, and needs a compiler. Sandboxes boot faster with it: "
			"when it is there, it is\n"
			"used instead of Debian's (see the setting vm.kernel).",
		.opts = build_opts,
		.n_opts = ARRAY_SIZE(build_opts),
		.size = sizeof(struct build_args),
		.run = run_build,
	},
	{
		.name = "ls",
		.usage = "[OPTIONS]",
		.brief = "list kernels",
		.opts = ls_opts,
		.n_opts = ARRAY_SIZE(ls_opts),
		.size = sizeof(struct ls_args),
		.run = run_ls,
	},
	{ .name = NULL },
};

const struct cmd kernel_cmd = {
	.name = "kernel",
	.usage = "COMMAND",
	.brief = "build and list kernels",
	.subs = subs,
};
