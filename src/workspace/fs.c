/* The way of a request: its head is copied and parsed (fuse-msg.h), its opcode's row says what must hold
 * (the number is a live node's, its share may be written, ...), its function does it and puts the body,
 * and the header goes in front. */
#include "workspace/fs.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "io/fd.h"
#include "wire/msg.h"
#include "workspace/again.h"
#include "workspace/alias.h"
#include "workspace/attr.h"
#include "workspace/late.h"
#include "workspace/ops.h"
#include "workspace/place.h"
#include "workspace/reset.h"
#include "workspace/watch.h"

/* What is taken if nothing is said, and the most. */
#define FD_BUDGET      8192U
#define FD_BUDGET_MAX  65536U
#define NODE_MAX       (2U << 20)
#define HANDLE_MAX     16384U
#define HANDLE_MAX_MAX 262144U

enum needs {
	NODE = 1,      /* the header's number is a live node */
	SHARED = 2,    /* and not the root's */
	DIR = 4,       /* and a directory */
	WRITES = 8,    /* and its share may be written */
	ANY_TIME = 16, /* even before INIT */
	NO_ANSWER = 32,
};

struct row {
	call_fn *fn;
	unsigned needs;
};

#define OWN   (NODE | SHARED)
#define MAKES (OWN | DIR | WRITES)

static const struct row rows[] = {
	[FUSE_LOOKUP] = { op_lookup, NODE | DIR },
	[FUSE_FORGET] = { op_forget, NO_ANSWER },
	[FUSE_GETATTR] = { op_getattr, NODE },
	[FUSE_SETATTR] = { op_setattr, OWN | WRITES },
	[FUSE_READLINK] = { op_readlink, OWN },
	[FUSE_SYMLINK] = { op_symlink, MAKES },
	[FUSE_MKNOD] = { op_mknod, MAKES },
	[FUSE_MKDIR] = { op_mkdir, MAKES },
	[FUSE_UNLINK] = { op_unlink, MAKES },
	[FUSE_RMDIR] = { op_rmdir, MAKES },
	[FUSE_RENAME] = { op_rename, MAKES },
	[FUSE_LINK] = { op_link, MAKES },
	[FUSE_OPEN] = { op_open, OWN },
	[FUSE_READ] = { op_read, OWN },
	[FUSE_WRITE] = { op_write, OWN | WRITES },
	[FUSE_STATFS] = { op_statfs, NODE },
	[FUSE_RELEASE] = { op_release, 0 },
	[FUSE_FSYNC] = { op_fsync, OWN },
	[FUSE_SETXATTR] = { op_setxattr, OWN | WRITES },
	[FUSE_GETXATTR] = { op_getxattr, NODE },
	[FUSE_LISTXATTR] = { op_listxattr, NODE },
	[FUSE_REMOVEXATTR] = { op_removexattr, OWN | WRITES },
	[FUSE_FLUSH] = { op_flush, OWN },
	[FUSE_INIT] = { op_init, ANY_TIME },
	[FUSE_OPENDIR] = { op_opendir, NODE },
	[FUSE_READDIR] = { op_readdir, NODE },
	[FUSE_RELEASEDIR] = { op_release, 0 },
	[FUSE_FSYNCDIR] = { op_fsync, NODE },
	[FUSE_GETLK] = { op_getlk, OWN },
	[FUSE_SETLK] = { op_setlk, OWN },
	[FUSE_SETLKW] = { op_setlkw, OWN },
	[FUSE_CREATE] = { op_create, MAKES },
	[FUSE_INTERRUPT] = { op_interrupt, NO_ANSWER },
	[FUSE_DESTROY] = { op_destroy, ANY_TIME },
	[FUSE_BATCH_FORGET] = { op_batch_forget, NO_ANSWER },
	[FUSE_FALLOCATE] = { op_fallocate, OWN | WRITES },
	[FUSE_READDIRPLUS] = { op_readdirplus, NODE },
	[FUSE_RENAME2] = { op_rename2, MAKES },
	[FUSE_LSEEK] = { op_lseek, OWN },
	[FUSE_COPY_FILE_RANGE] = { op_copy_file_range, OWN },
	[FUSE_SYNCFS] = { op_syncfs, 0 },
	[FUSE_TMPFILE] = { op_tmpfile, MAKES },
};

ssize_t call_put(const struct call *c, const void *body, size_t len)
{
	if (len > c->room)
		return -ERANGE;
	(void)iov_put(c->r->out, c->r->n_out, sizeof(struct fuse_out_header), body, len);
	return (ssize_t)len;
}

