/* bac template save.
 *
 * The guest's init, run by an ordinary command inside (guest/init/save.h), writes a tar archive of the root; it goes into a file with the
 * rest of an image around it (image/bundle.h), and that file is loaded like any other: by the code that takes nothing on trust. With -o the
 * file stays; it has its name only once it was loaded. */
#include "cli/template-save.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/halt.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/start.h"
#include "cli/template-build.h"
#include "cli/template.h"
#include "image/bundle.h"
#include "image/ref.h"
#include "io/fd.h"

#define O(kind, field, letter, name, arg, help) \
	{ \
		name, letter, kind, offsetof(struct template_save_args, field), arg, help \
	}
const struct opt template_save_opts[TEMPLATE_SAVE_OPTS] = {
	O(OPT_FLAG, force, 'f', "force", NULL,
	  "do not ask before the programs of a running sandbox are paused"),
	O(OPT_FLAG, json, 0, "json", NULL, "print JSON"),
	O(OPT_STR, output, 'o', "output", "FILE",
	  "write it to a file too, which 'docker load' also reads"),
	O(OPT_FLAG, quiet, 'q', "quiet", NULL, "show no progress, print the digest only"),
};

enum { CONNECT_MS = 10000, WORDS_MAX = 4096, NAME_LONGEST = 4096 };

static const uint64_t room_to_spare = (uint64_t)1 << 30;

/* ---- the file ---- */

struct file {
	int fd;
	const char *final; /* NULL: it has no name and needs none */
	char tmp[NAME_LONGEST];
};

