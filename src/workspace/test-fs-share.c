/* Shares: read-only, of one file, inside one another, removed while in use; and the path rules. */
#include <linux/capability.h>
#include <signal.h>
#include <sys/syscall.h>

#include "policy/path.h"
#include "workspace/fs-rig.h"

static struct rig g;

static void read_only(void)
{
	struct fuse_setattr_in sa = { .valid = FATTR_MODE, .mode = 0600 };
	struct fuse_link_in link;
	struct fuse_fallocate_in fa = { 0 };
	struct fuse_lk_in lk = { .owner = 1, .lk = { .end = INT64_MAX, .type = F_RDLCK } };
	uint32_t x[2] = { 1, 0 };
	uint64_t n, fh, d;

	rig_new(&g, "/dev/shm", NULL, FS_SHARE_RO);
	rig_host_file(&g, "f", "text");
	check(mkdirat(g.dir, "d", 0777) == 0);
	n = rig_lookup(&g, g.root, "f");
	d = rig_lookup(&g, g.root, "d");
	check((fh = rig_open(&g, n, O_RDONLY)) && rig_read(&g, n, fh, 0, 9) == 4);
	check(!rig_open(&g, n, O_RDWR) && g.err == -EROFS);
	check(!rig_open(&g, n, O_RDONLY | O_TRUNC) && g.err == -EROFS);
	check(!rig_mkdir(&g, d, "x") && g.err == -EROFS);
	check(rig_unlink(&g, g.root, "f") == -EROFS);
	check(rig_call(&g, FUSE_RMDIR, g.root, NULL, 0, "d", NULL) == -EROFS);
	check(rig_rename(&g, g.root, "f", d, "f", 0) == -EROFS);
	check(!rig_create(&g, g.root, "x", O_RDWR, 0644, &d) && g.err == -EROFS);
	check(!rig_create(&g, g.root, "f", O_RDONLY, 0644, &d) && g.err == -EROFS);
	link.oldnodeid = n;
	check(rig_call(&g, FUSE_LINK, g.root, &link, sizeof(link), "x", NULL) == -EROFS);
	check(rig_call(&g, FUSE_SYMLINK, g.root, NULL, 0, "x", "y") == -EROFS);
	check(rig_call(&g, FUSE_SETATTR, n, &sa, sizeof(sa), NULL, NULL) == -EROFS);
	check(rig_call_full(&g, FUSE_SETXATTR, n, x, 8, "user.a", NULL, "v", 1, 0) == -EROFS);
	check(rig_call(&g, FUSE_REMOVEXATTR, n, NULL, 0, "user.a", NULL) == -EROFS);
	check(rig_write(&g, n, fh, 0, "x", 1, O_RDWR, 0) == -EROFS);
	fa.fh = fh;
	check(rig_call(&g, FUSE_FALLOCATE, n, &fa, sizeof(fa), NULL, NULL) == -EROFS);
	lk.fh = fh;
	check(rig_call(&g, FUSE_SETLK, n, &lk, sizeof(lk), NULL, NULL) == 0);
	lk.lk.type = F_WRLCK;
	check(rig_call(&g, FUSE_SETLK, n, &lk, sizeof(lk), NULL, NULL) == -EBADF);
	check(rig_release(&g, n, fh) == 0);
	rig_done(&g);
}

