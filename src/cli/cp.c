/* bac cp: files into a sandbox and out of it.
 *
 * The bytes go over one stream in the copy format. On this side a child walks the tree, or takes it in: it is the
 * one that parses what a guest sent, and it has nothing but a pipe and the destination. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cmds.h"
#include "cli/guest.h"
#include "cli/session.h"
#include "cli/start.h"
#include "io/fd.h"
#include "io/tree.h"
#include "sys/dirs.h"

enum { COPY_CONNECT_MS = 10000 };

struct cp_args {
	bool follow;
	const char *user;
};

static const struct opt opts[] = {
	{ "follow-link", 'L', OPT_FLAG, offsetof(struct cp_args, follow), NULL,
	  "if SRC is a symbolic link, copy what it points to" },
	{ "user", 'u', OPT_STR, offsetof(struct cp_args, user), "USER",
	  "owner of what is made in the sandbox (default: agent)" },
};

struct copy {
	const struct cp_args *o;
	const char *local;  /* path here, or "-" */
	const char *remote; /* absolute path there */
	char name[COPY_NAME_MAX + 1];
	bool content;
	bool in; /* into the sandbox */
};

/* SANDBOX:/path: 1 and the parts; 0: a local path. */
static int split(const char *word, char *box, size_t max, const char **ret_path, struct err *e)
{
	const char *colon = strchr(word, ':');
	size_t len = colon ? (size_t)(colon - word) : 0;

	if (!colon || memchr(word, '/', len) || len >= max)
		return 0;
	memcpy(box, word, len);
	box[len] = '\0';
	if (text_name_fault(box))
		return 0;
	if (colon[1] != '/')
		return err_set(e, -EINVAL,
			       "'%.80s': the path in the sandbox must be absolute (%s:/...)", word,
			       box);
	*ret_path = colon + 1;
	return 1;
}

/* ---- the child ---- */

/* Archives are bac-archive's business: become it. Its line on stderr goes where our words go. */
static int child_tar(const struct copy *cp, int pipe_end, int words, struct err *e)
{
	_free_ char *prog = dirs_program("bac-archive");

	if (!prog)
		return err_errno(e, -ENOMEM, "cannot copy");
	if (dup2(pipe_end, cp->in ? STDOUT_FILENO : STDIN_FILENO) < 0 ||
	    dup2(words, STDERR_FILENO) < 0)
		return err_errno(e, -errno, "cannot copy");
	(void)execl(prog, "bac-archive", cp->in ? "to-copy" : "from-copy", (char *)NULL);
	return err_errno(e, -errno, "cannot run %s; install bac again", prog);
}

static int child_work(const struct copy *cp, int pipe_end, int words, struct err *e)
{
	struct tree_send_opts send = { .follow = cp->o->follow, .content = cp->content };
	struct tree_recv_opts recv = { .content = cp->content,
				       .name = cp->content ? NULL : cp->name };
	struct tree_count n = { 0 };
	int r;

	if (streq(cp->local, "-"))
		return child_tar(cp, pipe_end, words, e);
	if (cp->in)
		r = tree_send(pipe_end, cp->local, &send, &n, e);
	else
		r = tree_recv(pipe_end, cp->local, &recv, &n, e);
	if (n.skipped)
		say("%llu FIFOs, sockets or devices were left out", (unsigned long long)n.skipped);
	return r;
}

struct child {
	pid_t pid;
	int pipe;  /* our end of the bytes */
	int words; /* what went wrong */
};

