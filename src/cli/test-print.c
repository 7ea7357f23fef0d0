/* The manual and the completion scripts from a small table of our own. With an argument this
 * program prints one of them, for test/print.sh, which hands it to the shell or to mandoc. */
#include <stdio.h>

#include "base/check.h"
#include "cli/completion.h"
#include "cli/manual.h"
#include "cli/walk.h"

static const struct opt exec_opts[] = {
	{ "interactive", 'i', OPT_FLAG, 0, NULL, "keep stdin open" },
	{ "env", 'e', OPT_LIST, 0, "NAME=VALUE", "set a variable; 'a:b' and \\ are text" },
	{ "env-file", 0, OPT_LIST, 0, "FILE", "read variables" },
	{ "accel", 0, OPT_STR, 0, "kvm|tcg", "accelerator" },
};

static const struct cmd template_cmds[] = {
	{ .name = "build", .usage = "[OPTIONS]", .brief = "make the default template" },
	{ .name = "rm", .usage = "TAG [TAG...]", .brief = "remove templates" },
	{ 0 },
};

static const struct cmd cmds[] = {
	{ .name = "exec",
	  .usage = "[OPTIONS] SANDBOX COMMAND [ARG...]",
	  .brief = "run a command in a sandbox",
	  .text = "The command's status is ours.\n.Dots and 'quotes' begin a line.\n\n"
		  "  bac exec web make -j4\n  bac exec web ls\n\nMore text.",
	  .opts = exec_opts,
	  .n_opts = ARRAY_SIZE(exec_opts),
	  .stop_at_first = true },
	{ .name = "stop", .usage = "SANDBOX [SANDBOX...]", .brief = "stop sandboxes" },
	{ .name = "cp", .usage = "[OPTIONS] SRC DST", .brief = "copy" },
	{ .name = "completion", .usage = "bash|zsh|fish", .brief = "print a completion script" },
	{ .name = "secret-door", .usage = "", .brief = "not shown", .hidden = true },
	{ .name = "template", .usage = "COMMAND", .brief = "templates", .subs = template_cmds },
	{ 0 },
};

static void walks_in_order(void)
{
	static const char *const want[] = { "exec",       "stop",     "cp",
					    "completion", "template", "template build",
					    "template rm" };
	struct walk w;
	size_t i;

	walk_init(&w, cmds);
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		check(walk_next(&w));
		check(streq(w.path, want[i]));
	}
	check(!walk_next(&w));
	check(!walk_next(&w));
}

static void usage_words(void)
{
	const char *p = "[OPTIONS] SANDBOX [COMMAND [ARG...]] [-- X...]";
	char word[WALK_WORD_MAX];
	bool more;

	check(streq(walk_usage(&p, word, &more), "SANDBOX") && !more);
	check(streq(walk_usage(&p, word, &more), "COMMAND") && !more);
	check(streq(walk_usage(&p, word, &more), "ARG") && more);
	check(!walk_usage(&p, word, &more));
	p = "";
	check(!walk_usage(&p, word, &more));
	p = "[SANDBOX...]";
	check(streq(walk_usage(&p, word, &more), "SANDBOX") && more);
}

static const struct {
	const char *name;
	int (*print)(struct buf *out, const struct cmd *cmds);
	const char *want[4]; /* what must be in it */
} sheets[] = {
	{ "manual",
	  manual_page,
	  { "\\fB\\-i\\fR, \\fB\\-\\-interactive\\fR\nkeep stdin open\n",
	    "\\&.Dots and 'quotes' begin a line.\n",
	    ".nf\n.RS 4\nbac exec web make \\-j4\nbac exec web ls\n.RE\n.fi\n.PP\nMore text.\n",
	    ".SS \"bac template rm\"\n" } },
	{ "bash",
	  completion_bash,
	  { "valued='--env:- -e:- --env-file:f --accel:kvm|tcg'", "args='s - -*' first=1",
	    "'template') subs='build rm'", "args='bash|zsh|fish'" } },
	{ "zsh",
	  completion_zsh,
	  { "'-e:set a variable; '\\''a:b'\\'' and \\ are text'", "'template:templates'",
	    "args='s s*'", "takes+=(--accel 'kvm|tcg')" } },
	{ "fish",
	  completion_fish,
	  { "-d 'set a variable; \\'a:b\\' and \\\\ are text'",
	    "complete -c bac -n '__bac_at \"template\" 0' -a rm -d 'remove templates'",
	    "printf '%s\\n' '' --env -e --env-file --accel", "__bac_at \"stop\" 1+" } },
};

static void says_what_it_must(size_t i)
{
	struct buf out = BUF_INIT(1 << 20);
	size_t k;

	check(sheets[i].print(&out, cmds) == 0);
	for (k = 0; k < ARRAY_SIZE(sheets[i].want); k++)
		if (!strstr(buf_str(&out), sheets[i].want[k])) {
			fprintf(stderr, "%s lacks: %s\n%s", sheets[i].name, sheets[i].want[k],
				buf_str(&out));
			abort();
		}
	check(!strstr(buf_str(&out), "secret-door"));
	buf_done(&out);
}

/* A buffer that is too small is an answer, wherever it fills up. */
static void full_is_told(size_t i)
{
	size_t max;

	for (max = 0; max < 4096; max += 61) {
		struct buf out = BUF_INIT(max);
		int r = sheets[i].print(&out, cmds);

		check(r == -ENOBUFS || (r == 0 && out.n <= max));
		buf_done(&out);
	}
}

static int print_one(const char *name)
{
	struct buf out = BUF_INIT(1 << 20);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sheets); i++)
		if (streq(sheets[i].name, name)) {
			check(sheets[i].print(&out, cmds) == 0);
			fwrite(buf_data(&out), 1, out.n, stdout);
			buf_done(&out);
			return 0;
		}
	return 2;
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc > 1)
		return print_one(argv[1]);
	walks_in_order();
	usage_words();
	for (i = 0; i < ARRAY_SIZE(sheets); i++) {
		says_what_it_must(i);
		full_is_told(i);
	}
	return 0;
}
