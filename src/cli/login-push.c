#include "cli/login-push.h"

#include <stdio.h>

#include "cli/start.h"
#include "io/fd.h"

enum { CONNECT_MS = 5000, WRITE_MS = 30000, LINK = 3 };

/* $1: the path below the home directory; stdin: the file. It goes down part by part, so that no link is followed. What is there already is ours if all but its times
 * (13 digits, or as in RFC 3339) is what is written now, or if it has a client use a key that stands outside: there is none, where a login is used. */
/* clang-format off */
static const char script[] =
	"set -eu\n"
	"umask 077\n"
	"cd -P /home/agent\n"
	"disk=$(stat -c %d .)\n"
	"rest=$1\n"
	"while [ \"$rest\" != \"${rest#*/}\" ]; do\n"
	"\tpart=./${rest%%/*}\n"
	"\trest=${rest#*/}\n"
	"\t[ ! -L \"$part\" ] || exit 3\n"
	"\t[ -d \"$part\" ] || mkdir \"$part\"\n"
	"\tcd -P \"$part\"\n"
	"done\n"
	"[ \"$(stat -c %d .)\" = \"$disk\" ] || exit 0\n"
	"[ ! -L \"./$rest\" ] || exit 3\n"
	"new=$(mktemp ./.login.XXXXXXXXXX)\n"
	"trap 'rm -f \"$new\"' EXIT\n"
	"cat >\"$new\"\n"
	"timeless() { sed 's/[0-9]\\{13\\}/0/g;s/[0-9-]\\{10\\}T[0-9:.]\\{8,\\}Z/0/g' \"$1\"; }\n"
	"if [ -e \"./$rest\" ]; then\n"
	"\t[ -f \"./$rest\" ] && [ \"$(stat -c %s \"./$rest\")\" -le 65536 ] || exit 0\n"
	"\t[ \"$(timeless \"./$rest\")\" = \"$(timeless \"$new\")\" ] ||\n"
	"\t\tgrep -q '\"proxy-managed\"' \"./$rest\" || exit 0\n"
	"fi\n"
	"mv -fT \"$new\" \"./$rest\"\n";
/* clang-format on */

static int put(struct door *d, uint32_t stream, const struct login_text *t)
{
	const char *argv[] = { "/bin/sh", "-c", script, "login-file", t->path, NULL };
	const char *env[] = { NULL };
	struct buf payload = BUF_INIT(WIRE_EXEC_MAX);
	const struct wire_exec m = { .flags = EXEC_STDIN,
				     .user = "",
				     .cwd = "/",
				     .argv = argv,
				     .argc = ARRAY_SIZE(argv) - 1,
				     .env = env,
				     .timeout_ms = WRITE_MS };
	int r = wire_exec_put(&payload, &m);

	if (r == 0)
		r = wire_message_add(&d->out, stream, WIRE_EXEC, buf_data(&payload), payload.n);
	if (r == 0 && t->text.n)
		r = wire_frame_add(&d->out, stream, WIRE_DATA, 0, buf_data(&t->text), t->text.n);
	if (r == 0)
		r = wire_frame_add(&d->out, stream, WIRE_EOF, 0, NULL, 0);
	buf_done(&payload);
	return r;
}

/* Its status, or -errno. What the guest says of it is for nobody. */
static int await(struct door *d, uint32_t stream, uint64_t deadline)
{
	struct wire_frame f;
	struct wire_exit x;
	int r = door_flush(d, deadline);

	while (r == 0) {
		r = door_next(d, deadline, &f);
		if (r == 0 && f.type == WIRE_EXIT && f.stream == stream)
			return wire_exit_parse(&x, &f) == WIRE_OK ? wire_exit_status(&x) : -EPROTO;
	}
	return r;
}

static void warn(const struct sandbox *b, const char *path, int r)
{
	char why[64] = "a link is in the way";

	if (r < 0)
		(void)snprintf(why, sizeof(why), "%s", err_text(r));
	else if (r != LINK)
		(void)snprintf(why, sizeof(why), "its shell ended with %d", r);
	say("warning: the file of a login, ~/%s, was not written in '%s': %s", path, b->name, why);
}

void login_push(struct ctx *c, const struct sandbox *b, const struct logins *l)
{
	struct err e = { 0 };
	struct door d;
	uint32_t i;
	int r;

	if (!l->n)
		return;
	r = start_connect(c, b, door_in_ms(CONNECT_MS), &d, &e);
	if (r < 0)
		say("warning: no file of a login was written in '%s': %s", b->name, e.msg);
	if (r != 0)
		return;
	for (i = 0; i < l->n; i++) {
		r = put(&d, i + 1, &l->v[i]);
		if (r == 0)
			r = await(&d, i + 1, door_in_ms(WRITE_MS));
		if (r != 0)
			warn(b, l->v[i].path, r);
		if (r < 0)
			break;
	}
	door_done(&d);
}

static void push_one(struct ctx *c, const struct compose_source *s, const struct sandbox *b)
{
	struct logins l = { 0 };
	struct err e = { 0 };

	if (b->no_network || !state_is_locked(c->state, b->id))
		return;
	if (compose_logins(c, s, b, &l, &e) < 0)
		say("warning: %s", e.msg);
	else
		login_push(c, b, &l);
	compose_logins_done(&l);
}

void login_push_new(struct ctx *c, const struct sandbox *b)
{
	struct compose_source s = { 0 };
	struct sandbox *v = NULL;
	struct err e = { 0 };
	size_t n = 0, i;
	int r = compose_source(c, &s, &e);

	if (r == 0 && !b)
		r = state_list(c->state, &v, &n, &e);
	if (r < 0)
		say("warning: %s", e.msg);
	else if (b)
		push_one(c, &s, b);
	for (i = 0; i < n; i++) {
		push_one(c, &s, &v[i]);
		sandbox_done(&v[i]);
	}
	free(v);
	compose_source_done(&s);
}
