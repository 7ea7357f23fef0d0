#include "cli/kit-argv.h"

static void put(const char **argv, size_t *n, const char *const *v, size_t n_v)
{
	for (size_t i = 0; i < n_v; i++)
		argv[(*n)++] = v[i];
}

const char **kit_argv(const struct kit *kit, bool tty, const char *const *extra, size_t n_extra,
		      size_t *ret_n)
{
	static const char *const shell[] = { "bash", "-l" };
	const char *const *tail = shell;
	size_t n_tail = ARRAY_SIZE(shell), n_entry = kit ? kit->entrypoint.n : 0, n = 0;
	const char **argv;

	if (kit && (kit->has_command || kit->has_interactive || n_entry)) {
		const struct kit_texts *t =
			tty && kit->has_interactive ? &kit->interactive : &kit->command;

		tail = (const char *const *)t->v;
		n_tail = t->n;
	}
	argv = calloc(n_entry + MAX(n_tail, ARRAY_SIZE(shell)) + n_extra + 1, sizeof(*argv));
	if (!argv)
		return NULL;
	put(argv, &n, kit ? (const char *const *)kit->entrypoint.v : NULL, n_entry);
	if (!n_extra || extra[0][0] == '-')
		put(argv, &n, tail, n_tail);
	put(argv, &n, extra, n_extra);
	if (!n) /* an empty command */
		put(argv, &n, shell, ARRAY_SIZE(shell));
	*ret_n = n;
	return argv;
}