/* One inside the other, one of them read-only: whoever looks from the outer one gets the inner's node. */
static void nested(bool outer_ro)
{
	uint64_t in, n, via, d, other;

	rig_new(&g, "/dev/shm", NULL, outer_ro ? FS_SHARE_RO : 0);
	check(mkdirat(g.dir, "a", 0777) == 0 && mkdirat(g.dir, "a/in", 0777) == 0);
	check(mkdirat(g.dir, "b", 0777) == 0 && mkdirat(g.dir, "a/in/sub", 0777) == 0);
	check(rig_share(&g, 7, outer_ro ? 0 : FS_SHARE_RO, "a/in", "/share/a/in") == 0);
	check(rig_share(&g, 7, 0, "b", "/x") == -EEXIST);
	check(rig_share(&g, 8, 0, "b", "x") == -EINVAL);
	in = rig_lookup(&g, FUSE_ROOT_ID, "7");
	d = rig_lookup(&g, g.root, "a");
	other = rig_lookup(&g, g.root, "b");
	via = rig_lookup(&g, d, "in");
	check(in && in == via);
	n = rig_mkdir(&g, via, "x");
	check(outer_ro ? n != 0 : g.err == -EROFS);
	n = rig_lookup(&g, via, "sub");
	check((rig_mkdir(&g, n, "y") != 0) == outer_ro);
	check((rig_mkdir(&g, d, "z") != 0) == !outer_ro);
	/* it stays where it is, and what is above it too */
	if (!outer_ro) {
		check(rig_rename(&g, d, "in", d, "out", 0) == -EBUSY);
		check(rig_rename(&g, g.root, "b", d, "in", 0) == -EBUSY);
		check(rig_rename(&g, g.root, "b", d, "in", RENAME_EXCHANGE) == -EBUSY);
		check(rig_rename(&g, g.root, "a", other, "a", 0) == -EBUSY);
		check(rig_rename(&g, g.root, "b", g.root, "a", RENAME_EXCHANGE) == -EBUSY);
		check(rig_call(&g, FUSE_RMDIR, d, NULL, 0, "in", NULL) == -EBUSY);
		check(rig_rename(&g, d, "z", d, "zz", 0) == 0);
		check(rig_rename(&g, g.root, "b", g.root, "bb", 0) == 0);
	}
	check(rig_rename(&g, via, "sub", d, "sub", 0) == (outer_ro ? -EXDEV : -EROFS));
	/* the host puts another folder in its place: the share is there all the same, and where it went */
	check(renameat(g.dir, "a/in", g.dir, "a/was") == 0 && mkdirat(g.dir, "a/in", 0777) == 0);
	check(rig_lookup(&g, d, "in") == in && rig_lookup(&g, d, "was") == in);
	check((rig_mkdir(&g, in, "v") != 0) == outer_ro);
	check(unlinkat(g.dir, "a/in", AT_REMOVEDIR) == 0);
	check(renameat(g.dir, "a/was", g.dir, "a/in") == 0);
	check(fs_share_remove(g.f, 7) == 0 && fs_share_remove(g.f, 7) == -ENOENT);
	check(rig_getattr(&g, in) == -ESTALE && rig_getattr(&g, n) == -ESTALE);
	via = rig_lookup(&g, d, "in"); /* the outer share's now */
	check(via && via != in && (rig_mkdir(&g, via, "w") != 0) == !outer_ro);
	rig_done(&g);
}

/* A read-only share put inside one that is in use: what was known there cannot be used to write. */
static void nested_later(void)
{
	uint64_t a, in, sub, f, fh, dfh, n;

	rig_new(&g, "/dev/shm", NULL, 0);
	a = rig_mkdir(&g, g.root, "a");
	in = rig_mkdir(&g, a, "in");
	sub = rig_mkdir(&g, in, "sub");
	check(rig_mkdir(&g, sub, "x") != 0);
	fh = rig_create(&g, sub, "f", O_RDWR, 0644, &f);
	dfh = rig_opendir(&g, sub);
	check(rig_share(&g, 7, FS_SHARE_RO, "a/in", "/share/a/in") == 0);
	check(!rig_mkdir(&g, sub, "y") && g.err == -ESTALE);
	check(!rig_mkdir(&g, in, "y") && g.err == -ESTALE);
	check(rig_write(&g, f, fh, 0, "x", 1, O_RDWR, 0) == -ESTALE);
	check(!rig_open(&g, f, O_RDWR) && g.err == -ESTALE);
	check(rig_release(&g, f, fh) == 0 && rig_release(&g, sub, dfh) == 0);
	in = rig_lookup(&g, a, "in");
	n = rig_lookup(&g, in, "sub");
	check(n && n != sub && !rig_mkdir(&g, n, "y") && g.err == -EROFS);
	check(rig_mkdir(&g, a, "z") != 0);
	rig_done(&g);
}

