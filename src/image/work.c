/* A build under way. */
#include "image/work.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/text.h"
#include "io/fd.h"
#include "sys/dirs.h"
#include "sys/lock.h"
#include "sys/spawn.h"

enum { SAY_EVERY = 100 };

void image_work_say(struct image_work *w, const char *step)
{
	const struct image_progress *p = w->b->progress;

	w->step = step;
	w->lines = 0;
	if (p)
		p->say(p->user, step, -1);
}

int image_work_begin(struct image_work *w, const struct image_build *b, const char *kind,
		     struct err *e)
{
	int r;

	*w = (struct image_work) { .b = b, .kind = kind, .dir = -1, .lock = -1, .log = -1 };
	w->signals.fd = -1;
	r = image_store_open(b->cache, kind, &w->dir, e);
	if (r < 0)
		return r;
	r = lock_take(w->dir, ".lock", false, false, &w->lock);
	if (r == -EBUSY) {
		image_work_say(w, "waiting for another build to end");
		r = lock_take(w->dir, ".lock", false, true, &w->lock);
	}
	if (r == 0)
		r = image_signals_hold(&w->signals);
	if (r < 0)
		return err_errno(e, r, "cannot lock the cache");
	image_store_clear(b->cache, kind);
	return 0;
}

void image_work_end(struct image_work *w)
{
	if (w->tmp[0])
		(void)image_store_remove(w->b->cache, w->kind, w->tmp);
	w->log = fd_close(w->log);
	w->dir = fd_close(w->dir);
	w->lock = fd_close(w->lock);
	free(w->log_path);
	free(w->tmp_path);
	free(w->tmpdir);
	if (w->signals.fd >= 0)
		image_signals_release(&w->signals);
}

static int check_space(const struct image_work *w, uint64_t need, struct err *e)
{
	char a[32], b[32];
	struct statvfs st;
	uint64_t have;

	if (fstatvfs(w->dir, &st) < 0)
		return 0;
	have = (uint64_t)st.f_bavail * st.f_frsize;
	if (have >= need)
		return 0;
	return err_set(e, -ENOSPC,
		       "too little space in %s: %s free, %s needed; free some, or set "
		       "XDG_CACHE_HOME to another disk",
		       w->b->cache, text_from_size(a, sizeof(a), have),
		       text_from_size(b, sizeof(b), need));
}

