/* Every opcode, on tmpfs and on a disk: what it does, and how it fails. */
#include "workspace/fs-rig.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/xattr.h>

static struct rig g;

static void host_stat(const char *name, struct stat *s)
{
	check(fstatat(g.dir, name, s, AT_SYMLINK_NOFOLLOW) == 0);
}

static bool host_has(const char *name)
{
	struct stat s;

	return fstatat(g.dir, name, &s, AT_SYMLINK_NOFOLLOW) == 0;
}

static void handshake(void)
{
	struct fuse_init_in in = { .major = 8 };
	const struct fuse_init_out *out = (const void *)g.body;
	uint64_t root;

	check(rig_call(&g, FUSE_INIT, 0, &in, sizeof(in), NULL, NULL) == 0);
	check(out->major == 7); /* and nothing more: it asks again */
	in = (struct fuse_init_in) { .major = 7, .minor = 30 };
	check(rig_call(&g, FUSE_INIT, 0, &in, sizeof(in), NULL, NULL) == -EPROTO);
	in = (struct fuse_init_in) {
		.major = 7, .minor = 38, .max_readahead = 12345, .flags = UINT32_MAX
	};
	check(rig_call(&g, FUSE_INIT, 0, &in, sizeof(in), NULL, NULL) == 0);
	check(g.len == sizeof(*out) && out->max_write == 1 << 20 && out->max_pages == 256);
	check(out->time_gran == 1 && out->max_readahead == 12345);
	check(!(out->flags & (FUSE_WRITEBACK_CACHE | FUSE_EXPORT_SUPPORT | FUSE_MAP_ALIGNMENT)));
	check(out->flags & FUSE_HANDLE_KILLPRIV_V2 && out->flags & FUSE_ATOMIC_O_TRUNC);
	in.flags = FUSE_BIG_WRITES;
	check(rig_call(&g, FUSE_INIT, 0, &in, 16, NULL, NULL) == 0);
	check(out->flags == FUSE_BIG_WRITES);
	/* all is forgotten */
	check(rig_getattr(&g, g.root) == 0);
	check(rig_call(&g, FUSE_DESTROY, 0, NULL, 0, NULL, NULL) == 0);
	check(rig_getattr(&g, g.root) == -EIO);
	rig_init(&g);
	root = rig_lookup(&g, FUSE_ROOT_ID, "0");
	check(root == g.root);
}

static void the_root(void)
{
	check(rig_getattr(&g, FUSE_ROOT_ID) == 0);
	check(S_ISDIR(rig_attr(&g)->mode) && rig_attr(&g)->ino == 1);
	check(!rig_lookup(&g, FUSE_ROOT_ID, "1") && g.err == -ENOENT);
	check(!rig_lookup(&g, FUSE_ROOT_ID, "00") && g.err == -ENOENT);
	check(!rig_lookup(&g, FUSE_ROOT_ID, "x") && g.err == -ENOENT);
	check(!rig_mkdir(&g, FUSE_ROOT_ID, "x") && g.err == -EROFS);
	check(rig_unlink(&g, FUSE_ROOT_ID, "0") == -EROFS);
	check(rig_rename(&g, g.root, "x", FUSE_ROOT_ID, "x", 0) == -EXDEV);
	check(rig_call(&g, FUSE_STATFS, FUSE_ROOT_ID, NULL, 0, NULL, NULL) == 0);
	check(!rig_open(&g, FUSE_ROOT_ID, O_RDONLY) && g.err == -EINVAL);
}

static void names(void)
{
	char longest[257];
	const char *bad[] = { ".", "..", "", "a/b", "/" };
	uint64_t n;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		check(!rig_lookup(&g, g.root, bad[i]) && g.err == -EINVAL);
	memset(longest, 'n', sizeof(longest));
	longest[256] = 0;
	check(!rig_lookup(&g, g.root, longest) && g.err == -ENAMETOOLONG);
	longest[255] = 0;
	check(!rig_lookup(&g, g.root, longest) && g.err == -ENOENT);
	n = rig_mkdir(&g, g.root, longest);
	check(n && rig_lookup(&g, g.root, longest) == n);
	check(rig_mkdir(&g, n, longest));
	check(rig_call(&g, FUSE_RMDIR, n, NULL, 0, longest, NULL) == 0);
	check(rig_call(&g, FUSE_RMDIR, g.root, NULL, 0, longest, NULL) == 0);
	/* any bytes */
	for (i = 1; i < 256; i++)
		longest[i - 1] = (char)(i == '/' ? 'x' : i);
	check(rig_mkdir(&g, g.root, longest) && host_has(longest));
	check(rig_call(&g, FUSE_RMDIR, g.root, NULL, 0, longest, NULL) == 0);
	check(!host_has(longest));
}

