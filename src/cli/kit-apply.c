#include "cli/kit-apply.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/guest.h"
#include "io/fd.h"

enum { WORDS_MAX = 2048, SAID_MAX = 200 };

/* The last line that it wrote, of letters that a terminal can bear. */
static void last_line(int fd, char ret[SAID_MAX])
{
	char text[1024];
	off_t end = lseek(fd, 0, SEEK_END);
	ssize_t n = pread(fd, text, sizeof(text) - 1, MAX(end - (off_t)sizeof(text) + 1, 0));
	char *line;

	ret[0] = '\0';
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	if (n <= 0)
		return;
	text[n] = '\0';
	line = memrchr(text, '\n', (size_t)n);
	(void)snprintf(ret, SAID_MAX, "%.*s", SAID_MAX - 1, line ? line + 1 : text);
	for (char *p = ret; *p; p++)
		if ((uint8_t)*p < 32 || *p == 127)
			*p = '?';
}

int kit_apply_script(struct ctx *c, const struct sandbox *b, const struct kit_script *s,
		     struct err *e)
{
	const char *argv[WORDS_MAX + 5] = { "/bin/sh", "-c", s->script, "bac-kit" };
	_close_ int out = memfd_create("bac-said", MFD_CLOEXEC);
	struct guest_cmd g = { .user = s->user, .cwd = "/", .argv = argv, .out = out };
	struct err why = { 0 };
	char said[SAID_MAX];
	size_t n = 4;
	int r;

	for (size_t i = 0; s->words && s->words[i]; i++) {
		if (i == WORDS_MAX)
			return err_set(e, -E2BIG, "%s: too many", s->what);
		argv[n++] = s->words[i];
	}
	g.in = s->in;
	g.n_in = s->n_in;
	r = out < 0 ? err_errno(e, -errno, "%s", s->what) : guest_run(c, b, &g, &why);
	if (r == 0)
		return 0;
	if (r < 0)
		return err_set(e, r, "%s: %s", s->what, why.msg);
	last_line(out, said);
	return err_set(e, -EIO, "%s: %s", s->what,
		       said[0]      ? said
		       : why.msg[0] ? why.msg
				    : "its shell failed");
}

/* ---- files/home, files/workspace ---- */

/* Later ones over earlier ones. */
static int copy_all(struct ctx *c, const struct sandbox *b, const struct kit_box *k,
		    const char *which, const char *to, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < k->n && r == 0; i++) {
		const struct box_kit *p = &k->v[i];
		_free_ char *from = NULL;

		if (asprintf(&from, "%s/files/%s", p->dir, which) < 0)
			return err_errno(e, -ENOMEM, "cannot copy files/%s", which);
		if (access(from, F_OK) < 0)
			continue;
		r = guest_copy(c, b, from, to, e);
		if (r < 0)
			r = err_ctx(e, "the kit '%s': files/%s", p->kit.name, which);
	}
	return r;
}

int kit_apply_home(struct ctx *c, const struct sandbox *b, const struct kit_box *k, struct err *e)
{
	return copy_all(c, b, k, "home", "/home/agent", e);
}

/* ---- setup.files ---- */

/* $1: path, $2: mode, $3: 1 if one that is there stays */
static const char write_file[] = "set -eu\n"
				 "if [ \"$3\" = 1 ] && { [ -e \"$1\" ] || [ -L \"$1\" ]; }; then\n"
				 "\tcat >/dev/null\n"
				 "\texit 0\n"
				 "fi\n"
				 "[ ! -d \"$1\" ] || { echo 'it is a directory'; exit 1; }\n"
				 "dir=${1%/*}\n"
				 "mkdir -p \"$dir/\"\n"
				 "new=$(mktemp \"$dir/.bac-XXXXXXXXXX\")\n"
				 "trap 'rm -f \"$new\"' EXIT\n"
				 "cat >\"$new\"\n"
				 "chmod \"$2\" \"$new\"\n"
				 "mv -f \"$new\" \"$1\"\n";

static int put_content(const struct kit_setup_file *f, const char *workdir, struct buf *out)
{
	static const char name[] = "${WORKDIR}";
	const char *p = f->content ? f->content : "", *at;
	int r = 0;

	while (r == 0 && (at = strstr(p, name))) {
		r = buf_add(out, p, (size_t)(at - p));
		if (r == 0)
			r = buf_add(out, workdir, strlen(workdir));
		p = at + strlen(name);
	}
	return r == 0 ? buf_add(out, p, strlen(p)) : r;
}

/* What is in the home directory and new in any case can come with all the rest. */
static bool can_be_staged(const struct kit_setup_file *f)
{
	return !f->only_if_missing && starts_with(f->path, "/home/agent/") && !(f->mode & 07000) &&
	       !strstr(f->path, "/../") && f->path[strlen(f->path) - 1] != '/';
}