static void one_file(void)
{
	uint64_t n, fh, sub;

	rig_new(&g, "/dev/shm", NULL, 0);
	rig_host_file(&g, "single", "abc");
	check(rig_share(&g, 3, 0, "single", "/elsewhere/single") == -ENOTDIR);
	check(rig_share(&g, 3, FS_SHARE_FILE, ".", "/elsewhere/single") == -EINVAL);
	check(rig_share(&g, 3, FS_SHARE_FILE, "single", "/elsewhere/single") == 0);
	n = rig_lookup(&g, FUSE_ROOT_ID, "3");
	check(n && S_ISREG(rig_entry(&g)->attr.mode) && rig_entry(&g)->attr.size == 3);
	fh = rig_open(&g, n, O_RDWR);
	check(fh && rig_write(&g, n, fh, 3, "d", 1, O_RDWR, 0) == 1 &&
	      rig_read(&g, n, fh, 0, 9) == 4);
	check(rig_call(&g, FUSE_STATFS, n, NULL, 0, NULL, NULL) == 0);
	check(!rig_lookup(&g, n, "x") && g.err == -ENOTDIR);
	check(rig_release(&g, n, fh) == 0 && rig_getattr(&g, n) == 0 && rig_attr(&g)->size == 4);
	sub = rig_lookup(&g, g.root, "single"); /* the same file by the other share */
	check(sub == n);
	rig_forget(&g, n, 2);
	check(rig_lookup(&g, FUSE_ROOT_ID, "3") == n);
	rig_done(&g);
}

static void removed_in_use(void)
{
	struct fuse_lk_in lk = { .owner = 5, .lk = { .end = INT64_MAX, .type = F_WRLCK } };
	struct rig_late wait, *who;
	uint64_t n, fh, fh2, dfh;
	struct fs_counts c;

	rig_new(&g, "/dev/shm", NULL, 0);
	fh = rig_create(&g, g.root, "f", O_RDWR, 0644, &n);
	fh2 = rig_open(&g, n, O_RDWR);
	dfh = rig_opendir(&g, g.root);
	lk.fh = fh;
	check(rig_call(&g, FUSE_SETLK, n, &lk, sizeof(lk), NULL, NULL) == 0);
	lk.fh = fh2;
	lk.owner = 6;
	check(rig_start(&g, &wait, FUSE_SETLKW, n, &lk, sizeof(lk)) == FS_LATER);
	check(fs_share_remove(g.f, 0) == 0);
	check(rig_wait(&g, &who) <= 0 && who == &wait);
	check(rig_read(&g, n, fh, 0, 1) == -ESTALE && rig_getattr(&g, g.root) == -ESTALE);
	check(!rig_lookup(&g, g.root, "f") && g.err == -ESTALE);
	check(rig_release(&g, n, fh) == 0 && rig_release(&g, n, fh2) == 0);
	check(rig_release(&g, g.root, dfh) == 0);
	rig_forget(&g, n, 1);
	rig_forget(&g, g.root, 1);
	fs_count(g.f, &c);
	check(c.nodes == 1 && c.handles == 0 && c.locks == 0 && c.dir_fds == 0 && c.jobs == 0);
	check(rig_share(&g, 0, 0, ".", "/again") == 0 && rig_lookup(&g, FUSE_ROOT_ID, "0"));
	rig_done(&g);
}

static unsigned refusals;
static char last[256];

static void refused(void *arg, const struct fs_refusal *r)
{
	(void)arg;
	refusals++;
	(void)snprintf(last, sizeof(last), "%s %s (%s)", r->op, r->path, r->rule);
}

static struct path_rules *some_rules(void)
{
	static const char *const protect[] = { "**/.git/hooks/**", "top/fixed" };
	_cleanup_(path_builder_freep) struct path_builder *b = NULL;
	struct path_rules *r = NULL;
	struct err e;
	size_t i;

	check(path_builder_new(&b) == 0);
	check(path_builder_add(b, PATH_HIDE, ".env", "test", &e) == 0);
	for (i = 0; i < ARRAY_SIZE(protect); i++)
		check(path_builder_add(b, PATH_PROTECT, protect[i], "test", &e) == 0);
	check(path_rules_freeze(b, &r) == 0);
	return r;
}