int image_work_start(struct image_work *w, uint64_t need, struct err *e)
{
	int r = check_space(w, need, e);

	if (r < 0)
		return r;
	r = image_store_tmp(w->dir, w->tmp, e);
	if (r < 0) {
		w->tmp[0] = '\0';
		return r;
	}
	if (asprintf(&w->tmp_path, "%s/%s/%s", w->b->cache, w->kind, w->tmp) < 0 ||
	    asprintf(&w->log_path, "%s/%s/build.log", w->b->cache, w->kind) < 0)
		return err_errno(e, -ENOMEM, "cannot start the build");
	w->tmpdir = image_work_path(w, "tmp");
	if (!w->tmpdir)
		return err_errno(e, -ENOMEM, "cannot start the build");
	/* The system users of the new root look things up below these two. */
	if (chmod(w->tmp_path, 0755) < 0 || mkdir(w->tmpdir, 0755) < 0)
		return err_errno(e, -errno, "cannot make a directory in the cache");
	w->log = open(w->log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (w->log < 0)
		return err_errno(e, -errno, "cannot make %s", w->log_path);
	return 0;
}

char *image_work_path(const struct image_work *w, const char *name)
{
	return dirs_join(w->tmp_path, name);
}

int image_work_check(const struct image_work *w, struct err *e)
{
	return image_signals_pending(&w->signals)
		       ? err_set(e, -EINTR, "interrupted; nothing was kept")
		       : 0;
}

/* ---- what programs say ---- */

/* What mmdebstrap announces, in our words. */
static const struct {
	const char *begins, *step;
} steps[] = {
	{ "I: running apt-get update", "reading the package lists" },
	{ "I: downloading packages", "downloading packages" },
	{ "I: extracting archives", "unpacking" },
	{ "I: installing essential packages", "installing the base system" },
	{ "I: installing remaining packages", "installing packages" },
	{ "I: cleaning package lists", "cleaning up" },
};

/* Lines that tell why it failed, the more telling first. */
static const struct {
	const char *has;
	int code;
	const char *cause;
} causes[] = {
	{ "No space left on device", -ENOSPC,
	  "the disk is full; free some space, or set XDG_CACHE_HOME to another disk" },
	{ "Disk quota exceeded", -EDQUOT, "the disk quota is used up" },
	{ "NO_PUBKEY", -EKEYREJECTED,
	  "the suite's signing key is unknown; update it: sudo apt install "
	  "debian-archive-keyring" },
	{ "is not signed", -EKEYREJECTED, "the mirror's lists are not signed by Debian" },
	{ "Temporary failure resolving", -ENETUNREACH,
	  "a server's name cannot be looked up; check the network and the mirror" },
	{ "Could not resolve", -ENETUNREACH,
	  "a server's name cannot be looked up; check the network and the mirror" },
	{ "Could not connect", -ENETUNREACH,
	  "a server cannot be reached; check the network and the mirror" },
	{ "Couldn't connect", -ENETUNREACH,
	  "a server cannot be reached; check the network and the mirror" },
	{ "Unable to connect", -ENETUNREACH,
	  "a server cannot be reached; check the network and the mirror" },
	{ "Network is unreachable", -ENETUNREACH,
	  "a server cannot be reached; check the network and the mirror" },
	{ "does not have a Release file", -ENOENT, "the mirror does not have this suite" },
	{ "Unable to locate package", -ENOENT, "a package is not in this suite" },
	{ "certificate", -EPROTO, "a server's certificate is not trusted" },
};

static void note_cause(struct image_work *w, const char *line)
{
	size_t i;

	if (starts_with(line, "bac: "))
		(void)snprintf(w->cause, sizeof(w->cause), "%s", line + 5);
	for (i = 0; i < ARRAY_SIZE(causes); i++)
		if (strstr(line, causes[i].has)) {
			w->cause_code = causes[i].code;
			(void)snprintf(w->cause, sizeof(w->cause), "%s", causes[i].cause);
			return;
		}
}

static void on_line(void *user, char *line)
{
	struct image_work *w = user;
	size_t i;

	if (!w->cause_code)
		note_cause(w, line);
	if (starts_with(line, "bac: ")) {
		const struct image_progress *p = w->b->progress;

		if (p)
			p->say(p->user, line + 5, -1);
		return;
	}
	for (i = 0; i < ARRAY_SIZE(steps); i++)
		if (starts_with(line, steps[i].begins))
			image_work_say(w, steps[i].step);
	/* A long step shows that it lives. */
	if (++w->lines % SAY_EVERY == 0 && w->b->progress && w->step) {
		char text[160];

		(void)snprintf(text, sizeof(text), "%s (%u)", w->step, w->lines);
		w->b->progress->say(w->b->progress->user, text, -1);
	}
}

int image_work_run(struct image_work *w, const char *step, const char *const *argv,
		   const char *const *env, struct err *e)
{
	struct image_run run = {
		.argv = argv,
		.env = env,
		.log = w->log,
		.signals = w->signals.fd,
		.line = on_line,
		.user = w,
	};
	int r;

	w->cause[0] = '\0';
	w->cause_code = 0;
	image_work_say(w, step);
	r = image_run(&run, e);
	if (r == -EINTR)
		return err_set(e, r, "interrupted; nothing was kept");
	if (r <= 0)
		return r;
	if (w->cause[0])
		return err_set(e, w->cause_code ? w->cause_code : -EIO, "%s failed: %s (see %s)",
			       argv[0], w->cause, w->log_path);
	r = err_set(e, -EIO, "%.300s (see %.160s)", (const char *)strdupa(e->msg), w->log_path);
	return r;
}

int image_work_programs(const char *const *names, struct err *e)
{
	char missing[160] = "", packages[200] = "";
	size_t i, n = 0;

	for (i = 0; names[i]; i++) {
		_free_ char *path = NULL;
		struct err why;
		size_t a = strlen(missing), b = strlen(packages);

		if (sys_find(names[i], &path, &why) == 0)
			continue;
		(void)snprintf(missing + a, sizeof(missing) - a, "%s%s", n ? ", " : "", names[i]);
		(void)snprintf(packages + b, sizeof(packages) - b, " %s", sys_package(names[i]));
		n++;
	}
	if (!n)
		return 0;
	return err_set(e, -ENOENT, "%s %s not installed: sudo apt install%s", missing,
		       n > 1 ? "are" : "is", packages);
}
