#pragma once
/* For tests: a file system over a temporary directory, and requests as the guest's kernel makes them. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "io/fd.h"
#include "workspace/dirbuf.h"
#include "workspace/fs.h"
#include "workspace/fuse-msg.h"
#include "workspace/worker.h"

struct rig {
	uint32_t pid; /* of the guest's thread */
	struct fs *f;
	int proc_fd;
	int dir; /* the host's side of share 0 */
	char path[64];
	uint64_t root; /* node of share 0 */
	uint64_t unique;
	/* the last answer */
	int err;
	size_t len; /* of the body */
	_Alignas(8) uint8_t body[FS_MAX_WRITE];
};

static inline uint64_t rig_lookup(struct rig *g, uint64_t parent, const char *name);

/* Read the answer in buf: header and body. */
static inline int rig_answer(struct rig *g, const uint8_t *buf, ssize_t n)
{
	struct fuse_out_header h;

	check(n >= (ssize_t)sizeof(h));
	memcpy(&h, buf, sizeof(h));
	check(h.len == (size_t)n && h.error <= 0 && h.error > -512);
	g->len = (size_t)n - sizeof(h);
	check(g->len <= sizeof(g->body) && (h.error == 0 || g->len == 0));
	memcpy(g->body, buf + sizeof(h), g->len);
	g->err = h.error;
	return h.error;
}

static uint8_t rig_out[FS_MAX_WRITE + 4096];

/* One request: arg, then nothing, names (up to two, with their NULs), data. room: for the answer's body.
 * 0, -errno of the answer, or FS_LATER. */
static inline int rig_call_full(struct rig *g, uint32_t op, uint64_t node, const void *arg,
				size_t n_arg, const char *a, const char *b, const void *data,
				size_t n_data, size_t room)
{
	struct fuse_in_header h = {
		.opcode = op, .unique = ++g->unique, .nodeid = node, .uid = 1000, .pid = g->pid
	};
	struct iovec in[5] = { { &h, sizeof(h) },
			       { (void *)(uintptr_t)arg, n_arg },
			       { (void *)(uintptr_t)a, a ? strlen(a) + 1 : 0 },
			       { (void *)(uintptr_t)b, b ? strlen(b) + 1 : 0 },
			       { (void *)(uintptr_t)data, n_data } };
	struct iovec out[2] = { { rig_out, 16 }, { rig_out + 16, room } };
	struct fs_req r = { .in = in, .n_in = 5, .out = out, .n_out = 2, .token = &h };
	ssize_t n;
	size_t i;

	for (i = 0; i < 5; i++)
		h.len += (uint32_t)in[i].iov_len;
	n = fs_handle(g->f, &r);
	if (n == 0) {
		g->err = 0;
		return 0;
	}
	return n < 0 ? (int)n : rig_answer(g, rig_out, n);
}

static inline int rig_call(struct rig *g, uint32_t op, uint64_t node, const void *arg, size_t n_arg,
			   const char *a, const char *b)
{
	return rig_call_full(g, op, node, arg, n_arg, a, b, NULL, 0, sizeof(g->body));
}

/* A request that may be answered later: its answer is waited for with rig_wait(). */
struct rig_late {
	struct fuse_in_header h;
	uint8_t arg[64], out[256];
	struct iovec in[2], to[1];
};

static inline int rig_start(struct rig *g, struct rig_late *l, uint32_t op, uint64_t node,
			    const void *arg, size_t n_arg)
{
	struct fs_req r = { .in = l->in, .n_in = 2, .out = l->to, .n_out = 1, .token = l };
	ssize_t n;

	l->h = (struct fuse_in_header) { .len = (uint32_t)(sizeof(l->h) + n_arg),
					 .opcode = op,
					 .unique = ++g->unique,
					 .nodeid = node };
	memcpy(l->arg, arg, n_arg);
	l->in[0] = (struct iovec) { &l->h, sizeof(l->h) };
	l->in[1] = (struct iovec) { l->arg, n_arg };
	l->to[0] = (struct iovec) { l->out, sizeof(l->out) };
	n = fs_handle(g->f, &r);
	return n < 0 ? (int)n : rig_answer(g, l->out, n);
}

