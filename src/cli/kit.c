/* bac kit: the table of its commands. */
#include "cli/kit.h"

#include "cli/cmds.h"

/* clang-format off */
static const struct opt pack_opts[] = {
	{ "output", 'o', OPT_STR, offsetof(struct kit_pack_args, out), "OUT.zip", "name of the ZIP (default: of the folder)" },
	{ "force", 'f', OPT_FLAG, offsetof(struct kit_pack_args, force), NULL, "replace a file that is there" },
};
static const struct opt add_opts[] = {
	{ "kit-arg", 0, OPT_LIST, offsetof(struct kit_add_args, args), "NAME=VALUE", "an argument of the kit; repeatable" },
	{ "kit-args-file", 0, OPT_LIST, offsetof(struct kit_add_args, args_files), "FILE", "read such arguments from a file, one a line; repeatable" },
};
static const struct opt pull_opts[] = {
	{ "force", 'f', OPT_FLAG, offsetof(struct kit_pack_args, force), NULL, "replace a file that is there" },
};
static const struct opt init_opts[] = {
	{ "force", 'f', OPT_FLAG, offsetof(struct kit_init_args, force), NULL, "replace a spec.yaml that is there" },
	{ "name", 0, OPT_STR, offsetof(struct kit_init_args, name), "NAME", "name of the kit (default: of the folder)" },
};
static const struct opt show_opts[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct kit_show_args, json), NULL, "print JSON" },
	{ "kit-arg", 0, OPT_LIST, offsetof(struct kit_show_args, args), "[KIT.]NAME=VALUE", "an argument of the kit" },
	{ "kit-args-file", 0, OPT_LIST, offsetof(struct kit_show_args, args_files), "FILE", "arguments, one a line" },
};
/* clang-format on */

static const struct cmd subs[] = {
	{ .name = "validate",
	  .usage = "[OPTIONS] REF",
	  .brief = "say all that is wrong with a kit",
	  .text = "Each fault has file, line, column and field, says what was found and what is "
		  "expected. Nothing is printed\nabout a kit that is as it should be. The status "
		  "is 0 if "
		  "it can be used, 1 if it cannot.",
	  .opts = show_opts,
	  .n_opts = ARRAY_SIZE(show_opts),
	  .min_args = 1,
	  .max_args = 1,
	  .size = sizeof(struct kit_show_args),
	  .run = kit_run_validate },
	{ .name = "inspect",
	  .usage = "[OPTIONS] REF",
	  .brief = "show what a kit means",
	  .text = "Its normal form: schema 2, with arguments replaced and everything said that is "
		  "taken for granted. In front of\nit, as comments: its files, warnings, and the "
		  "hosts "
		  "that are opened by a credential alone.",
	  .opts = show_opts,
	  .n_opts = ARRAY_SIZE(show_opts),
	  .min_args = 1,
	  .max_args = 1,
	  .size = sizeof(struct kit_show_args),
	  .run = kit_run_inspect },
	{ .name = "init",
	  .usage = "[OPTIONS] [DIR]",
	  .brief = "draft a kit for a repository",
	  .text = "Looks at what says how the project in DIR (default: the current folder) is "
		  "built "
		  "(lock files, CI steps,\nDockerfiles, examples of environments), and writes "
		  "DIR/spec.yaml: "
		  "a mixin, to be read and changed.\nNothing of the repository is run, and nothing "
		  "is asked.",
	  .opts = init_opts,
	  .n_opts = ARRAY_SIZE(init_opts),
	  .max_args = 1,
	  .size = sizeof(struct kit_init_args),
	  .run = kit_run_init },
	{ .name = "add",
	  .usage = "[OPTIONS] SANDBOX REF",
	  .brief = "add a mixin to a sandbox that is there",
	  .text = "It may set variables, install, and have network rules. What else a kit can do "
		  "is done only while "
		  "a sandbox is made:\nsuch a kit is refused.",
	  .opts = add_opts,
	  .n_opts = ARRAY_SIZE(add_opts),
	  .min_args = 2,
	  .max_args = 2,
	  .size = sizeof(struct kit_add_args),
	  .run = kit_run_add },
	{ .name = "pack",
	  .usage = "[OPTIONS] DIR",
	  .brief = "make a ZIP of a kit",
	  .text = "The same files make the same bytes. Links have no place in it.",
	  .opts = pack_opts,
	  .n_opts = ARRAY_SIZE(pack_opts),
	  .min_args = 1,
	  .max_args = 1,
	  .size = sizeof(struct kit_pack_args),
	  .run = kit_run_pack },
	{ .name = "pull",
	  .usage = "[OPTIONS] REF [DIR]",
	  .brief = "fetch a kit, as a ZIP in the current folder or in DIR",
	  .text = "Says which content it is: the reference that is printed names it for ever.",
	  .opts = pull_opts,
	  .n_opts = ARRAY_SIZE(pull_opts),
	  .min_args = 1,
	  .max_args = 2,
	  .size = sizeof(struct kit_pack_args),
	  .run = kit_run_pull },
	{ .name = NULL },
};

const struct cmd kit_cmd = {
	.name = "kit",
	.usage = "COMMAND",
	.brief = "check, draft and carry kits: environments of agents as reviewed text",
	.text = "A kit is a folder with spec.yaml and, if it brings files, files/home and "
		"files/workspace. REF is one of\n\n"
		"  NAME                            built in, as 'claude'\n"
		"  ./DIR, ../DIR, /DIR, X.zip      on this machine (setting kit.allowLocalKits)\n"
		"  git+https://HOST/PATH#ref=REF&dir=DIR, git+ssh://git@HOST/PATH#...\n"
		"  oci://REF, HOST/REPO:TAG, HOST/REPO@sha256:HEX, NAMESPACE/KIT:TAG\n\n"
		"Where kits may come from is the setting kit.allowedSources.",
	.subs = subs,
};