static void file(void)
{
	struct stat s;
	uint64_t n, fh, fh2;
	static char big[FS_MAX_WRITE];

	fh = rig_create(&g, g.root, "f", O_RDWR | O_EXCL, 06755, &n);
	check(fh);
	host_stat("f", &s);
	check((s.st_mode & 07777) == 0755 && rig_entry(&g)->attr.uid == 1000 &&
	      s.st_uid == getuid());
	check(!rig_create(&g, g.root, "f", O_RDWR | O_EXCL, 0644, &fh2) && g.err == -EEXIST);
	check(rig_write(&g, n, fh, 0, "hello", 5, O_RDWR, 0) == 5);
	check(rig_read(&g, n, fh, 1, 100) == 4 && !memcmp(g.body, "ello", 4));
	check(rig_read(&g, n, fh, 5, 100) == 0);
	check(rig_read(&g, n, fh, UINT64_MAX, 100) == -EINVAL);
	check(rig_read(&g, n, fh + 1, 0, 100) == -EBADF);
	check(rig_read(&g, g.root, fh, 0, 100) == -EBADF);
	check(rig_write(&g, n, fh, UINT64_MAX, "x", 1, O_RDWR, 0) == -EINVAL);
	memset(big, 'b', sizeof(big));
	check(rig_write(&g, n, fh, 7, big, sizeof(big), O_RDWR, 0) == sizeof(big));
	check(rig_read(&g, n, fh, 7, sizeof(big)) == sizeof(big) &&
	      !memcmp(g.body, big, sizeof(big)));
	fh2 = rig_open(&g, n, O_RDONLY);
	check(fh2 && rig_write(&g, n, fh2, 0, "x", 1, O_RDONLY, 0) == -EBADF);
	check(rig_release(&g, n, fh2) == 0 && rig_release(&g, n, fh2) == -EBADF);
	fh2 = rig_open(&g, n, O_WRONLY | O_TRUNC);
	host_stat("f", &s);
	check(fh2 && s.st_size == 0 && rig_read(&g, n, fh2, 0, 1) == -EBADF);
	check(rig_release(&g, n, fh2) == 0 && rig_release(&g, n, fh) == 0);
	/* create of what is there: opened, and emptied when asked */
	rig_host_file(&g, "there", "text");
	fh = rig_create(&g, g.root, "there", O_RDWR, 0600, &n);
	host_stat("there", &s);
	check(fh && s.st_size == 4 && rig_release(&g, n, fh) == 0);
	fh = rig_create(&g, g.root, "there", O_RDWR | O_TRUNC, 0600, &n);
	host_stat("there", &s);
	check(fh && s.st_size == 0 && rig_release(&g, n, fh) == 0);
	check(symlinkat("f", g.dir, "link") == 0);
	check(!rig_create(&g, g.root, "link", O_RDWR, 0600, &fh2) && g.err == -ESTALE);
	check(unlinkat(g.dir, "link", 0) == 0);
}

static void unlinked(void)
{
	struct fuse_create_in in = { .flags = O_RDWR, .mode = S_IFREG | 0600 };
	struct fuse_link_in link;
	uint64_t n, fh, fh2, dir, dfh;

	fh = rig_create(&g, g.root, "u", O_RDWR, 0644, &n);
	check(rig_write(&g, n, fh, 0, "data", 4, O_RDWR, 0) == 4);
	check(rig_unlink(&g, g.root, "u") == 0 && !host_has("u"));
	check(rig_unlink(&g, g.root, "u") == -ENOENT);
	check(rig_getattr(&g, n) == 0 && rig_attr(&g)->nlink == 0 && rig_attr(&g)->size == 4);
	check(rig_read(&g, n, fh, 0, 10) == 4);
	fh2 = rig_open(&g, n, O_RDONLY); /* by its descriptor */
	check(fh2 && rig_read(&g, n, fh2, 0, 10) == 4);
	check(rig_release(&g, n, fh) == 0 && rig_release(&g, n, fh2) == 0);
	check(rig_getattr(&g, n) == -ESTALE && !rig_open(&g, n, O_RDONLY));
	rig_forget(&g, n, 1);
	check(rig_getattr(&g, n) == -ESTALE);
	/* without a name from the start, then given one */
	if (rig_call(&g, FUSE_TMPFILE, g.root, &in, sizeof(in), "/", NULL) == 0) {
		n = rig_entry(&g)->nodeid;
		fh = ((const struct fuse_open_out *)(const void *)(g.body +
								   sizeof(struct fuse_entry_out)))
			     ->fh;
		check(rig_write(&g, n, fh, 0, "temp", 4, O_RDWR, 0) == 4);
		link.oldnodeid = n;
		check(rig_call(&g, FUSE_LINK, g.root, &link, sizeof(link), "named", NULL) == 0);
		check(rig_entry(&g)->nodeid == n && host_has("named"));
		check(rig_release(&g, n, fh) == 0 && (fh = rig_open(&g, n, O_RDONLY)));
		check(rig_read(&g, n, fh, 0, 10) == 4 && rig_release(&g, n, fh) == 0);
	} else {
		check(g.err == -EOPNOTSUPP || g.err == -EISDIR);
	}
	/* a directory that is open, or someone's working directory */
	dir = rig_mkdir(&g, g.root, "d");
	dfh = rig_opendir(&g, dir);
	check(dfh && rig_call(&g, FUSE_RMDIR, g.root, NULL, 0, "d", NULL) == 0);
	check(rig_getattr(&g, dir) == 0 && rig_attr(&g)->nlink == 0);
	check(!rig_mkdir(&g, dir, "x") && g.err == -ENOENT);
	check(rig_release(&g, dir, dfh) == 0);
}