/* The next late answer; *ret: whose. */
static inline int rig_wait(struct rig *g, struct rig_late **ret)
{
	struct pollfd p = { .fd = fs_completion_fd(g->f), .events = POLLIN };
	void *token;
	size_t len;

	while (!fs_completed(g->f, &token, &len))
		check(poll(&p, 1, 30000) == 1);
	*ret = token;
	return rig_answer(g, (*ret)->out, (ssize_t)len);
}

/* start and wait */
static inline int rig_both(struct rig *g, uint32_t op, uint64_t node, const void *arg, size_t n_arg)
{
	struct rig_late l, *who;
	int r = rig_start(g, &l, op, node, arg, n_arg);

	if (r != FS_LATER)
		return r;
	r = rig_wait(g, &who);
	check(who == &l);
	return r;
}

static inline void rig_init(struct rig *g)
{
	struct fuse_init_in in = {
		.major = 7, .minor = 41, .max_readahead = 131072, .flags = UINT32_MAX
	};

	check(rig_call(g, FUSE_INIT, 0, &in, sizeof(in), NULL, NULL) == 0);
}

static inline int rig_share(struct rig *g, uint32_t id, unsigned flags, const char *below,
			    const char *path)
{
	int fd = openat(g->dir, below, O_PATH | O_CLOEXEC);

	check(fd >= 0);
	return fs_share_add(g->f, id, flags, fd, path);
}

/* base: a directory on the file system to test; cfg: NULL or what differs. */
static inline void rig_new(struct rig *g, const char *base, const struct fs_config *cfg,
			   unsigned flags)
{
	struct fs_config c = cfg ? *cfg : (struct fs_config) { 0 };
	char id[] = "0";

	*g = (struct rig) { .proc_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC) };
	(void)snprintf(g->path, sizeof(g->path), "%s/test-bac-fs-XXXXXX", base);
	check(g->proc_fd >= 0 && mkdtemp(g->path));
	g->dir = open(g->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(g->dir >= 0);
	c.proc_fd = g->proc_fd;
	c.uid = getuid();
	c.gid = getgid();
	check(fs_new(&c, &g->f) == 0);
	rig_init(g);
	check(rig_share(g, 0, flags, ".", "/share") == 0);
	g->root = rig_lookup(g, FUSE_ROOT_ID, id);
}

static inline int rig_rm(const char *p, const struct stat *s, int type, struct FTW *w)
{
	(void)s;
	(void)w;
	return type == FTW_DP ? rmdir(p) : unlink(p);
}

