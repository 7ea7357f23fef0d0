/* bac version, completion, and the manual page's source. */
#include <jansson.h>
#include <stdio.h>

#include "cli/cmds.h"
#include "cli/completion.h"
#include "cli/ctx.h"
#include "cli/manual.h"
#include "config.h"

struct version_args {
	bool json;
};

static const struct opt version_opts[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct version_args, json), NULL, "print JSON" },
};

static int run_version(void *opt, struct args *args, struct err *e)
{
	struct version_args *o = opt;

	(void)args;
	if (o->json)
		return print_json(json_pack("{s:s}", "version", BAC_VERSION), e);
	(void)printf("bac version: v%s\n", BAC_VERSION);
	return flush_out(e);
}

const struct cmd version_cmd = {
	.name = "version",
	.usage = "[OPTIONS]",
	.brief = "print the version",
	.opts = version_opts,
	.n_opts = ARRAY_SIZE(version_opts),
	.max_args = 0,
	.size = sizeof(struct version_args),
	.run = run_version,
};

enum { PAGE_MAX = 1024 * 1024 };

static int print_page(int (*make)(struct buf *out, const struct cmd *cmds), struct err *e)
{
	struct buf out = BUF_INIT(PAGE_MAX);
	int r = make(&out, cmds_all());

	if (r < 0)
		(void)err_errno(e, r, "cannot print it");
	else if (fwrite(buf_data(&out), 1, out.n, stdout) != out.n)
		r = err_set(e, -EIO, "cannot write the output");
	else
		r = flush_out(e);
	buf_done(&out);
	return r;
}

static int run_completion(void *opt, struct args *args, struct err *e)
{
	static const struct {
		const char *shell;
		int (*make)(struct buf *out, const struct cmd *cmds);
	} shells[] = { { "bash", completion_bash },
		       { "zsh", completion_zsh },
		       { "fish", completion_fish } };
	size_t i;

	(void)opt;
	for (i = 0; i < ARRAY_SIZE(shells); i++)
		if (streq(shells[i].shell, args->v[0]))
			return print_page(shells[i].make, e);
	return err_set(e, -EINVAL, "completion: '%.40s' is none of bash, zsh, fish", args->v[0]);
}

const struct cmd completion_cmd = {
	.name = "completion",
	.usage = "bash|zsh|fish",
	.brief = "print a completion script for a shell",
	.text = "For bash: source <(bac completion bash)",
	.min_args = 1,
	.max_args = 1,
	.run = run_completion,
};

static int run_manual(void *opt, struct args *args, struct err *e)
{
	(void)opt;
	(void)args;
	return print_page(manual_page, e);
}

const struct cmd manual_cmd = {
	.name = "manual",
	.usage = "",
	.brief = "print the manual page's source",
	.hidden = true,
	.max_args = 0,
	.run = run_manual,
};