static int admit(struct fs *f, struct call *c, unsigned needs)
{
	const struct node *n;

	if (!f->ready && !(needs & ANY_TIME))
		return -EIO;
	if (!(needs & NODE))
		return 0;
	n = c->n = node_get(&f->nodes, c->m.h.nodeid);
	if (!n || (n->share && n->share->dead))
		return -ESTALE;
	if (!n->share && needs & SHARED)
		return needs & WRITES ? -EROFS : -EINVAL;
	if (needs & DIR && !S_ISDIR(n->type))
		return -ENOTDIR;
	return needs & WRITES && n->share && n->share->flags & FS_SHARE_RO ? -EROFS : 0;
}

/* What the guest knows of a file that it changes itself, it knows to be old. */
static void own_change(struct fs *f, const struct call *c)
{
	struct node *n = c->n;

	if (c->m.h.opcode == FUSE_COPY_FILE_RANGE)
		n = node_get(&f->nodes,
			     ((const struct fuse_copy_file_range_in *)c->m.arg)->nodeid_out);
	else if (c->m.h.opcode != FUSE_WRITE && c->m.h.opcode != FUSE_FALLOCATE)
		return;
	if (n)
		n->told_good = false;
}

/* Done, and told to what watches. */
static ssize_t serve(struct fs *f, struct call *c)
{
	call_fn *poke = op_poke(c->m.h.opcode, c->m.h.gid);
	ssize_t len = admit(f, c, rows[c->m.h.opcode].needs & ~(poke ? WRITES : 0U));

	if (len < 0)
		return len;
	f->pid = c->m.h.pid;
	if (poke && c->n != f->root)
		return poke(f, c);
	own_change(f, c);
	len = rows[c->m.h.opcode].fn(f, c);
	if (len >= 0)
		watch_own(f, c);
	if (len == -ESTALE)
		again_stale(f);
	return len;
}

static int parse_error(enum fuse_msg_answer ans)
{
	static const int error[] = {
		[FUSE_MSG_OK] = 0,
		[FUSE_MSG_E_HEADER] = -EPROTO,
		[FUSE_MSG_E_UNKNOWN] = -ENOSYS,
		[FUSE_MSG_E_BODY] = -EINVAL,
		[FUSE_MSG_E_NAME] = -EINVAL,
		[FUSE_MSG_E_LONG] = -ENAMETOOLONG,
	};

	return error[ans];
}

static bool silent(uint32_t opcode)
{
	return opcode < ARRAY_SIZE(rows) && rows[opcode].needs & NO_ANSWER;
}

static ssize_t answer(const struct call *c, ssize_t len)
{
	struct fuse_out_header h = { .unique = c->m.h.unique };

	if (len == FS_LATER)
		return FS_LATER;
	if (silent(c->m.h.opcode))
		return 0;
	h.error = (int32_t)MIN(len, 0);
	h.len = (uint32_t)(sizeof(h) + (size_t)MAX(len, 0));
	(void)iov_put(c->r->out, c->r->n_out, 0, &h, sizeof(h));
	return h.len;
}

ssize_t fs_handle(struct fs *f, struct fs_req *r)
{
	struct call c = { .r = r };
	size_t total = iov_len(r->in, r->n_in), head, room = iov_len(r->out, r->n_out);
	enum fuse_msg_answer ans;
	struct fuse_in_header h;
	ssize_t len;

	if (total > UINT32_MAX || iov_get(r->in, r->n_in, 0, &h, sizeof(h)) < sizeof(h))
		return -EPROTO;
	if (room < sizeof(struct fuse_out_header) && !silent(h.opcode))
		return -EPROTO;
	c.room = room - MIN(room, sizeof(struct fuse_out_header));
	head = fuse_msg_head(h.opcode, total);
	if (head > sizeof(f->in))
		return -EPROTO;
	/* the header was read once, and it is that one that counts */
	memcpy(f->in, &h, sizeof(h));
	(void)iov_get(r->in, r->n_in, sizeof(h), f->in + sizeof(h), head - sizeof(h));
	ans = fuse_msg_parse(&c.m, f->in, head, total);
	if (ans == FUSE_MSG_E_HEADER)
		return -EPROTO;
	len = parse_error(ans);
	if (len == 0)
		len = serve(f, &c);
	return answer(&c, len);
}

int fs_completion_fd(const struct fs *f)
{
	return worker_fd(f->worker);
}

int fs_watch_fd(const struct fs *f)
{
	return watch_fd(f->watches);
}

void fs_watched(struct fs *f)
{
	watch_read(f);
}

bool fs_completed(struct fs *f, void **ret_token, size_t *ret_len)
{
	struct job *j = worker_ended(f->worker);

	if (!j)
		return false;
	*ret_len = late_end(f, j, ret_token);
	return true;
}

/* Without CAP_FSETID the host's kernel strips setuid bits from what we write, as from what any user
 * writes. */
static void give_up_fsetid(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2];

	if (syscall(SYS_capget, &h, d) < 0)
		return;
	d[0].effective &= ~(1U << CAP_FSETID);
	(void)syscall(SYS_capset, &h, d);
}