static inline void rig_done(struct rig *g)
{
	fs_free(g->f);
	close(g->dir);
	close(g->proc_fd);
	check(nftw(g->path, rig_rm, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

static inline const struct fuse_entry_out *rig_entry(const struct rig *g)
{
	check(g->len >= sizeof(struct fuse_entry_out));
	return (const void *)g->body;
}

static inline const struct fuse_attr *rig_attr(const struct rig *g)
{
	check(g->len == sizeof(struct fuse_attr_out));
	return &((const struct fuse_attr_out *)(const void *)g->body)->attr;
}

/* The node, or 0 and g->err. */
static inline uint64_t rig_lookup(struct rig *g, uint64_t parent, const char *name)
{
	if (rig_call(g, FUSE_LOOKUP, parent, NULL, 0, name, NULL) < 0)
		return 0;
	return rig_entry(g)->nodeid;
}

static inline int rig_getattr(struct rig *g, uint64_t node)
{
	struct fuse_getattr_in in = { 0 };

	return rig_call(g, FUSE_GETATTR, node, &in, sizeof(in), NULL, NULL);
}

static inline uint64_t rig_open(struct rig *g, uint64_t node, uint32_t flags)
{
	struct fuse_open_in in = { .flags = flags };

	if (rig_call(g, FUSE_OPEN, node, &in, sizeof(in), NULL, NULL) < 0)
		return 0;
	return ((const struct fuse_open_out *)(const void *)g->body)->fh;
}

static inline uint64_t rig_opendir(struct rig *g, uint64_t node)
{
	struct fuse_open_in in = { .flags = O_DIRECTORY };

	if (rig_call(g, FUSE_OPENDIR, node, &in, sizeof(in), NULL, NULL) < 0)
		return 0;
	return ((const struct fuse_open_out *)(const void *)g->body)->fh;
}

static inline uint64_t rig_create(struct rig *g, uint64_t dir, const char *name, uint32_t flags,
				  uint32_t mode, uint64_t *ret_node)
{
	struct fuse_create_in in = { .flags = flags, .mode = S_IFREG | mode, .umask = 022 };
	const struct fuse_open_out *o = (const void *)(g->body + sizeof(struct fuse_entry_out));

	*ret_node = 0;
	if (rig_call(g, FUSE_CREATE, dir, &in, sizeof(in), name, NULL) < 0)
		return 0;
	check(g->len == sizeof(struct fuse_entry_out) + sizeof(*o));
	*ret_node = rig_entry(g)->nodeid;
	return o->fh;
}

static inline uint64_t rig_mkdir(struct rig *g, uint64_t dir, const char *name)
{
	struct fuse_mkdir_in in = { .mode = 0755, .umask = 022 };

	if (rig_call(g, FUSE_MKDIR, dir, &in, sizeof(in), name, NULL) < 0)
		return 0;
	return rig_entry(g)->nodeid;
}

static inline int rig_release(struct rig *g, uint64_t node, uint64_t fh)
{
	struct fuse_release_in in = { .fh = fh };

	return rig_call(g, FUSE_RELEASE, node, &in, sizeof(in), NULL, NULL);
}

/* Bytes written, or -errno. */
static inline int rig_write(struct rig *g, uint64_t node, uint64_t fh, uint64_t off, const void *p,
			    size_t n, uint32_t flags, uint32_t write_flags)
{
	struct fuse_write_in in = { .fh = fh,
				    .offset = off,
				    .size = (uint32_t)n,
				    .flags = flags,
				    .write_flags = write_flags };
	int r = rig_call_full(g, FUSE_WRITE, node, &in, sizeof(in), NULL, NULL, p, n, 64);

	return r < 0 ? r : (int)((const struct fuse_write_out *)(const void *)g->body)->size;
}

/* Bytes read, in g->body, or -errno. */
static inline int rig_read(struct rig *g, uint64_t node, uint64_t fh, uint64_t off, uint32_t n)
{
	struct fuse_read_in in = { .fh = fh, .offset = off, .size = n };
	int r = rig_call_full(g, FUSE_READ, node, &in, sizeof(in), NULL, NULL, NULL, 0, n);

	return r < 0 ? r : (int)g->len;
}

static inline int rig_unlink(struct rig *g, uint64_t dir, const char *name)
{
	return rig_call(g, FUSE_UNLINK, dir, NULL, 0, name, NULL);
}

static inline int rig_rename(struct rig *g, uint64_t from, const char *a, uint64_t to,
			     const char *b, uint32_t flags)
{
	struct fuse_rename2_in in = { .newdir = to, .flags = flags };

	return rig_call(g, FUSE_RENAME2, from, &in, sizeof(in), a, b);
}

/* The guest forgets: no answer. */
static inline void rig_forget(struct rig *g, uint64_t node, uint64_t n)
{
	struct fuse_forget_in in = { .nlookup = n };

	check(rig_call(g, FUSE_FORGET, node, &in, sizeof(in), NULL, NULL) == 0);
}

/* A file of the host's side with these bytes. */
static inline void rig_host_file(struct rig *g, const char *name, const char *text)
{
	int fd = openat(g->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	check(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}