static void hidden(void)
{
	struct fuse_setattr_in sa = { .valid = FATTR_MODE, .mode = 0600 };
	struct fuse_getxattr_in names = { .size = 0 };
	struct fuse_link_in link;
	uint64_t n, d, h;

	rig_host_file(&g, ".env", "SECRET=1");
	n = rig_lookup(&g, g.root, ".env");
	check(n && rig_entry(&g)->attr.size == 0);
	check(rig_getattr(&g, n) == 0 && rig_attr(&g)->size == 0);
	check(!rig_open(&g, n, O_RDONLY) && g.err == -EACCES);
	check(streq(last, "OPEN .env (.env)"));
	check(rig_call(&g, FUSE_SETATTR, n, &sa, sizeof(sa), NULL, NULL) == -EACCES);
	check(rig_call(&g, FUSE_LISTXATTR, n, &names, sizeof(names), NULL, NULL) == 0);
	link.oldnodeid = n;
	check(rig_call(&g, FUSE_LINK, g.root, &link, sizeof(link), "x", NULL) == -EACCES);
	check(rig_unlink(&g, g.root, ".env") == -EACCES);
	check(rig_rename(&g, g.root, ".env", g.root, "y", 0) == -EACCES);
	rig_host_file(&g, "free", "free");
	check(rig_rename(&g, g.root, "free", g.root, ".env", 0) == -EACCES);
	check(rig_rename(&g, g.root, "free", g.root, ".ENV", 0) == -EACCES);
	check(!rig_create(&g, g.root, ".env", O_RDWR, 0644, &d) && g.err == -EACCES);
	/* its other name, made on the host */
	check(linkat(g.dir, ".env", g.dir, "harmless", 0) == 0);
	rig_lookup(&g, g.root, ".env");
	h = rig_lookup(&g, g.root, "harmless");
	check(h == n && !rig_open(&g, h, O_RDONLY) && g.err == -EACCES);
	/* forgotten, and the harmless name first */
	rig_forget(&g, n, UINT64_MAX);
	h = rig_lookup(&g, g.root, "harmless");
	check(!rig_open(&g, h, O_RDONLY) && g.err == -EACCES);
}

static void protected(void)
{
	uint64_t top, git, hooks, n, fh, d;

	top = rig_mkdir(&g, g.root, "top");
	fh = rig_create(&g, top, "loose", O_RDWR, 0644, &n);
	check(fh && rig_release(&g, n, fh) == 0);
	check(!rig_create(&g, top, "fixed", O_RDWR, 0644, &n) && g.err == -EACCES);
	check(!rig_mkdir(&g, top, "fixed") && g.err == -EACCES);
	check(rig_rename(&g, top, "loose", top, "fixed", 0) == -EACCES);
	check(rig_rename(&g, g.root, "top", g.root, "top2", 0) == -EXDEV);
	check(rig_call(&g, FUSE_SYMLINK, g.root, NULL, 0, "sl", "elsewhere") == 0);
	git = rig_mkdir(&g, g.root, ".git");
	check(rig_rename(&g, g.root, "sl", git, "hooks", 0) == -EACCES);
	check(rig_call(&g, FUSE_SYMLINK, git, NULL, 0, "hooks", "elsewhere") == -EACCES);
	hooks = rig_mkdir(&g, git, "hooks");
	check(hooks && !rig_create(&g, hooks, "pre-commit", O_RDWR, 0755, &n) && g.err == -EACCES);
	/* made elsewhere and moved in with its directory */
	d = rig_mkdir(&g, g.root, "free");
	check(d && rig_mkdir(&g, d, "hooks"));
	check(rig_rename(&g, g.root, "free", g.root, "sub", 0) == 0);
	check(rig_rename(&g, g.root, "sub", d, "x", 0) == -EINVAL);
	check(rig_rename(&g, d, "hooks", git, "hooks", 0) == -EXDEV);
	/* what the host put there can be read and not written */
	rig_host_file(&g, ".git/hooks/h", "text");
	n = rig_lookup(&g, hooks, "h");
	check(rig_entry(&g)->attr.size == 4 && (fh = rig_open(&g, n, O_RDONLY)));
	check(!rig_open(&g, n, O_RDWR) && g.err == -EACCES && rig_release(&g, n, fh) == 0);
}

#define OLD_CONFIG "[core]\n\tbare = false\n\thooksPath = mine\n"