static int file_open(struct file *f, const char *cache, const char *output, struct err *e)
{
	*f = (struct file) { .fd = -1, .final = output };
	if (!output) {
		f->fd = open(cache, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (f->fd >= 0)
			return 0;
	}
	/* a file system without nameless files, or one that is to have a name: what it holds may be secret */
	if ((size_t)snprintf(f->tmp, sizeof(f->tmp), "%s%s.bac-%d", output ? output : cache,
			     output ? "" : "/save", (int)getpid()) >= sizeof(f->tmp))
		return err_errno(e, -ENAMETOOLONG, "cannot write %.200s", output);
	f->fd = open(f->tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (f->fd < 0) {
		int r = -errno;

		f->tmp[0] = '\0';
		return err_errno(e, r, "cannot write %.300s", output ? output : cache);
	}
	return 0;
}

static int file_keep(struct file *f, struct err *e)
{
	if (!f->final)
		return 0;
	if (fsync(f->fd) < 0 || rename(f->tmp, f->final) < 0)
		return err_errno(e, -errno, "cannot write %.300s", f->final);
	f->tmp[0] = '\0';
	return 0;
}

static void file_done(struct file *f)
{
	if (f->tmp[0])
		(void)unlink(f->tmp);
	f->fd = fd_close(f->fd);
}

/* ---- what the guest sends ---- */

static int put_command(struct door *d, struct err *e)
{
	static const char *argv[] = { "/proc/1/exe", "save", NULL }, *none[] = { NULL };
	const struct wire_exec m = {
		.user = "0", .cwd = "/", .argv = argv, .argc = 2, .env = none
	};
	struct buf payload = BUF_INIT(WIRE_FRAME_MAX);
	int r = wire_exec_put(&payload, &m);

	if (r == 0)
		r = wire_message_add(&d->out, SESSION_STREAM, WIRE_EXEC, buf_data(&payload),
				     payload.n);
	buf_done(&payload);
	return r < 0 ? err_errno(e, r, "cannot ask for the files") : 0;
}

/* What it said on stderr, one line. */
static void read_words(int fd, char *dst, size_t max)
{
	ssize_t n = pread(fd, dst, max - 1, 0);

	dst[MAX(n, 0)] = '\0';
	dst[strcspn(dst, "\n")] = '\0';
}

static int take_files(struct door *d, const char *name, int out, struct err *e)
{
	_close_ int words = memfd_create("words", MFD_CLOEXEC);
	const struct session_opts o = { .in_fd = -1, .out_fd = out, .err_fd = words };
	char text[WIRE_TEXT_MAX + 1] = "", line[WORDS_MAX] = "";
	struct wire_exit m = { 0 };
	int r = words < 0 ? err_errno(e, -errno, "cannot save") : put_command(d, e);

	if (r == 0)
		r = session_run(d, name, &o, &m, text, e);
	if (r < 0)
		return r;
	read_words(words, line, sizeof(line));
	if (m.how == EXIT_STATUS && m.code == 0)
		return 0;
	if (m.how == EXIT_SIGNAL && (m.code == SIGINT || m.code == SIGTERM || m.code == SIGHUP))
		return err_set(e, -EINTR, "interrupted; nothing was kept");
	return err_set(e, -EIO, "%.400s", line[0] ? line : text[0] ? text : "it ended early");
}

/* A guest that sends without end fills no disk. */
static int take_bounded(struct door *d, const struct sandbox *b, uint64_t most, int out,
			struct err *e)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, old;
	struct rlimit was, now;
	int r;

	if (getrlimit(RLIMIT_FSIZE, &was) < 0)
		return err_errno(e, -errno, "cannot save");
	now = was;
	now.rlim_cur = MIN(was.rlim_cur, (rlim_t)most);
	(void)sigaction(SIGXFSZ, &ignore, &old);
	(void)setrlimit(RLIMIT_FSIZE, &now);
	r = take_files(d, b->name, out, e);
	(void)setrlimit(RLIMIT_FSIZE, &was);
	(void)sigaction(SIGXFSZ, &old, NULL);
	return r;
}

/* ---- the sandbox ---- */

/* 1: it runs, 0: it does not. -ECANCELED if the user does not want it paused. */
static int ask_running(struct ctx *c, const struct sandbox *b, bool force, struct err *e)
{
	char question[160];
	struct door d;
	int r = start_connect(c, b, door_in_ms(CONNECT_MS), &d, e);

	if (r != 0)
		return r == 1 ? 0 : r;
	door_done(&d);
	if (force)
		return 1;
	(void)snprintf(question, sizeof(question),
		       "Sandbox '%s' runs: pausing its programs while it is saved", b->name);
	r = ask(question, e);
	if (r == 0)
		r = err_set(e, -ECANCELED, "not saved");
	return r;
}

static void stop(struct ctx *c, const struct sandbox *b)
{
	struct err e = { 0 };
	int lock = -1;
	bool ran;

	if (halt_sandbox(c, b, HALT_IF_IDLE, &ran, &lock, &e) < 0 && e.code != -EBUSY)
		say("warning: %s", e.msg);
	(void)fd_close(lock);
}

/* Started for this, it is stopped again. */
static int fetch(struct ctx *c, const struct sandbox *b, const struct image_template *t,
		 const struct template_save_args *o, int out, struct err *e)
{
	const struct start_opts so = { .quiet = o->quiet };
	struct door d;
	int running = ask_running(c, b, o->force, e), r;

	if (running < 0)
		return running;
	if (lseek(out, IMAGE_BUNDLE_LAYER_AT, SEEK_SET) < 0)
		return err_errno(e, -errno, "cannot save");
	r = start_sandbox(c, b, &so, &d, e);
	if (r < 0)
		return r;
	r = take_bounded(&d, b, b->disk + 2 * t->size + room_to_spare, out, e);
	door_done(&d);
	if (!running)
		stop(c, b);
	return r;
}

/* ---- the image ---- */

static int load(struct ctx *c, const struct template_save_args *o, int fd,
		struct image_template *ret, struct err *e)
{
	struct image_template *v = NULL;
	struct template_build b;
	struct progress progress;
	char path[64];
	size_t n = 0;
	int r = template_build_begin(c, &progress.p, &b, e);

	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	progress_begin(&progress, o->quiet);
	r = image_load(&b.b, path, NULL, &v, &n, e);
	progress_end(&progress);
	template_build_done(&b);
	if (r == 0 && n != 1)
		r = err_set(e, -EIO, "what was saved is not one image");
	if (r == 0)
		r = template_fit(c, &v[0], true, e);
	if (r == 0) {
		*ret = v[0];
		v[0] = (struct image_template) { 0 };
	}
	while (n)
		image_template_done(&v[--n]);
	free(v);
	return r;
}

static int save(struct ctx *c, const struct template_save_args *o, const struct sandbox *b,
		const char *tag, struct image_template *ret, struct err *e)
{
	_cleanup_(image_template_done) struct image_template t = { 0 };
	_cleanup_(file_done) struct file f = { .fd = -1 };
	char comment[128];
	struct image_bundle bundle = { .tag = tag, .comment = comment, .created = time(NULL) };
	int r = image_template_find(c->dirs.cache, b->tmpl, &t, e);

	if (r < 0)
		return r;
	r = file_open(&f, c->dirs.cache, o->output, e);
	if (r == 0 && !o->quiet)
		say("saving the files of '%s'", b->name);
	if (r == 0)
		r = fetch(c, b, &t, o, f.fd, e);
	(void)snprintf(comment, sizeof(comment), "made in a sandbox of %.90s",
		       t.tag[0] ? t.tag : t.digest);
	bundle.config = &t.config;
	bundle.user = t.user;
	bundle.workdir = t.workdir;
	if (r == 0)
		r = image_bundle_finish(f.fd, &bundle, e);
	if (r == 0)
		r = load(c, o, f.fd, ret, e);
	if (r == 0)
		r = file_keep(&f, e);
	return r;
}

/* ---- the command ---- */

static int show(const struct template_save_args *o, const struct image_template *t,
		const char *name, const char *tag, struct err *e)
{
	char size[32];

	if (o->json)
		return print_json(template_json(t), e);
	if (o->quiet)
		(void)printf("%s\n", t->digest);
	else
		(void)printf("Saved '%s' as %s (%.*s, %s)%s%s\n", name, tag, TEMPLATE_DIGITS,
			     t->digest, text_from_size(size, sizeof(size), t->size),
			     o->output ? ", and in " : "", o->output ? o->output : "");
	if (!o->quiet)
		say("note: keys and passwords that were written to its files are in it too");
	return flush_out(e);
}

/* As docker would take it, since others are to load it. */
static int check_tag(const char *tag, struct err *e)
{
	struct image_ref ref;
	int r = image_ref_parse(tag, &ref, e);

	if (r == 0 && ref.digest[0])
		r = err_set(e, -EINVAL, "'%.80s': a tag has no digest", tag);
	return MIN(r, 0);
}

int template_run_save(void *opt, struct args *args, struct err *e)
{
	const struct template_save_args *o = opt;
	struct image_template t = { 0 };
	struct sandbox b = { 0 };
	struct ctx c = { 0 };
	int r = check_tag(args->v[1], e);

	if (r == 0)
		r = ctx_open(&c, e);
	if (r == 0)
		r = state_get(c.state, args->v[0], &b, e);
	if (r == 0) {
		r = save(&c, o, &b, args->v[1], &t, e);
		if (r < 0 && r != -EINTR)
			(void)err_ctx(e, "cannot save '%s'", b.name);
	}
	if (r == 0)
		r = show(o, &t, b.name, args->v[1], e);
	image_template_done(&t);
	sandbox_done(&b);
	ctx_done(&c);
	if (r == -EINTR && progress_signal()) {
		say("%s", e->msg);
		return progress_signal();
	}
	return r;
}