static int rename_plain(uint64_t dir, const char *a, uint64_t to, const char *b)
{
	struct fuse_rename_in in = { .newdir = to };

	return rig_call(&g, FUSE_RENAME, dir, &in, sizeof(in), a, b);
}

static void renames(void)
{
	uint64_t a, b, d, fa, fb;

	d = rig_mkdir(&g, g.root, "rd");
	fa = rig_create(&g, g.root, "ra", O_RDWR, 0644, &a);
	fb = rig_create(&g, d, "rb", O_RDWR, 0644, &b);
	check(rig_write(&g, b, fb, 0, "B", 1, O_RDWR, 0) == 1);
	check(rig_rename(&g, g.root, "ra", d, "rb", RENAME_NOREPLACE) == -EEXIST);
	check(rig_rename(&g, g.root, "ra", d, "rb", RENAME_WHITEOUT) == -EINVAL);
	check(rig_rename(&g, g.root, "ra", d, "rb", RENAME_EXCHANGE) == 0);
	check(rig_lookup(&g, d, "rb") == a && rig_lookup(&g, g.root, "ra") == b);
	check(rename_plain(g.root, "ra", d, "rb") == 0); /* b over a, which is open */
	check(rig_lookup(&g, d, "rb") == b && !host_has("ra"));
	check(rig_getattr(&g, a) == 0 && rig_attr(&g)->nlink == 0);
	check(rename_plain(g.root, "rd", d, "x") == -EINVAL);
	check(rename_plain(g.root, "nothing", d, "x") == -ENOENT);
	check(rename_plain(g.root, "rd", g.root, "re") == 0);
	check(rig_getattr(&g, b) == 0 && rig_lookup(&g, d, "rb") == b);
	check(rig_release(&g, a, fa) == 0 && rig_release(&g, b, fb) == 0);
	fb = rig_open(&g, b, O_RDONLY); /* by the new names */
	check(fb && rig_read(&g, b, fb, 0, 9) == 1 && rig_release(&g, b, fb) == 0);
	check(rig_rename(&g, g.root, "re", 999, "x", 0) == -ESTALE);
}

