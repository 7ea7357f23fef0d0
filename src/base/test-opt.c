/* The option parser and the help, by tables. */
#include "base/opt.h"

#include "base/check.h"

struct all {
	bool flag, other;
	const char *text;
	uint32_t num;
	uint64_t size, ms;
	struct opt_list list;
};

#define O(f, n, l, k, a, h) \
	{ \
		n, l, k, offsetof(struct all, f), a, h \
	}
static const struct opt opts[] = {
	O(flag, "interactive", 'i', OPT_FLAG, NULL, "keep stdin open"),
	O(other, "tty", 't', OPT_FLAG, NULL, "a terminal"),
	O(text, "user", 'u', OPT_STR, "USER", "who runs it"),
	O(num, "cpus", 0, OPT_U32, "N", "processors"),
	O(size, "memory", 'm', OPT_SIZE, "SIZE", "memory"),
	O(ms, "timeout", 0, OPT_MS, "DURATION", "end it after that"),
	O(list, "env", 'e', OPT_LIST, "NAME=VALUE", "for the environment"),
};

static const struct cmd plain = {
	.name = "create",
	.usage = "[OPTIONS] [NAME]",
	.brief = "make a sandbox",
	.opts = opts,
	.n_opts = ARRAY_SIZE(opts),
	.max_args = 2,
	.size = sizeof(struct all),
};

static const struct cmd stopping = {
	.name = "exec",
	.usage = "[OPTIONS] SANDBOX COMMAND [ARG...]",
	.brief = "run a command",
	.opts = opts,
	.n_opts = ARRAY_SIZE(opts),
	.min_args = 2,
	.max_args = SIZE_MAX,
	.stop_at_first = true,
	.size = sizeof(struct all),
};

enum { WORDS = 16 };

/* Splits at '|' into argv, which lives until the next call. */
static char **words(const char *line)
{
	static char text[512];
	static char *argv[WORDS + 1];
	char *at = text, *save = NULL;
	size_t n = 0;

	check(strlen(line) < sizeof(text));
	memcpy(text, line, strlen(line) + 1);
	for (at = strtok_r(text, "|", &save); at; at = strtok_r(NULL, "|", &save)) {
		check(n < WORDS);
		argv[n++] = at;
	}
	argv[n] = NULL;
	return argv;
}

/* What was understood, on one line. */
static const char *shown(const struct all *a, const struct args *args)
{
	static struct buf b = BUF_INIT(4096);
	size_t i;

	buf_done(&b);
	check(buf_printf(&b, "%s%s", a->flag ? "i " : "", a->other ? "t " : "") == 0);
	if (a->text)
		check(buf_printf(&b, "u=%s ", a->text) == 0);
	if (a->num || a->size || a->ms)
		check(buf_printf(&b, "%u/%llu/%llu ", a->num, (unsigned long long)a->size,
				 (unsigned long long)a->ms) == 0);
	for (i = 0; i < a->list.n; i++)
		check(buf_printf(&b, "e=%s ", a->list.v[i]) == 0);
	check(buf_printf(&b, ":") == 0);
	for (i = 0; i < args->n; i++)
		check(buf_printf(&b, " %s", args->v[i]) == 0);
	check(!args->v[args->n]);
	if (args->dashes != SIZE_MAX)
		check(buf_printf(&b, " --%zu", args->dashes) == 0);
	return buf_str(&b);
}

static const struct row {
	const struct cmd *c;
	const char *line;
	const char *want; /* or the start of the error */
} rows[] = {
	{ &plain, "", ":" },
	{ &plain, "a|b", ": a b" },
	{ &plain, "a|-i|b|-t", "i t : a b" },
	{ &plain, "-it", "i t :" },
	{ &plain, "-itu|root", "i t u=root :" },
	{ &plain, "-ituroot", "i t u=root :" },
	{ &plain, "-u=root", "u=root :" },
	{ &plain, "--user=root|--tty", "t u=root :" },
	{ &plain, "--user|root|--user|me", "u=me :" },
	{ &plain, "--user=", "u= :" },
	{ &plain, "--user|--tty", "u=--tty :" },
	{ &plain, "--user=a=b", "u=a=b :" },
	{ &plain, "--tty=true", "t :" },
	{ &plain, "--cpus|4|-m|512m|--timeout=1h30m", "4/536870912/5400000 :" },
	{ &plain, "--cpus=4294967295", "4294967295/0/0 :" },
	{ &plain, "-e|A=1|-eB=2|--env=C=3|--env|D=", "e=A=1 e=B=2 e=C=3 e=D= :" },
	{ &plain, "-", ": -" },
	{ &plain, "a|--|-b", ": a -b --1" },
	{ &plain, "--|--", ": -- --0" },
	{ &plain, "--|a|-i", ": a -i --0" },
	{ &stopping, "-i|box|ls|-la|--user", "i : box ls -la --user" },
	{ &stopping, "box|--|ls", ": box -- ls" },
	{ &stopping, "-i|--|box|-x", "i : box -x --0" },
	/* errors */
	{ &plain, "a|b|c", "create: unexpected argument 'c' (usage: bac create [OPTIONS] [NAME])" },
	{ &stopping, "box", "exec: too few arguments (usage: bac exec " },
	{ &plain, "--usr", "unknown option '--usr' (did you mean '--user'?)" },
	{ &plain, "--usr=x", "unknown option '--usr' (did you mean '--user'?)" },
	{ &plain, "--inter", "unknown option '--inter' (did you mean '--interactive'?)" },
	{ &plain, "--frobnicate", "unknown option '--frobnicate' (see 'bac create --help')" },
	{ &plain,
	  "--a-very-long-option-name-that-no-table-has-in-it-and-that-nobody-will-ever-mean",
	  "unknown option '--a-very-long-option-name-that-no-table-has-in-it-and-that-nobody' "
	  "(see" },
	{ &plain, "-x", "unknown option '-x' (see 'bac create --help')" },
	{ &plain, "-ix", "unknown option '-x'" },
	{ &plain, "-\377", "unknown option '-?'" },
	{ &plain, "--user", "--user needs a value (USER)" },
	{ &plain, "-u", "-u needs a value (USER)" },
	{ &plain, "-iu", "-u needs a value (USER)" },
	{ &plain, "--tty=false", "--tty takes no value" },
	{ &plain, "--cpus=-1", "--cpus: '-1' is not a number" },
	{ &plain, "--cpus=4294967296", "--cpus: '4294967296' is too large" },
	{ &plain, "-m|lots", "--memory: 'lots' is not a size (as in 512m or 8g)" },
	{ &plain, "-m|99999999t", "--memory: '99999999t' is too large" },
	{ &plain, "--timeout=soon", "--timeout: 'soon' is not a duration" },
};