/* The configuration may be written, not so that it runs something new. */
static void git_config(void)
{
	struct fuse_link_in link;
	struct fuse_setattr_in sa = { .valid = FATTR_SIZE };
	uint64_t git, n, fh, m, d;
	char buf[128] = { 0 };

	git = rig_lookup(&g, g.root, ".git");
	rig_host_file(&g, ".git/config", OLD_CONFIG);
	n = rig_lookup(&g, git, "config");
	fh = rig_open(&g, n, O_RDWR);
	check(fh && rig_read(&g, n, fh, 0, 100) == (int)strlen(OLD_CONFIG));
	check(rig_write(&g, n, fh, strlen(OLD_CONFIG), "\teditor = ev\n", 13, O_RDWR, 0) ==
	      -EACCES);
	check(strstr(last, "core.editor"));
	check(rig_write(&g, n, fh, 0, "\teditor = ev\n", 13, O_RDWR | O_APPEND, 0) == -EACCES);
	check(rig_write(&g, n, fh, strlen(OLD_CONFIG), "\tignoreCase = no\n", 17, O_RDWR, 0) == 17);
	check(rig_release(&g, n, fh) == 0);
	/* emptied and written again in pieces */
	fh = rig_open(&g, n, O_WRONLY | O_TRUNC);
	check(fh && rig_write(&g, n, fh, 0, OLD_CONFIG, 20, O_WRONLY, 0) == 20);
	check(rig_write(&g, n, fh, 20, &OLD_CONFIG[20], strlen(OLD_CONFIG) - 20, O_WRONLY, 0) > 0);
	check(rig_write(&g, n, fh, strlen(OLD_CONFIG) - 2, "x\n", 2, O_WRONLY, 0) == -EACCES);
	sa.size = strlen(OLD_CONFIG) - 3;
	check(rig_call(&g, FUSE_SETATTR, n, &sa, sizeof(sa), NULL, NULL) == -EACCES);
	sa.size = 0;
	check(rig_call(&g, FUSE_SETATTR, n, &sa, sizeof(sa), NULL, NULL) == 0);
	check(rig_write(&g, n, fh, 0, OLD_CONFIG, strlen(OLD_CONFIG), O_WRONLY, 0) > 0);
	check(rig_release(&g, n, fh) == 0);
	/* by rename, link and symbolic link */
	fh = rig_create(&g, git, "config.lock", O_RDWR, 0644, &m);
	check(rig_write(&g, m, fh, 0, OLD_CONFIG, strlen(OLD_CONFIG), O_RDWR, 0) > 0);
	check(rig_rename(&g, git, "config.lock", git, "config", 0) == 0);
	check(rig_write(&g, m, fh, 0, "[alias]\n\ta = !b\n", 16, O_RDWR, 0) ==
	      -EACCES); /* still open */
	check(rig_release(&g, m, fh) == 0);
	fh = rig_create(&g, git, "config.lock", O_RDWR, 0644, &m);
	check(rig_write(&g, m, fh, 0, "[alias]\n\ta = !b\n", 16, O_RDWR, 0) == 16);
	check(rig_release(&g, m, fh) == 0);
	check(rig_rename(&g, git, "config.lock", git, "config", 0) == -EACCES);
	check(rig_rename(&g, git, "config.lock", git, "config", RENAME_EXCHANGE) == -EACCES);
	link.oldnodeid = m;
	check(rig_call(&g, FUSE_LINK, git, &link, sizeof(link), "config.worktree", NULL) == -EXDEV);
	check(rig_call(&g, FUSE_SYMLINK, git, NULL, 0, "config.worktree", "x") == -EACCES);
	d = rig_mkdir(&g, g.root, "bare");
	check(rig_rename(&g, git, "config.lock", d, "config", 0) ==
	      -EACCES); /* could be a repository */
	check(faccessat(g.dir, ".git/config", R_OK, 0) == 0);
	fh = (uint64_t)openat(g.dir, ".git/config", O_RDONLY);
	check(read((int)fh, buf, sizeof(buf)) == (ssize_t)strlen(OLD_CONFIG) &&
	      streq(buf, OLD_CONFIG));
	close((int)fh);
}

/* A second sandbox with the same folder. */
static void another(struct rig *b, const struct path_rules *r)
{
	struct fs_config c = { .rules = r, .refused = refused, .uid = getuid(), .gid = getgid() };

	*b = (struct rig) { .proc_fd = g.proc_fd, .dir = g.dir };
	c.proc_fd = g.proc_fd;
	check(fs_new(&c, &b->f) == 0);
	rig_init(b);
	check(rig_share(b, 0, 0, ".", "/share") == 0);
	b->root = rig_lookup(b, FUSE_ROOT_ID, "0");
}

