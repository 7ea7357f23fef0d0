/* bac: the small program in front of the large one.
 *
 * Most calls are `bac exec` in a sandbox that runs already, and an agent makes thousands of them. The large program
 * (main.c, bac-commands beside the supervisor) loads the libraries of a database, of JSON and of digests, which
 * costs more than all that such a call has to do. So this one is linked with none of them, statically, and does
 * this one thing: it looks up the name (state/known.h), connects, and lets the command run. Everything else, and
 * whatever is not plain, is left to the large program, with the same arguments: nothing was read or changed until
 * a guest that is ready has answered, and from there on there is no way back. */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "cli/cmds.h"
#include "cli/exec.h"
#include "io/fd.h"
#include "state/known.h"
#include "sys/dirs.h"

/* Who does not answer in this time is waited for by the large program. */
enum { PATIENCE_MS = 500 };

static const struct cmd exec_words = { .name = "exec", EXEC_PARSE };

/* The directory of its socket on the heap; NULL: the name is not known. */
static char *run_dir_of(const char *name)
{
	char id[KNOWN_ID + 1], *dir = NULL;
	struct dirs dirs;

	if (dirs_peek(&dirs) < 0)
		return NULL;
	if (known_find(dirs.state, name, id) == 0)
		dir = dirs_join(dirs.run, id);
	dirs_done(&dirs);
	return dir;
}

/* A guest that is ready. 0, else anything negative. The question goes out before the greeting came, so that both
 * answers come at once. */
static int reach(const char *name, struct door *ret)
{
	_free_ char *run_dir = run_dir_of(name);
	uint64_t end = door_in_ms(PATIENCE_MS);
	struct err none = { 0 };
	struct wire_frame f;
	struct door d;
	int r = run_dir ? door_connect(run_dir, &d, &none) : -ENOENT;

	if (r < 0)
		return r;
	r = wire_empty_add(&d.out, 0, WIRE_WAIT);
	if (r == 0)
		r = door_flush(&d, end);
	if (r == 0)
		r = door_greeted(&d, end);
	if (r == 0)
		r = door_answer(&d, name, WIRE_DONE, end, &f, &none);
	if (r < 0) {
		door_done(&d);
		return r;
	}
	*ret = d;
	return 0;
}

static int command(struct door *d, const struct exec_args *o, const struct exec_spec *bare)
{
	struct err e = { 0 };
	struct envs env = { 0 };
	struct exec_spec x = *bare;
	int r = exec_env(o, &env, &e);

	x.env = &env;
	if (r == 0)
		r = exec_over(d, &x, &e);
	envs_done(&env);
	if (r >= 0)
		return r;
	say("%s", e.msg);
	return STATUS_BAC;
}

/* The exit status, or negative: it is not for us, and nothing has happened. The words may be reordered. */
static int try_exec(char **words)
{
	struct exec_args o = { 0 };
	struct err none = { 0 };
	struct exec_spec x;
	struct args args;
	struct door d;
	int r;

	if (opts_wants_help(&exec_words, words))
		return -EINVAL;
	r = opts_parse(&exec_words, &o, words, &args, &none);
	if (r == 0 && (o.list || o.attach || o.kill))
		r = -EINVAL;
	if (r == 0)
		r = exec_spec(&o, &args, &x, &none);
	if (r == 0)
		r = reach(args.v[0], &d);
	if (r == 0) {
		r = command(&d, &o, &x);
		door_done(&d);
	}
	opts_done(&exec_words, &o);
	return r;
}

/* 0, 1 and 2 must be ours before anything is opened, or a file would land there. */
static void fill_standard(void)
{
	int fd;

	do
		/* NOLINTNEXTLINE(android-cloexec-open): they are for children too */
		fd = open("/dev/null", O_RDWR | O_NOCTTY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		(void)close(fd);
}

static int large(char **argv)
{
	_free_ char *prog = dirs_program("bac-commands");

	if (prog)
		(void)execv(prog, argv);
	say("cannot run %s: %s", prog ? prog : "bac-commands", err_text(prog ? errno : ENOMEM));
	return STATUS_BAC;
}

int main(int argc, char **argv)
{
	_free_ char **words = NULL;
	int r = -EINVAL;

	fill_standard();
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc > 2 && streq(argv[1], "exec")) {
		words = calloc((size_t)argc, sizeof(*words));
		if (words)
			memcpy(words, argv + 1, (size_t)argc * sizeof(*words)); /* with the NULL */
		r = words ? try_exec(words + 1) : -ENOMEM;
	}
	return r < 0 ? large(argv) : r;
}