static void links(void)
{
	struct fuse_link_in in;
	uint64_t n, fh, sym;
	struct stat s;

	fh = rig_create(&g, g.root, "l1", O_RDWR, 0644, &n);
	check(rig_release(&g, n, fh) == 0);
	in.oldnodeid = n;
	check(rig_call(&g, FUSE_LINK, g.root, &in, sizeof(in), "l2", NULL) == 0);
	check(rig_entry(&g)->nodeid == n && rig_entry(&g)->attr.nlink == 2);
	check(rig_call(&g, FUSE_LINK, g.root, &in, sizeof(in), "l2", NULL) == -EEXIST);
	check(rig_unlink(&g, g.root, "l2") == 0 && rig_lookup(&g, g.root, "l1") == n);
	check(rig_getattr(&g, n) == 0);
	in.oldnodeid = g.root;
	check(rig_call(&g, FUSE_LINK, g.root, &in, sizeof(in), "l3", NULL) == -EPERM);
	in.oldnodeid = 77;
	check(rig_call(&g, FUSE_LINK, g.root, &in, sizeof(in), "l3", NULL) == -ESTALE);
	/* symbolic links are the guest's to follow */
	check(rig_call(&g, FUSE_SYMLINK, g.root, NULL, 0, "sl", "/etc/passwd") == 0);
	sym = rig_entry(&g)->nodeid;
	check(S_ISLNK(rig_entry(&g)->attr.mode));
	check(rig_call(&g, FUSE_READLINK, sym, NULL, 0, NULL, NULL) == 0);
	check(g.len == 11 && !memcmp(g.body, "/etc/passwd", 11));
	check(rig_call(&g, FUSE_READLINK, n, NULL, 0, NULL, NULL) == -EINVAL);
	check(!rig_open(&g, sym, O_RDONLY) && g.err == -EACCES);
	check(!rig_lookup(&g, sym, "x") && g.err == -ENOTDIR);
	in.oldnodeid = sym;
	check(rig_call(&g, FUSE_LINK, g.root, &in, sizeof(in), "sl2", NULL) == 0);
	host_stat("sl2", &s);
	check(S_ISLNK(s.st_mode) && s.st_nlink == 2);
	check(rig_call(&g, FUSE_SYMLINK, g.root, NULL, 0, "sl", "x") == -EEXIST);
}

static int mknod_mode(const char *name, uint32_t mode)
{
	struct fuse_mknod_in in = { .mode = mode, .rdev = 0x105, .umask = 077 };

	return rig_call(&g, FUSE_MKNOD, g.root, &in, sizeof(in), name, NULL);
}

static void nodes(void)
{
	struct stat s;
	uint64_t n;

	check(mknod_mode("fifo", S_IFIFO | 0666) == 0);
	host_stat("fifo", &s);
	check(S_ISFIFO(s.st_mode) && (s.st_mode & 0777) == 0600);
	n = rig_entry(&g)->nodeid;
	check(!rig_open(&g, n, O_RDONLY) && g.err == -EACCES);
	check(mknod_mode("sock", S_IFSOCK | 0777) == 0 && S_ISSOCK(rig_entry(&g)->attr.mode));
	check(mknod_mode("reg", S_IFREG | 04777) == 0 &&
	      (rig_entry(&g)->attr.mode & 07777) == 0700);
	check(mknod_mode("chr", S_IFCHR | 0666) == -EPERM);
	check(mknod_mode("blk", S_IFBLK | 0666) == -EPERM);
	check(mknod_mode("reg", S_IFREG) == -EEXIST);
}

static int setattr(uint64_t n, struct fuse_setattr_in *in)
{
	return rig_call(&g, FUSE_SETATTR, n, in, sizeof(*in), NULL, NULL);
}

static void attributes(void)
{
	struct fuse_setattr_in in = { .valid = FATTR_MODE, .mode = S_IFREG | 06711 };
	uint64_t n, fh, d;
	struct stat s;

	fh = rig_create(&g, g.root, "at", O_RDWR, 0644, &n);
	check(setattr(n, &in) == 0 && (rig_attr(&g)->mode & 07777) == 0711);
	in = (struct fuse_setattr_in) { .valid = FATTR_SIZE, .size = (uint64_t)1 << 40 };
	check(setattr(n, &in) == 0 && rig_attr(&g)->size == (uint64_t)1 << 40);
	in.size = UINT64_MAX;
	check(setattr(n, &in) == -EINVAL);
	in = (struct fuse_setattr_in) { .valid = FATTR_SIZE | FATTR_FH, .size = 10, .fh = fh };
	check(setattr(n, &in) == 0 && rig_attr(&g)->size == 10);
	in = (struct fuse_setattr_in) { .valid = FATTR_ATIME | FATTR_MTIME,
					.atime = 1,
					.atimensec = 23,
					.mtime = 4000000000,
					.mtimensec = 999999999 };
	check(setattr(n, &in) == 0);
	host_stat("at", &s);
	check(s.st_atim.tv_sec == 1 && s.st_atim.tv_nsec == 23);
	check(s.st_mtim.tv_sec == 4000000000 && s.st_mtim.tv_nsec == 999999999);
	check(rig_attr(&g)->mtimensec == 999999999);
	in.mtimensec = UTIME_OMIT;
	check(setattr(n, &in) == -EINVAL);
	in = (struct fuse_setattr_in) { .valid = FATTR_MTIME | FATTR_MTIME_NOW };
	check(setattr(n, &in) == 0 && rig_attr(&g)->mtime < 4000000000 && rig_attr(&g)->atime == 1);
	in = (struct fuse_setattr_in) { .valid = FATTR_UID | FATTR_GID, .uid = 1000, .gid = 1000 };
	check(setattr(n, &in) == 0);
	in.uid = 1234;
	check(setattr(n, &in) == -EPERM);
	check(rig_release(&g, n, fh) == 0);
	d = rig_mkdir(&g, g.root, "ad");
	in = (struct fuse_setattr_in) { .valid = FATTR_MODE, .mode = S_IFDIR | 06755 };
	check(setattr(d, &in) == 0 && (rig_attr(&g)->mode & 07777) == 02755);
	in = (struct fuse_setattr_in) { .valid = FATTR_SIZE };
	check(setattr(d, &in) == -EISDIR);
	n = rig_lookup(&g, g.root, "sl");
	in = (struct fuse_setattr_in) { .valid = FATTR_MODE, .mode = 0777 };
	check(setattr(n, &in) == -EOPNOTSUPP);
	in = (struct fuse_setattr_in) { .valid = FATTR_MTIME, .mtime = 5 };
	check(setattr(n, &in) == 0 && rig_attr(&g)->mtime == 5 && S_ISLNK(rig_attr(&g)->mode));
	/* the host's own setuid bit goes when the guest writes */
	check(fchmodat(g.dir, "at", 06755, 0) == 0);
	n = rig_lookup(&g, g.root, "at");
	check(rig_entry(&g)->attr.mode & S_ISUID && (fh = rig_open(&g, n, O_RDWR)));
	check(rig_write(&g, n, fh, 0, "x", 1, O_RDWR, FUSE_WRITE_KILL_SUIDGID) == 1);
	check(rig_getattr(&g, n) == 0 && !(rig_attr(&g)->mode & (S_ISUID | S_ISGID)));
	check(rig_release(&g, n, fh) == 0);
}

