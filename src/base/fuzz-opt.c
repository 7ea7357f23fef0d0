/* Lines as command lines: each is parsed by a command that stops at its first argument and by one
 * that does not. Whatever is said, there is an answer, and an error has a text. */
#include "base/check.h"
#include "base/opt.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static char *fuzz_text(const uint8_t *p, size_t n)
{
	char *s = text_dup(p, n);

	check(s);
	return s;
}

struct all {
	bool flag, other;
	const char *text;
	uint32_t num;
	uint64_t size, ms;
	struct opt_list list;
};

#define O(f, n, l, k, a) \
	{ \
		n, l, k, offsetof(struct all, f), a, "help" \
	}
static const struct opt opts[] = {
	O(flag, "interactive", 'i', OPT_FLAG, NULL), O(other, "tty", 't', OPT_FLAG, NULL),
	O(text, "user", 'u', OPT_STR, "USER"),       O(num, "cpus", 0, OPT_U32, "N"),
	O(size, "memory", 'm', OPT_SIZE, "SIZE"),    O(ms, "timeout", 0, OPT_MS, "DURATION"),
	O(list, "env", 'e', OPT_LIST, "NAME=VALUE"),
};

static const struct cmd cmds[] = {
	{ .name = "create",
	  .usage = "",
	  .brief = "x",
	  .opts = opts,
	  .n_opts = ARRAY_SIZE(opts),
	  .max_args = 3 },
	{ .name = "exec",
	  .usage = "",
	  .brief = "x",
	  .opts = opts,
	  .n_opts = ARRAY_SIZE(opts),
	  .min_args = 1,
	  .max_args = SIZE_MAX,
	  .stop_at_first = true },
	{ .name = NULL },
};

enum { WORDS = 64 };

static void parse(const struct cmd *c, char *text)
{
	char *argv[WORDS + 1] = { 0 }, *save = NULL, *at;
	struct all a = { 0 };
	struct args args;
	struct err e = { 0 };
	size_t n = 0, i;
	int r;

	for (at = strtok_r(text, "\n", &save); at && n < WORDS; at = strtok_r(NULL, "\n", &save))
		argv[n++] = at;
	(void)opts_wants_help(c, argv);
	if (n)
		(void)cmd_find(cmds, argv[0], "", &e);
	r = opts_parse(c, &a, argv, &args, &e);
	check(r == 0 || (r == -EINVAL && e.code == r && e.msg[0]));
	if (r == 0) {
		check(args.n <= n && args.n >= c->min_args && args.n <= c->max_args);
		check(args.dashes == SIZE_MAX || args.dashes <= args.n);
		for (i = 0; i < args.n; i++)
			check(args.v[i]);
		check(!args.v[args.n]);
	}
	opts_done(c, &a);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < 2; i++) {
		_free_ char *text = fuzz_text(p, n);

		check(text);
		parse(&cmds[i], text);
	}
	return 0;
}