#define EVIL "[alias]\n\ta = !b\n"

/* What one has open for writing does not become git's configuration by the other's hand. */
static void two_guests(const struct path_rules *r)
{
	struct fuse_setattr_in sa = { .valid = FATTR_SIZE };
	uint64_t git = rig_lookup(&g, g.root, ".git"), n, fh, d, m, other;
	struct rig b;

	another(&b, r);
	rig_host_file(&g, "innocent", OLD_CONFIG);
	n = rig_lookup(&b, b.root, "innocent");
	fh = rig_open(&b, n, O_RDWR);
	check(fh && rig_lookup(&g, g.root, "innocent"));
	check(rig_rename(&g, g.root, "innocent", git, "config", 0) == -EXDEV);
	check(rig_write(&b, n, fh, 0, OLD_CONFIG, strlen(OLD_CONFIG), O_RDWR, 0) > 0);
	check(rig_release(&b, n, fh) == 0);
	/* closed: it moves, and the other, which knows it by its old name, does not get it open */
	other = rig_open(&b, n, O_RDONLY);
	check(rig_rename(&g, g.root, "innocent", git, "config", 0) == 0);
	check(!rig_open(&b, n, O_RDWR) && g.err == 0 && b.err == -ESTALE);
	check(!rig_open(&b, n, O_RDWR | O_TRUNC) && b.err == -ESTALE);
	check(rig_call(&b, FUSE_SETATTR, n, &sa, sizeof(sa), NULL, NULL) == -ESTALE);
	check(rig_release(&b, n, other) == 0);
	d = rig_lookup(&b, rig_lookup(&b, b.root, ".git"), "config");
	check(d && (fh = rig_open(&b, d, O_RDWR)));
	check(rig_write(&b, d, fh, 0, EVIL, strlen(EVIL), O_RDWR, 0) == -EACCES);
	check(rig_release(&b, d, fh) == 0);
	/* one's own handle is not in the way, and is judged afterwards */
	fh = rig_create(&g, g.root, "mine", O_RDWR, 0644, &m);
	check(rig_write(&g, m, fh, 0, OLD_CONFIG, strlen(OLD_CONFIG), O_RDWR, 0) > 0);
	check(rig_rename(&g, g.root, "mine", git, "config", 0) == 0);
	check(rig_write(&g, m, fh, 0, EVIL, strlen(EVIL), O_RDWR, 0) == -EACCES);
	check(rig_write(&g, m, fh, 0, OLD_CONFIG, strlen(OLD_CONFIG), O_RDWR, 0) > 0);
	check(rig_release(&g, m, fh) == 0);
	/* moved by the other to where no rule is: as before */
	rig_host_file(&g, "plain", "text");
	n = rig_lookup(&g, g.root, "plain");
	check((other = rig_open(&g, n, O_RDONLY)) &&
	      renameat(g.dir, "plain", g.dir, "plainer") == 0);
	check(rig_call(&g, FUSE_SETATTR, n, &sa, sizeof(sa), NULL, NULL) == 0);
	check(rig_release(&g, n, other) == 0);
	fs_free(b.f);
}

/* As an ordinary user: root opens what its mode forbids. */
static void powerless(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2];

	check(syscall(SYS_capget, &h, d) == 0);
	d[0].effective &= ~(1U << CAP_DAC_OVERRIDE);
	check(syscall(SYS_capset, &h, d) == 0);
}