static void appends(void)
{
	uint64_t n, a, b;

	a = rig_create(&g, g.root, "log", O_WRONLY | O_APPEND, 0644, &n);
	b = rig_open(&g, n, O_RDWR | O_APPEND);
	check(a && b && rig_write(&g, n, a, 0, "one", 3, O_WRONLY | O_APPEND, 0) == 3);
	check(rig_write(&g, n, b, 0, "two", 3, O_RDWR | O_APPEND, 0) ==
	      3); /* an offset that is old */
	check(rig_write(&g, n, a, 3, "six", 3, O_WRONLY | O_APPEND, 0) == 3);
	/* a page of a mapping is not appended */
	check(rig_write(&g, n, a, 0, "O", 1, O_WRONLY | O_APPEND, FUSE_WRITE_CACHE) == 1);
	/* nor is what is written after the guest cleared the flag */
	check(rig_write(&g, n, b, 1, "N", 1, O_RDWR | O_SYNC, 0) == 1);
	check(rig_read(&g, n, b, 0, 100) == 9 && !memcmp(g.body, "ONetwosix", 9));
	check(rig_release(&g, n, a) == 0 && rig_release(&g, n, b) == 0);
}

static int seek(uint64_t n, uint64_t fh, uint64_t off, uint32_t whence)
{
	struct fuse_lseek_in in = { .fh = fh, .offset = off, .whence = whence };

	return rig_call(&g, FUSE_LSEEK, n, &in, sizeof(in), NULL, NULL);
}

static uint64_t seek_answer(void)
{
	return ((const struct fuse_lseek_out *)(const void *)g.body)->offset;
}

