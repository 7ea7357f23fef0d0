#include "cli/kit-stage.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/guest.h"
#include "io/fd.h"

static int begin(struct ctx *c, const struct sandbox *b, struct kit_stage *s)
{
	_free_ char *box = NULL;

	if (s->dir >= 0)
		return 0;
	box = state_dir(c->state, b->id);
	if (!box || (!s->path && asprintf(&s->path, "%s/stage", box) < 0))
		return -ENOMEM;
	(void)dirs_remove(AT_FDCWD, s->path);
	if (mkdir(s->path, 0755) < 0)
		return -errno;
	s->dir = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return s->dir < 0 ? -errno : 0;
}

/* The folder of a path, made; *ret_name is the rest. The tree is ours alone, and has no links but those that were put, which are no folders. */
static int parent(int top, const char *path, char ret_name[NAME_MAX + 1], int *ret_fd)
{
	_close_ int at = fcntl(top, F_DUPFD_CLOEXEC, 3);

	for (;;) {
		size_t len;
		int next;

		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (!len || len > NAME_MAX || (len <= 2 && !strncmp(path, "..", len)))
			return -EINVAL;
		memcpy(ret_name, path, len);
		ret_name[len] = '\0';
		path += len;
		if (!path[strspn(path, "/")])
			break;
		if (mkdirat(at, ret_name, 0755) < 0 && errno != EEXIST)
			return -errno;
		next = openat(at, ret_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		(void)fd_close(at);
		at = next;
		(void)fchmod(at, 0755);
	}
	*ret_fd = take_fd(&at);
	return 0;
}

int kit_stage_put(struct ctx *c, const struct sandbox *b, struct kit_stage *s, const char *path,
		  mode_t mode, const void *p, size_t n)
{
	char name[NAME_MAX + 1];
	_close_ int at = -1, fd = -1;
	int r = begin(c, b, s);

	if (r == 0)
		r = parent(s->dir, path, name, &at);
	if (r < 0)
		return r;
	(void)unlinkat(at, name, 0);
	fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	r = fd < 0 ? -errno : fd_write_all(fd, p, n);
	if (r == 0 && fchmod(fd, mode & 0777) < 0)
		r = -errno;
	s->n += r == 0;
	return r;
}

int kit_stage_link(struct ctx *c, const struct sandbox *b, struct kit_stage *s, const char *path,
		   const char *target)
{
	char name[NAME_MAX + 1];
	_close_ int at = -1;
	int r = begin(c, b, s);

	if (r == 0)
		r = parent(s->dir, path, name, &at);
	if (r == 0 && symlinkat(target, at, name) < 0 && errno != EEXIST)
		r = -errno;
	s->n += r == 0;
	return r;
}

int kit_stage_send(struct ctx *c, const struct sandbox *b, const struct kit_stage *s, struct err *e)
{
	return s->n ? guest_copy(c, b, s->path, "/", e) : 0;
}

void kit_stage_done(struct kit_stage *s)
{
	s->dir = fd_close(s->dir);
	if (s->path)
		(void)dirs_remove(AT_FDCWD, s->path);
	free(s->path);
	*s = (struct kit_stage)KIT_STAGE_INIT;
}