/* A file that nobody may open for writing, but that is open for it, becomes git's configuration. */
static void unwritable(const struct path_rules *r)
{
	uint64_t git = rig_lookup(&g, g.root, ".git"), fh, m, d, other;
	struct rig b;

	another(&b, r);
	fh = rig_create(&g, g.root, "still", O_RDWR, 0444, &m);
	check(fh && !rig_open(&g, m, O_RDWR) && g.err == -EACCES);
	check(rig_write(&g, m, fh, 0, EVIL, strlen(EVIL), O_RDWR, 0) > 0);
	check(rig_rename(&g, g.root, "still", git, "config", 0) == -EACCES);
	check(rig_write(&g, m, fh, 0, OLD_CONFIG, strlen(OLD_CONFIG), O_RDWR, 0) > 0);
	check(rig_rename(&g, g.root, "still", git, "config", 0) == 0);
	*last = '\0';
	check(rig_write(&g, m, fh, 0, EVIL, strlen(EVIL), O_RDWR, 0) == -EACCES);
	check(strstr(last, "alias"));
	check(rig_write(&g, m, fh, 0, OLD_CONFIG, strlen(OLD_CONFIG), O_RDWR, 0) > 0);
	/* it has a writer: no other sandbox moves it to where git reads it, and the lease is gone */
	d = rig_lookup(&b, rig_lookup(&b, b.root, ".git"), "config");
	check(d && (other = rig_open(&b, d, O_RDONLY)) && rig_release(&b, d, other) == 0);
	d = rig_lookup(&b, b.root, ".git");
	check(rig_rename(&b, d, "config", b.root, "aside", 0) == 0);
	rig_host_file(&g, ".git/config", OLD_CONFIG);
	check(rig_rename(&b, b.root, "aside", d, "config", 0) == -EXDEV);
	check(rig_release(&g, m, fh) == 0);
	check(rig_rename(&b, b.root, "aside", d, "config", 0) == 0);
	/* somebody reads it: it moves, and is written no more by this handle */
	fh = rig_create(&g, g.root, "read", O_RDWR, 0444, &m);
	check(fh && (d = rig_lookup(&b, b.root, "read")) && (other = rig_open(&b, d, O_RDONLY)));
	check(rig_rename(&g, g.root, "read", git, "config", 0) == 0);
	check(rig_write(&g, m, fh, 0, "x", 1, O_RDWR, 0) == -EACCES);
	check(rig_release(&g, m, fh) == 0 && rig_release(&b, d, other) == 0);
	/* both change places */
	fh = rig_create(&g, g.root, "both", O_RDWR, 0444, &m);
	check(fh && rig_rename(&g, g.root, "both", git, "config", RENAME_EXCHANGE) == 0);
	check(rig_release(&g, m, fh) == 0);
	fs_free(b.f);
}

/* A file whose name is longer than the host tells. */
static void far_down(void)
{
	char name[256];
	struct fuse_setattr_in in = { .valid = FATTR_SIZE, .size = 3 };
	uint64_t way[19] = { g.root }, d, fh, m = 0;

	memset(name, 'd', 255);
	name[255] = '\0';
	for (size_t i = 1; i < ARRAY_SIZE(way); i++) {
		way[i] = rig_mkdir(&g, way[i - 1], name);
		check(way[i]);
	}
	d = way[ARRAY_SIZE(way) - 1];
	fh = rig_create(&g, d, "file", O_RDWR, 0644, &m);
	check(fh && rig_write(&g, m, fh, 0, "12345", 5, O_RDWR, 0) == 5);
	check(rig_release(&g, m, fh) == 0);
	fh = rig_open(&g, m, O_RDWR);
	check(fh && rig_release(&g, m, fh) == 0);
	check(rig_call(&g, FUSE_SETATTR, m, &in, sizeof(in), NULL, NULL) == 0);
	check(rig_attr(&g)->size == 3);
	/* the host moves one of the folders above it: it is not where it was looked up */
	check(renameat(g.dir, name, g.dir, "elsewhere") == 0);
	check(rig_call(&g, FUSE_SETATTR, m, &in, sizeof(in), NULL, NULL) < 0);
	check(!rig_open(&g, m, O_RDWR));
	check(renameat(g.dir, "elsewhere", g.dir, name) == 0);
	check(rig_call(&g, FUSE_SETATTR, m, &in, sizeof(in), NULL, NULL) == 0);
	check(rig_call(&g, FUSE_UNLINK, d, NULL, 0, "file", NULL) == 0);
	for (size_t i = ARRAY_SIZE(way) - 1; i > 0; i--)
		check(rig_call(&g, FUSE_RMDIR, way[i - 1], NULL, 0, name, NULL) == 0);
}

/* A new file, made by the guest in the folder: 0, or what the server says. */
static int makes(const char *dir, const char *sub, const char *name)
{
	uint64_t d = rig_lookup(&g, g.root, dir), n;

	if (sub)
		d = rig_lookup(&g, d, sub);
	check(d);
	return rig_create(&g, d, name, O_RDWR, 0644, &n) ? 0 : g.err;
}