static void space(void)
{
	struct fuse_fallocate_in fa = { .offset = 0, .length = 1 << 20 };
	struct fuse_copy_file_range_in cp;
	uint64_t n, fh, m, fm;
	struct stat s;

	fh = rig_create(&g, g.root, "sp", O_RDWR, 0644, &n);
	fm = rig_create(&g, g.root, "sq", O_RDWR, 0644, &m);
	fa.fh = fh;
	check(rig_call(&g, FUSE_FALLOCATE, n, &fa, sizeof(fa), NULL, NULL) == 0);
	host_stat("sp", &s);
	check(s.st_size == 1 << 20 && s.st_blocks >= 2048);
	fa = (struct fuse_fallocate_in) { .fh = fh, .offset = 65536, .length = 65536, .mode = 3 };
	check(rig_call(&g, FUSE_FALLOCATE, n, &fa, sizeof(fa), NULL, NULL) == 0); /* a hole */
	fa.length = 0;
	check(rig_call(&g, FUSE_FALLOCATE, n, &fa, sizeof(fa), NULL, NULL) == -EINVAL);
	fa.length = UINT64_MAX;
	check(rig_call(&g, FUSE_FALLOCATE, n, &fa, sizeof(fa), NULL, NULL) == -EFBIG);
	check(rig_write(&g, m, fm, 1 << 20, "end", 3, O_RDWR, 0) == 3);
	check(seek(m, fm, 0, SEEK_DATA) == 0 && seek_answer() == 1 << 20);
	check(seek(m, fm, 0, SEEK_HOLE) == 0 && seek_answer() == 0);
	check(seek(m, fm, 1 << 22, SEEK_DATA) == -ENXIO && seek(m, fm, 0, SEEK_SET) == -EINVAL);
	cp = (struct fuse_copy_file_range_in) { .fh_in = fm,
						.off_in = 1 << 20,
						.nodeid_out = n,
						.fh_out = fh,
						.off_out = 5,
						.len = 100 };
	check(rig_both(&g, FUSE_COPY_FILE_RANGE, m, &cp, sizeof(cp)) == 0);
	check(((const struct fuse_write_out *)(const void *)g.body)->size == 3);
	check(rig_read(&g, n, fh, 5, 3) == 3 && !memcmp(g.body, "end", 3));
	cp.off_in = 0;
	cp.len = UINT64_MAX; /* in a thread */
	check(rig_both(&g, FUSE_COPY_FILE_RANGE, m, &cp, sizeof(cp)) == 0);
	check(((const struct fuse_write_out *)(const void *)g.body)->size == (1 << 20) + 3);
	cp.flags = 1;
	check(rig_both(&g, FUSE_COPY_FILE_RANGE, m, &cp, sizeof(cp)) == -EINVAL);
	cp.nodeid_out = 12345;
	check(rig_both(&g, FUSE_COPY_FILE_RANGE, m, &cp, sizeof(cp)) == -EBADF);
	check(rig_release(&g, n, fh) == 0 && rig_release(&g, m, fm) == 0);
}

static void syncs(void)
{
	struct fuse_fsync_in in = { 0 };
	struct fuse_syncfs_in all = { 0 };
	struct fuse_flush_in flush = { 0 };
	uint64_t n, fh, d;

	fh = rig_create(&g, g.root, "sy", O_RDWR, 0644, &n);
	in.fh = flush.fh = fh;
	check(rig_both(&g, FUSE_FSYNC, n, &in, sizeof(in)) == 0);
	in.fsync_flags = FUSE_FSYNC_FDATASYNC;
	check(rig_both(&g, FUSE_FSYNC, n, &in, sizeof(in)) == 0);
	in.fh = 99;
	check(rig_both(&g, FUSE_FSYNC, n, &in, sizeof(in)) == -EBADF);
	check(rig_both(&g, FUSE_SYNCFS, FUSE_ROOT_ID, &all, sizeof(all)) == 0);
	check(rig_call(&g, FUSE_FLUSH, n, &flush, sizeof(flush), NULL, NULL) == 0);
	check(rig_release(&g, n, fh) == 0);
	d = rig_opendir(&g, g.root);
	in = (struct fuse_fsync_in) { .fh = d };
	check(rig_both(&g, FUSE_FSYNCDIR, g.root, &in, sizeof(in)) == 0);
	check(rig_release(&g, g.root, d) == 0);
	check(rig_call(&g, FUSE_STATFS, n, NULL, 0, NULL, NULL) == 0);
	check(((const struct fuse_statfs_out *)(const void *)g.body)->st.namelen == 255);
}

static int getx(uint64_t n, const char *name, uint32_t size)
{
	struct fuse_getxattr_in in = { .size = size };

	return rig_call(&g, FUSE_GETXATTR, n, &in, sizeof(in), name, NULL);
}

static int setx(uint64_t n, const char *name, const void *p, uint32_t len, uint32_t flags)
{
	uint32_t in[2] = { len, flags };

	return rig_call_full(&g, FUSE_SETXATTR, n, in, sizeof(in), name, NULL, p, len, 64);
}

/* The ids of an ACL: the agent's is the user's. */
static void acls(uint64_t n)
{
	static const uint32_t acl[] = { 2,          0x00060001, UINT32_MAX, 0x00040002,
					1000,       0x00040004, UINT32_MAX, 0x00060010,
					UINT32_MAX, 0x00040020, UINT32_MAX };
	uint32_t host[ARRAY_SIZE(acl)];

	if (setx(n, "system.posix_acl_access", acl, sizeof(acl), 0) == -EOPNOTSUPP)
		return;
	check(g.err == 0 && getx(n, "system.posix_acl_access", 256) == 0);
	check(g.len == sizeof(acl) && !memcmp(g.body, acl, sizeof(acl)));
	check(fchdir(g.dir) == 0);
	check(getxattr("xa", "system.posix_acl_access", host, sizeof(host)) == sizeof(host));
	check(fchdir(g.proc_fd) == 0 && host[4] == getuid());
	check(setx(n, "system.posix_acl_access", acl, 7, 0) == -EINVAL);
}

