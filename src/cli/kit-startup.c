/* Volumes, and the commands of each start.
 *
 * Startup commands are detached jobs of the supervisor: they need no command of ours to stay, their output is in the sandbox's log. Each one waits for its turn at a FIFO of its
 * own in /run/bac/kit, which the one before opens: when it has ended, or, if it is one of the background, at once. So they come in order, though nobody waits for them here. */
#include <stdio.h>

#include "cli/exec.h"
#include "cli/kit-apply.h"

enum { DOOR_MS = 10000 };

/* ---- volumes ---- */

/* $1...: kind, path, size, mode; four for each. A folder that is there keeps what it has. */
static const char volumes[] =
	"set -eu\n"
	"while [ $# -gt 0 ]; do\n"
	"\tif [ \"$1\" = tmpfs ]; then\n"
	"\t\tmkdir -p \"$2\"\n"
	"\t\tgrep -q \"^bac-volume $2 \" /proc/mounts ||\n"
	"\t\t\tmount -t tmpfs -o \"nosuid,nodev,uid=1000,gid=1000,size=$3,mode=$4\" bac-volume "
	"\"$2\"\n"
	"\telif [ ! -d \"$2\" ]; then\n"
	"\t\tmkdir -p \"$2\"\n"
	"\t\tchown 1000:1000 \"$2\"\n"
	"\t\tchmod \"$4\" \"$2\"\n"
	"\tfi\n"
	"\tshift 4\n"
	"done\n";

int kit_apply_volumes(struct ctx *c, const struct sandbox *b, const struct kit_box *k,
		      struct err *e)
{
	size_t n = k->kit.n_volumes;
	struct text {
		char size[24], mode[16];
	} *texts = calloc(n + 1, sizeof(*texts));
	const char **words = calloc(4 * n + 1, sizeof(*words));
	struct kit_script s = {
		.user = "0", .script = volumes, .what = "the volumes of the kits", .words = words
	};
	int r = 0;

	if (!words || !texts)
		r = err_errno(e, -ENOMEM, "volumes");
	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct kit_volume *v = &k->kit.volumes[i];

		(void)snprintf(texts[i].size, sizeof(texts[i].size), "%llu",
			       (unsigned long long)v->size);
		(void)snprintf(texts[i].mode, sizeof(texts[i].mode), "%04o",
			       v->mode ? v->mode : 0755);
		words[4 * i] = v->tmpfs ? "tmpfs" : "folder";
		words[4 * i + 1] = v->path;
		words[4 * i + 2] = v->size ? texts[i].size : "50%";
		words[4 * i + 3] = texts[i].mode;
	}
	if (r == 0 && n)
		r = kit_apply_script(c, b, &s, e);
	free(words);
	free(texts);
	return r;
}

/* ---- startup ---- */

#define GATES "/run/bac/kit"
#define TURN  GATES "/turn"

/* $1: the last number; input: the script below */
static const char gates[] =
	"set -eu\n"
	"umask 0\n"
	"mkdir -p -m 755 /run/bac " GATES "\n"
	"cat >" TURN "\n"
	"chmod 755 " TURN "\n"
	"i=1\n"
	"while [ $i -le $1 ]; do rm -f " GATES "/$i; mkfifo " GATES "/$i; i=$((i + 1)); done\n";

/* $1: its number, from 0; $2: the next one, or ""; $3: 1 if that one need not wait; then the command */
static const char turn[] = "#!/bin/sh\n"
			   "n=$1 next=$2 background=$3\n"
			   "shift 3\n"
			   "[ \"$n\" = 0 ] || read -r x <" GATES "/$n\n"
			   "[ -n \"$next\" ] || exec \"$@\"\n"
			   "if [ \"$background\" = 1 ]; then\n"
			   "\techo >" GATES "/$next &\n"
			   "\texec \"$@\"\n"
			   "fi\n"
			   "\"$@\"\n"
			   "s=$?\n"
			   "echo >" GATES "/$next\n"
			   "exit $s\n";

static int start_one(struct door *d, const struct sandbox *b, const struct kit_step *s, size_t i,
		     size_t n, struct err *e)
{
	const char **argv = calloc(s->argc + 8, sizeof(*argv));
	struct envs env = { 0 };
	struct exec_spec x = { .name = b->name,
			       .user = s->user && *s->user ? s->user : "1000",
			       .argv = argv,
			       .env = &env,
			       .detach = true,
			       .flags = EXEC_STARTUP };
	char me[24], next[24] = "", id[WIRE_NAME_MAX + 1];
	int status, r;

	if (!argv)
		return err_errno(e, -ENOMEM, "setup.startup");
	(void)snprintf(me, sizeof(me), "%zu", i);
	if (i + 1 < n)
		(void)snprintf(next, sizeof(next), "%zu", i + 1);
	if (n > 1) {
		argv[x.argc++] = TURN;
		argv[x.argc++] = me;
		argv[x.argc++] = next;
		argv[x.argc++] = s->background ? "1" : "0";
	}
	for (size_t k = 0; k < s->argc; k++)
		argv[x.argc++] = s->argv[k];
	r = exec_put(d, &x, e);
	if (r == 0)
		r = exec_job(d, &x, id, sizeof(id), &status, e);
	free(argv);
	return r == 0 ? 0
		      : err_ctx(e, "the kit '%s': setup.startup, step %zu",
				s->kit ? s->kit : b->agent, i + 1);
}

int kit_apply_startup(struct ctx *c, const struct sandbox *b, const struct kit_box *k,
		      struct err *e)
{
	size_t n = k->kit.n_startup;
	char last[24];
	const char *words[] = { last, NULL };
	const struct kit_script s = {
		.user = "0",
		.script = gates,
		.what = "setup.startup",
		.words = words,
		.in = turn,
		.n_in = sizeof(turn) - 1,
	};
	struct door d;
	int r;

	if (!n)
		return 0;
	(void)snprintf(last, sizeof(last), "%zu", n - 1);
	r = n > 1 ? kit_apply_script(c, b, &s, e) : 0;
	if (r < 0)
		return r;
	r = start_connect(c, b, door_in_ms(DOOR_MS), &d, e);
	if (r != 0)
		return r > 0 ? err_set(e, -EPIPE, "sandbox '%s' has ended", b->name) : r;
	for (size_t i = 0; i < n && r == 0; i++)
		r = start_one(&d, b, &k->kit.startup[i], i, n, e);
	door_done(&d);
	return r;
}