/* Links of the host on the way to ruled files: their targets are ruled, whether they were there when the share came
 * or the guest meets them. */
static void links(void)
{
	struct path_rules *r = some_rules();
	struct fs_config c = { .rules = r, .refused = refused };
	uint64_t d;

	rig_new(&g, "/dev/shm", &c, 0);
	for (const char *const *p =
		     (const char *const[]) { "in", "in/one", "in/one/.git", "in/one/hooks",
					     "in/two", "in/store", "in/free", NULL };
	     *p; p++)
		check(mkdirat(g.dir, *p, 0777) == 0);
	check(symlinkat("../hooks", g.dir, "in/one/.git/hooks") == 0);
	check(symlinkat("/share/in/store/git", g.dir, "in/two/.git") == 0); /* nothing there yet */
	check(symlinkat("store/env", g.dir, "in/.env") == 0);
	check(symlinkat("../../../..", g.dir, "in/free/.env") ==
	      0); /* leads out: not the guest's */
	rig_host_file(&g, "in/store/env", "secret");
	check(rig_share(&g, 9, 0, "in", "/share/in") == 0);
	g.root = rig_lookup(&g, FUSE_ROOT_ID, "9");
	check(makes("one", "hooks", "pre-commit") == -EACCES);
	check(makes("one", NULL, "file") == 0 && makes("free", NULL, "file") == 0);
	d = rig_lookup(&g, g.root, "one");
	check(rig_rename(&g, d, "file", rig_lookup(&g, d, "hooks"), "pre-push", 0) == -EACCES);
	check(rig_rename(&g, d, "hooks", d, "h2", 0) == -EXDEV);
	check(rig_rename(&g, g.root, "free", d, "hooks", 0) != 0);
	check(rig_call(&g, FUSE_RMDIR, d, NULL, 0, "hooks", NULL) == 0);
	check(rig_call(&g, FUSE_SYMLINK, d, NULL, 0, "hooks", "../free") == -EACCES);
	check(rig_mkdir(&g, d, "hooks") && makes("one", "hooks", "x") == -EACCES);
	/* a repository that is elsewhere, and comes to be only now */
	d = rig_lookup(&g, g.root, "store");
	check(rig_mkdir(&g, d, "git") && rig_mkdir(&g, rig_lookup(&g, d, "git"), "hooks"));
	d = rig_lookup(&g, d, "git");
	check(rig_create(&g, d, "HEAD", O_RDWR, 0644, &d));
	d = rig_lookup(&g, rig_lookup(&g, g.root, "store"), "git");
	check(!rig_create(&g, rig_lookup(&g, d, "hooks"), "x", O_RDWR, 0644, &d) &&
	      g.err == -EACCES);
	/* a file: the secret by its own name */
	check(!rig_open(&g, rig_lookup(&g, rig_lookup(&g, g.root, "store"), "env"), O_RDONLY) &&
	      g.err == -EACCES);
	/* one that the host makes later */
	check(makes("two", NULL, "later") == 0 && unlinkat(g.dir, "in/two/.git", 0) == 0);
	check(mkdirat(g.dir, "in/two/.git", 0777) == 0 && mkdirat(g.dir, "in/two/h", 0777) == 0);
	check(makes("two", "h", "before") == 0);
	check(symlinkat("../h", g.dir, "in/two/.git/hooks") == 0);
	check(rig_lookup(&g, rig_lookup(&g, rig_lookup(&g, g.root, "two"), ".git"), "hooks"));
	check(makes("two", "h", "after") == -EACCES);
	rig_done(&g);
	path_rules_free(r);
}

static void rules(void)
{
	struct path_rules *r = some_rules();
	struct fs_config c = { .rules = r, .refused = refused };

	rig_new(&g, "/dev/shm", &c, 0);
	hidden();
	check(unlinkat(g.dir, "free", 0) == 0);
	protected();
	git_config();
	two_guests(r);
	check(refusals > 10);
	powerless();
	unwritable(r);
	far_down();
	rig_done(&g);
	path_rules_free(r);
}

int main(void)
{
	check(signal(SIGIO, SIG_IGN) != SIG_ERR); /* of leases */
	read_only();
	nested(false);
	nested(true);
	nested_later();
	one_file();
	removed_in_use();
	rules();
	links();
	return 0;
}