static void xattrs(void)
{
	struct fuse_getxattr_in in = { .size = 4096 };
	uint64_t n, fh;

	fh = rig_create(&g, g.root, "xa", O_RDWR, 0644, &n);
	check(rig_release(&g, n, fh) == 0);
	check(setx(n, "security.selinux", "x", 1, 0) == -EOPNOTSUPP);
	check(setx(n, "trusted.x", "x", 1, 0) == -EOPNOTSUPP &&
	      setx(n, "user.", "x", 1, 0) == -EOPNOTSUPP);
	check(getx(n, "security.capability", 64) == -EOPNOTSUPP);
	acls(n);
	if (setx(n, "user.a", "value", 5, 0) == -EOPNOTSUPP)
		return; /* an old tmpfs */
	check(g.err == 0 && getx(n, "user.a", 64) == 0 && g.len == 5 &&
	      !memcmp(g.body, "value", 5));
	check(getx(n, "user.a", 0) == 0 && *(const uint32_t *)(const void *)g.body == 5);
	check(getx(n, "user.a", 4) == -ERANGE && getx(n, "user.b", 4) == -ENODATA);
	check(setx(n, "user.a", "v", 1, XATTR_CREATE) == -EEXIST);
	check(rig_call(&g, FUSE_LISTXATTR, n, &in, sizeof(in), NULL, NULL) == 0);
	check(memmem(g.body, g.len, "user.a", 7));
	check(rig_call(&g, FUSE_REMOVEXATTR, n, NULL, 0, "user.a", NULL) == 0);
	check(rig_call(&g, FUSE_REMOVEXATTR, n, NULL, 0, "user.a", NULL) == -ENODATA);
	check(rig_call(&g, FUSE_REMOVEXATTR, n, NULL, 0, "security.x", NULL) == -EOPNOTSUPP);
	check(getx(FUSE_ROOT_ID, "user.a", 4) == -ENODATA);
	check(rig_call(&g, FUSE_LISTXATTR, FUSE_ROOT_ID, &in, sizeof(in), NULL, NULL) == 0 &&
	      !g.len);
}

static void unknown(void)
{
	uint32_t op;
	struct fuse_access_in in = { 0 };

	check(rig_call(&g, FUSE_ACCESS, g.root, &in, sizeof(in), NULL, NULL) == -ENOSYS);
	for (op = 37; op < 300; op += 1)
		if (op == FUSE_BMAP || op == FUSE_IOCTL || op == FUSE_POLL ||
		    op == FUSE_NOTIFY_REPLY || op == FUSE_SETUPMAPPING ||
		    op == FUSE_REMOVEMAPPING || op > FUSE_TMPFILE)
			check(rig_call(&g, op, g.root, NULL, 0, NULL, NULL) == -ENOSYS);
	check(rig_call(&g, 0, g.root, NULL, 0, NULL, NULL) == -ENOSYS);
	check(rig_call(&g, UINT32_MAX, g.root, NULL, 0, NULL, NULL) == -ENOSYS);
	check(rig_call(&g, FUSE_OPEN, g.root, NULL, 0, NULL, NULL) == -EINVAL); /* no body */
}