static struct node *root_new(struct fs *f)
{
	struct node_key k = { 0 };
	struct node *n = node_new(&f->nodes, NULL, &k, S_IFDIR);

	if (n)
		node_ref(n);
	return n;
}

int fs_new(const struct fs_config *c, struct fs **ret)
{
	_cleanup_(fs_freep) struct fs *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->cfg = *c;
	f->umask = UINT32_MAX;
	f->rule_epoch = 1;
	dircache_init(&f->dirs,
		      MAX(MIN(c->fd_budget ? c->fd_budget : FD_BUDGET, FD_BUDGET_MAX), 4U));
	r = node_table_init(&f->nodes, c->node_max ? c->node_max : NODE_MAX, &f->dirs);
	if (r == 0)
		r = handle_table_init(&f->handles, MIN(c->handle_max ? c->handle_max : HANDLE_MAX,
						       HANDLE_MAX_MAX));
	if (r == 0)
		r = worker_new(&f->worker);
	if (r < 0)
		return r;
	f->root = root_new(f);
	if (!f->root)
		return -ENOMEM;
	if (fchdir(c->proc_fd) < 0)
		return -errno;
	give_up_fsetid();
	if (c->changed)
		f->watches = watch_new();
	*ret = take_ptr(f);
	return 0;
}

struct fs *fs_free(struct fs *f)
{
	if (!f)
		return NULL;
	again_drop_all(f);
	if (f->root) {
		while (f->shares.first)
			(void)fs_share_remove(f, f->shares.first->id);
		worker_stop(f->worker);
		late_drop_all(f);
		reset_all(f);
	}
	worker_free(f->worker);
	f->watches = watch_free(f->watches);
	handle_table_done(&f->handles);
	node_table_done(&f->nodes);
	dirbuf_done(&f->dirbufs);
	alias_drop(f, NULL);
	leak_set_done(&f->marks);
	free(f->ruled.slot);
	free(f);
	return NULL;
}

static int root_of_share(struct fs *f, struct share *s, const struct statx *st)
{
	struct node_key k = attr_key(st);
	struct node *n = node_new(&f->nodes, s, &k, (uint16_t)(st->stx_mode & S_IFMT));

	if (!n)
		return -ENOMEM;
	node_ref(n);
	n->fd = s->fd;
	n->pinned = true;
	s->root = n;
	return 0;
}

/* What lies inside the new share belongs to it from now on. */
static void take_over(struct fs *f, const struct share *s)
{
	struct share *o;
	struct node *n;

	for (o = f->shares.first; o; o = o->next) {
		n = o == s ? NULL : node_by_key(&f->nodes, o, &s->root->key);
		if (n && n != o->root)
			reset_below(f, n);
	}
}

int fs_share_add(struct fs *f, uint32_t id, unsigned flags, int fd, const char *path)
{
	_close_ int own = fd;
	struct share *s;
	struct statfs fs_st;
	struct statx st;
	int r = place_statx(own, NULL, &st);

	if (r < 0)
		return r;
	if (flags & FS_SHARE_FILE ? !S_ISREG(st.stx_mode) : !S_ISDIR(st.stx_mode))
		return flags & FS_SHARE_FILE ? -EINVAL : -ENOTDIR;
	if (path[0] != '/' || flags & ~(FS_SHARE_RO | FS_SHARE_FILE))
		return -EINVAL;
	r = share_new(&f->shares, id, flags, own, path, &s);
	if (r < 0)
		return r;
	own = -1;
	s->nodev = fstatfs(fd, &fs_st) == 0 && fs_st.f_flags & ST_NODEV;
	r = root_of_share(f, s, &st);
	if (r < 0)
		share_kill(&f->shares, s);
	else
		take_over(f, s);
	share_nest(&f->shares);
	if (r == 0 && !(flags & FS_SHARE_FILE))
		alias_scan(f, s);
	return r;
}

int fs_share_remove(struct fs *f, uint32_t id)
{
	struct share *s = share_by_id(&f->shares, id);
	struct node *root;

	if (!s)
		return -ENOENT;
	again_drop_all(f);
	alias_drop(f, s);
	root = s->root;
	s->dead = true;
	reset_share(f, s);
	root->pinned = false;
	s->root = NULL;
	share_kill(&f->shares, s);
	node_unref(&f->nodes, root);
	share_nest(&f->shares);
	return 0;
}

void fs_count(const struct fs *f, struct fs_counts *ret)
{
	struct job *j;
	size_t at = 0;

	*ret = (struct fs_counts) { .nodes = f->nodes.used,
				    .handles = f->handles.used,
				    .locks = f->locks.n,
				    .dir_fds = f->dirs.n,
				    .node_memory = f->nodes.memory };
	while ((j = worker_each(f->worker, &at)))
		ret->jobs++;
}