static void parses(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct all a = { 0 };
		struct args args = { 0 };
		struct err e = { 0 };
		int r = opts_parse(rows[i].c, &a, words(rows[i].line), &args, &e);
		const char *have = r == 0 ? shown(&a, &args) : e.msg;

		check(r == 0 || r == -EINVAL);
		if (strncmp(have, rows[i].want, r == 0 ? SIZE_MAX / 2 : strlen(rows[i].want)) !=
		    0) {
			fprintf(stderr, "row %zu: '%s' gives '%s'\n", i, rows[i].line, have);
			check(false);
		}
		opts_done(rows[i].c, &a);
		check(!a.list.v && !a.list.n);
	}
}

static void long_lists(void)
{
	char **argv = calloc(2 * OPT_LIST_MAX + 3, sizeof(*argv));
	char e_word[] = "-e", value[] = "A=1";
	struct all a = { 0 };
	struct args args;
	struct err e;
	size_t i;

	check(argv);
	for (i = 0; i < OPT_LIST_MAX; i++) {
		argv[2 * i] = e_word;
		argv[2 * i + 1] = value;
	}
	check(opts_parse(&plain, &a, argv, &args, &e) == 0 && a.list.n == OPT_LIST_MAX);
	opts_done(&plain, &a);
	for (i = 0; i <= OPT_LIST_MAX; i++) {
		argv[2 * i] = e_word;
		argv[2 * i + 1] = value;
	}
	check(opts_parse(&plain, &a, argv, &args, &e) == -EINVAL);
	check(streq(e.msg, "--env was given more than 4096 times"));
	opts_done(&plain, &a);
	free(argv);
}

static void wants_help(void)
{
	check(opts_wants_help(&plain, words("-h")));
	check(opts_wants_help(&plain, words("a|--help")));
	check(opts_wants_help(&plain, words("-u|x|--help")));
	check(!opts_wants_help(&plain, words("-u|--help")));
	check(!opts_wants_help(&plain, words("--user|-h")));
	check(opts_wants_help(&plain, words("--user=x|-h")));
	check(!opts_wants_help(&plain, words("--|-h")));
	check(!opts_wants_help(&plain, words("")));
	check(opts_wants_help(&stopping, words("-i|-h")));
	check(!opts_wants_help(&stopping, words("box|ls|-h")));
	check(!opts_wants_help(&stopping, words("-u|root|box|ls|--help")));
}

static const struct cmd subs[] = {
	{ .name = "build", .usage = "", .brief = "build it" },
	{ .name = "hidden", .usage = "", .brief = "do not look", .hidden = true },
	{ .name = "ls", .usage = "", .brief = "list them" },
	{ .name = NULL },
};

static void finds(void)
{
	struct err e;

	check(cmd_find(subs, "ls", "", &e) == &subs[2]);
	check(!cmd_find(subs, "biuld", "template ", &e) && e.code == -EINVAL);
	check(streq(e.msg, "unknown command 'template biuld' (did you mean 'build'?)"));
	check(!cmd_find(subs, "frobnicate", "", &e));
	check(streq(e.msg, "unknown command 'frobnicate' (see 'bac --help')"));
	check(!cmd_find(subs, "", "", &e));
}

static void helps(void)
{
	const struct cmd above = { .name = "template",
				   .usage = "COMMAND",
				   .brief = "templates",
				   .subs = subs,
				   .text = "More." };
	struct buf b = BUF_INIT(65536), tight;
	const char *s;
	size_t max;

	check(cmd_help(&b, "bac create", &plain) == 0);
	s = buf_str(&b);
	check(starts_with(s,
			  "Usage: bac create [OPTIONS] [NAME]\n\nMake a sandbox.\n\nOptions:\n"));
	check(strstr(s, "\n  -i, --interactive             keep stdin open\n"));
	check(strstr(s, "\n      --cpus N                  processors\n"));
	check(strstr(s, "\n  -h, --help                    show this text\n"));
	max = b.n;
	buf_consume(&b, b.n);
	check(cmd_help(&b, "bac template", &above) == 0);
	s = buf_str(&b);
	check(strstr(
		s, "\nMore.\n\nCommands:\n  build         build it\n  ls            list them\n"));
	check(!strstr(s, "hidden"));
	buf_done(&b);

	buf_init(&tight, max);
	check(cmd_help(&tight, "bac create", &plain) == 0);
	buf_done(&tight);
	buf_init(&tight, max - 1);
	check(cmd_help(&tight, "bac create", &plain) == -ENOBUFS);
	buf_done(&tight);
}

int main(void)
{
	parses();
	long_lists();
	wants_help();
	finds();
	helps();
	return 0;
}