static void the_cache(void)
{
	const struct fuse_open_out *o = (const void *)g.body;
	struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } },
			wait = { .tv_nsec = 30000000 };
	uint64_t n, fh;

	rig_host_file(&g, "kc", "1234");
	n = rig_lookup(&g, g.root, "kc");
	check((fh = rig_open(&g, n, O_RDONLY)) && !(o->open_flags & FOPEN_KEEP_CACHE));
	check(rig_release(&g, n, fh) == 0);
	check((fh = rig_open(&g, n, O_RDONLY)) &&
	      !(o->open_flags & FOPEN_KEEP_CACHE)); /* too young */
	check(rig_release(&g, n, fh) == 0);
	check(nanosleep(&wait, NULL) == 0); /* the clock's tick is what is waited for */
	check((fh = rig_open(&g, n, O_RDONLY)) && !(o->open_flags & FOPEN_KEEP_CACHE));
	check(rig_release(&g, n, fh) == 0);
	check((fh = rig_open(&g, n, O_RDONLY)) && o->open_flags & FOPEN_KEEP_CACHE);
	check(rig_release(&g, n, fh) == 0);
	/* size or mtime are not as the guest was told: it is to look again, once */
	check(utimensat(g.dir, "kc", old, 0) == 0);
	check(!rig_open(&g, n, O_RDONLY) && g.err == -ESTALE);
	check((fh = rig_open(&g, n, O_RDONLY)) && !(o->open_flags & FOPEN_KEEP_CACHE));
	check(rig_release(&g, n, fh) == 0);
	rig_host_file(&g, "kc", "12345");
	check(!rig_open(&g, n, O_RDONLY) && g.err == -ESTALE);
	check(rig_lookup(&g, g.root, "kc") == n);
	check((fh = rig_open(&g, n, O_RDONLY)) && rig_release(&g, n, fh) == 0);
	check(utimensat(g.dir, "kc", old, 0) == 0 && rig_lookup(&g, g.root, "kc") == n);
	check(nanosleep(&wait, NULL) == 0);
	check((fh = rig_open(&g, n, O_RDONLY)) && rig_release(&g, n, fh) == 0);
	/* same size, same mtime: ctime tells */
	check(utimensat(g.dir, "kc", old, 0) == 0);
	check((fh = rig_open(&g, n, O_RDONLY)) && !(o->open_flags & FOPEN_KEEP_CACHE));
	check(rig_release(&g, n, fh) == 0);
}

static void host_replaces(const char *name, const char *text)
{
	rig_host_file(&g, "new", text);
	check(renameat(g.dir, "new", g.dir, name) == 0);
}

/* The guest's kernel asks for attributes first, to judge permissions; two programs at once. */
static void replaced_for_two(void)
{
	uint64_t old, n, other, fh;

	g.pid = 6;
	rig_host_file(&g, "idx2", "1");
	old = rig_lookup(&g, g.root, "idx2");
	check(rig_entry(&g)->entry_valid == 1);
	host_replaces("idx2", "22");
	g.pid = 7;
	check(rig_getattr(&g, old) == -ESTALE);
	n = rig_lookup(&g, g.root, "idx2");
	check(rig_entry(&g)->entry_valid == 0);
	host_replaces("idx2", "333");
	g.pid = 8;
	check(rig_getattr(&g, old) == -ESTALE);
	other = rig_lookup(&g, g.root, "idx2");
	check(unlinkat(g.dir, "idx2", 0) == 0 && other != n);
	check(!rig_open(&g, n, O_RDONLY) && g.err == -ESTALE); /* what 7 holds */
	g.pid = 7;
	check(rig_getattr(&g, n) == 0 && rig_attr(&g)->size == 2);
	check((fh = rig_open(&g, n, O_RDONLY)) && rig_read(&g, n, fh, 0, 9) == 2);
	check(rig_release(&g, n, fh) == 0);
	g.pid = 8;
	check(rig_getattr(&g, other) == 0 && rig_attr(&g)->size == 3);
	/* the next call begins with a lookup: what was held is not for it */
	check(!rig_lookup(&g, g.root, "idx2") && g.err == -ENOENT);
	check(!rig_open(&g, other, O_RDONLY) && g.err == -ESTALE);
	g.pid = 0;
}

/* A name that the host replaces all the time: who was told to look again gets what was there then. */
static void replaced(void)
{
	uint64_t n, fh;

	rig_host_file(&g, "idx", "1");
	n = rig_lookup(&g, g.root, "idx");
	rig_host_file(&g, "new", "22");
	check(renameat(g.dir, "new", g.dir, "idx") == 0);
	check(!rig_open(&g, n, O_RDONLY) && g.err == -ESTALE);
	n = rig_lookup(&g, g.root, "idx");
	rig_host_file(&g, "new", "333");
	check(renameat(g.dir, "new", g.dir, "idx") == 0);
	check((fh = rig_open(&g, n, O_RDWR)) && rig_read(&g, n, fh, 0, 9) == 2);
	check(rig_release(&g, n, fh) == 0);
	/* once */
	check(!rig_open(&g, n, O_RDONLY) && g.err == -ESTALE);
	check(rig_lookup(&g, g.root, "idx") != n);
	replaced_for_two();
}

static void all(const char *base)
{
	rig_new(&g, base, NULL, 0);
	handshake();
	the_root();
	names();
	file();
	unlinked();
	renames();
	links();
	nodes();
	attributes();
	appends();
	space();
	syncs();
	xattrs();
	unknown();
	the_cache();
	replaced();
	rig_done(&g);
}

int main(void)
{
	all("/dev/shm");
	all("/var/tmp");
	return 0;
}