static int child_start(const struct copy *cp, struct child *ret, struct err *e)
{
	int bytes[2], words[2];
	struct err ce = { 0 };
	pid_t pid;

	if (pipe2(bytes, O_CLOEXEC) < 0 || pipe2(words, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "cannot copy");
	pid = fork();
	if (pid < 0)
		return err_errno(e, -errno, "cannot copy");
	if (pid == 0) {
		int mine = bytes[cp->in ? 1 : 0], r;

		(void)fd_close(bytes[cp->in ? 0 : 1]);
		(void)fd_close(words[0]);
		r = child_work(cp, mine, words[1], &ce);
		if (r < 0 && r != -EPIPE && r != -EREMOTEIO &&
		    fd_write_all(words[1], ce.msg, strlen(ce.msg)) < 0)
			_exit(2);
		_exit(r < 0 ? 1 : 0);
	}
	(void)fd_close(words[1]);
	(void)fd_close(bytes[cp->in ? 1 : 0]);
	*ret = (struct child) { .pid = pid, .pipe = bytes[cp->in ? 0 : 1], .words = words[0] };
	return 0;
}

/* 0, or its failure; -EPIPE with an empty message if the other side knows why. */
static int child_end(struct child *ch, struct err *e)
{
	char msg[ERR_MSG_MAX] = "";
	int status = 0;

	ch->pipe = fd_close(ch->pipe);
	if (fd_read_all(ch->words, msg, sizeof(msg) - 1) < 0)
		msg[0] = '\0';
	ch->words = fd_close(ch->words);
	msg[strcspn(msg, "\n")] = '\0';
	while (waitpid(ch->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_set(e, msg[0] ? -EIO : -EPIPE, "%s", msg);
}

/* ---- the stream ---- */

static int put_request(struct door *d, const struct copy *cp, struct err *e)
{
	struct wire_copy m = { .path = cp->remote,
			       .name = cp->in ? cp->name : "",
			       .user = cp->o->user ? cp->o->user : "" };
	size_t len = strlen(cp->remote);
	int r;

	if (cp->content)
		m.flags |= COPY_CONTENT;
	if (cp->in && len > 1 && cp->remote[len - 1] == '/')
		m.flags |= COPY_TO_DIR;
	if (!cp->in && cp->o->follow)
		m.flags |= COPY_FOLLOW;
	r = wire_copy_add(&d->out, SESSION_STREAM, cp->in ? WIRE_COPY_IN : WIRE_COPY_OUT, &m);
	return r < 0 ? err_set(e, -ENAMETOOLONG, "the path '%.80s...' is too long", cp->remote) : 0;
}

static int carry(struct door *d, const char *box, const struct copy *cp, struct child *ch,
		 struct err *e)
{
	struct session_opts o = { .input = cp->in,
				  .in_fd = cp->in ? ch->pipe : -1,
				  .out_fd = cp->in ? -1 : ch->pipe,
				  .err_fd = STDERR_FILENO };
	char text[WIRE_TEXT_MAX + 1] = "";
	struct wire_exit m = { 0 };
	struct err local = { 0 };
	int r, k;

	r = put_request(d, cp, e);
	if (r == 0)
		r = session_run(d, box, &o, &m, text, e);
	k = child_end(ch, &local);
	if (r < 0)
		return r;
	if (m.how == EXIT_REFUSED && text[0]) /* what went wrong here is the consequence */
		return err_set(e, -EIO, "%s", text);
	if (k < 0 && local.msg[0])
		return err_set(e, k, "%s", local.msg);
	if (m.code || m.how != EXIT_COPIED)
		return err_set(e, -EIO, "%s", text[0] ? text : "the copy was ended in the sandbox");
	return k < 0 ? err_set(e, k, "the copy ended early") : 0;
}

static int copy(struct ctx *c, const char *box, struct copy *cp, struct err *e)
{
	struct start_opts so = { 0 };
	struct sandbox b = { 0 };
	struct child ch = { .pid = -1, .pipe = -1, .words = -1 };
	struct door d;
	int r = state_get(c->state, box, &b, e);

	if (r == 0 && cp->in && !streq(cp->local, "-") && access(cp->local, F_OK) < 0 &&
	    (errno != ENOENT || cp->o->follow || readlink(cp->local, (char[1]) { 0 }, 1) < 0))
		r = err_errno(e, -ENOENT, "cannot copy '%.200s'", cp->local);
	if (r == 0)
		r = start_sandbox(c, &b, &so, &d, e);
	if (r == 0) {
		r = child_start(cp, &ch, e);
		if (r == 0)
			r = carry(&d, b.name, cp, &ch, e);
		door_done(&d);
	}
	sandbox_done(&b);
	return r;
}

int guest_copy(struct ctx *c, const struct sandbox *b, const char *local, const char *remote,
	       struct err *e)
{
	const struct cp_args o = { 0 };
	struct copy cp = { .o = &o, .local = local, .remote = remote, .content = true, .in = true };
	struct child ch = { .pid = -1, .pipe = -1, .words = -1 };
	struct door d;
	int r = start_connect(c, b, door_in_ms(COPY_CONNECT_MS), &d, e);

	if (r > 0)
		return err_set(e, -EPIPE, "sandbox '%s' has ended (see 'bac logs %s')", b->name,
			       b->name);
	if (r < 0)
		return r;
	r = child_start(&cp, &ch, e);
	if (r == 0)
		r = carry(&d, b->name, &cp, &ch, e);
	door_done(&d);
	return r;
}

static int name_source(struct copy *cp, struct err *e)
{
	const char *src = cp->in ? cp->local : cp->remote;
	int r;

	if (cp->in && streq(src, "-")) {
		cp->content = true;
		return 0;
	}
	r = tree_source_name(src, cp->name);
	if (r < 0)
		return err_errno(e, r, "cannot copy '%.80s'", src);
	cp->content = r == 0;
	return 0;
}

static int run(void *opt, struct args *args, struct err *e)
{
	struct copy cp = { .o = opt };
	char box[2][64] = { "", "" };
	const char *path[2] = { NULL, NULL };
	struct ctx c = { 0 };
	int from, to, r;

	from = split(args->v[0], box[0], sizeof(box[0]), &path[0], e);
	to = from < 0 ? from : split(args->v[1], box[1], sizeof(box[1]), &path[1], e);
	if (to < 0)
		return to;
	if (from == to)
		return err_set(e, -EINVAL, "cp: exactly one side must be SANDBOX:/path%s",
			       from ? "; copy to a local folder first" : "");
	cp.in = to;
	cp.local = args->v[cp.in ? 0 : 1];
	cp.remote = path[cp.in];
	r = name_source(&cp, e);
	if (r == 0)
		r = ctx_open(&c, e);
	if (r == 0)
		r = copy(&c, box[cp.in], &cp, e);
	ctx_done(&c);
	return r;
}

const struct cmd cp_cmd = {
	.name = "cp",
	.usage = "[OPTIONS] SRC DST",
	.brief = "copy files between the host and a sandbox",
	.text = "One of SRC and DST is SANDBOX:/path. A directory is copied as docker cp does: "
		"into DST if\n"
		"that is a directory, as DST if it is not there; SRC/. copies what is in it. '-' "
		"is a tar stream\n"
		"on standard input or output. Missing parents are made. A copy that fails leaves "
		"each file old\n"
		"or new, never half.",
	.opts = opts,
	.n_opts = ARRAY_SIZE(opts),
	.min_args = 2,
	.max_args = 2,
	.size = sizeof(struct cp_args),
	.run = run,
};