static int setup_file(struct ctx *c, const struct sandbox *b, const struct kit_setup_file *f,
		      struct kit_stage *stage, struct err *e)
{
	struct buf text = BUF_INIT(2UL * YAML_MAX);
	const char *words[] = { f->path, NULL, f->only_if_missing ? "1" : "0", NULL };
	struct kit_script s = { .script = write_file, .words = words };
	char what[400], mode[16];
	int r = put_content(f, b->workdir, &text);

	(void)snprintf(mode, sizeof(mode), "%04o", f->mode & 07777);
	(void)snprintf(what, sizeof(what),
		       "the kit '%.64s': setup.files cannot write %.200s as the user agent (uid "
		       "1000; what needs root belongs in setup.install)",
		       f->kit, f->path);
	words[1] = mode;
	s.what = what;
	s.in = text.n ? (const void *)buf_data(&text) : "";
	s.n_in = text.n;
	if (r == 0 && can_be_staged(f))
		r = kit_stage_put(c, b, stage, f->path, f->mode, s.in, s.n_in);
	else if (r == 0)
		r = kit_apply_script(c, b, &s, e);
	buf_done(&text);
	return r < 0 && !e->msg[0] ? err_errno(e, r, "%s", what) : r;
}

static int setup_files(struct ctx *c, const struct sandbox *b, const struct kit_box *k,
		       struct kit_stage *stage, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < k->kit.n_files && r == 0; i++)
		r = setup_file(c, b, &k->kit.files[i], stage, e);
	return r;
}

/* ---- all of it ---- */

/* A login shell forgets PATH: /etc/profile sets one of its own, and then reads this. */
static int profile(struct ctx *c, const struct sandbox *b, const struct kit_box *k, struct err *e)
{
	static const char script[] = "mkdir -p /etc/profile.d && cat >/etc/profile.d/bac-kit.sh";
	struct buf text = BUF_INIT(64UL * 1024), path = BUF_INIT(32UL * 1024);
	struct kit_script s = { .user = "0", .script = script, .what = "PATH of the kits" };
	int r = 0;

	for (size_t i = 0; i < k->kit.n_vars && r == 0; i++) {
		const struct kit_var *v = &k->kit.vars[i];

		if (!streq(v->name, "PATH"))
			continue;
		buf_consume(&path, path.n);
		r = kit_path(v->value, "$PATH", &path);
		for (const char *p = r == 0 ? buf_str(&path) : NULL; r == 0 && p && *p; p++)
			r = strchr("\"`\\", *p) ? buf_printf(&text, "\\%c", *p)
						: buf_add(&text, p, 1);
	}
	if (r == 0 && text.n) {
		struct buf line = BUF_INIT(64UL * 1024);

		r = buf_printf(&line, "export PATH=\"%s\"\n", buf_str(&text));
		s.in = buf_data(&line);
		s.n_in = line.n;
		r = r == 0 ? kit_apply_script(c, b, &s, e) : err_errno(e, r, "PATH");
		buf_done(&line);
	}
	buf_done(&text);
	buf_done(&path);
	return r;
}

static int first(struct ctx *c, const struct sandbox *b, const struct kit_box *k,
		 const struct start_opts *o, struct err *e)
{
	struct kit_stage stage = KIT_STAGE_INIT;
	int r = o->installed ? 0 : kit_apply_home(c, b, k, e);

	if (r == 0)
		*e = (struct err) { 0 };
	if (r == 0)
		r = setup_files(c, b, k, &stage, e);
	if (r == 0)
		r = profile(c, b, k, e);
	if (r == 0)
		r = kit_apply_notes(c, b, k, &stage, e);
	if (r == 0)
		r = kit_stage_send(c, b, &stage, e);
	kit_stage_done(&stage);
	return r;
}

/* What somebody put there in the meantime is overwritten; other files are left alone. */
static int workspace(struct ctx *c, const struct sandbox *b, const struct kit_box *k, struct err *e)
{
	return copy_all(c, b, k, "workspace", b->workdir, e);
}

static int apply(struct ctx *c, const struct sandbox *b, const struct kit_box *k,
		 const struct start_opts *o, struct err *e)
{
	int r = kit_apply_volumes(c, b, k, e);

	if (r == 0 && o->first)
		r = first(c, b, k, o, e);
	if (r == 0)
		r = kit_apply_startup(c, b, k, e);
	return r == 0 ? workspace(c, b, k, e) : r;
}

int kit_apply_start(struct ctx *c, const struct sandbox *b, const struct start_opts *o,
		    struct err *e)
{
	struct kit_box k = { 0 };
	int r = kit_box_load(c, b->id, &k, e);

	if (r == 0)
		r = apply(c, b, &k, o, e);
	kit_box_done(&k);
	if (r >= 0)
		return 0;
	if (o->first)
		return r;
	say("warning: %s", e->msg);
	return 0;
}
