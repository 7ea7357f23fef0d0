/* Reading directories: all of them once, in pieces, with seeks, while they change; in flat memory. */
#include "workspace/fs-rig.h"
#include "workspace/ops.h"

#define FILES 3000U

static struct rig g;
static uint8_t seen[FILES];

static int read_dir(uint32_t op, uint64_t n, uint64_t fh, uint64_t off, uint32_t size)
{
	struct fuse_read_in in = { .fh = fh, .offset = off, .size = size };

	return rig_call(&g, op, n, &in, sizeof(in), NULL, NULL);
}

/* One entry at *at of the answer; false at its end. */
static bool next(bool plus, size_t *at, struct fuse_dirent *d, char *name, struct fuse_entry_out *e)
{
	size_t head = sizeof(*d) + (plus ? sizeof(*e) : 0);

	if (*at + head > g.len) {
		check(*at == g.len);
		return false;
	}
	if (plus)
		memcpy(e, g.body + *at, sizeof(*e));
	memcpy(d, g.body + *at + head - sizeof(*d), sizeof(*d));
	check(d->namelen && d->namelen <= 255 && *at + head + d->namelen <= g.len);
	memcpy(name, g.body + *at + head, d->namelen);
	name[d->namelen] = 0;
	check(strlen(name) == d->namelen);
	*at += FUSE_REC_ALIGN(head + d->namelen);
	check(*at <= g.len);
	return true;
}

static void note(const char *name)
{
	unsigned i;

	if (sscanf(name, "file-%u", &i) == 1 && i < FILES) {
		check(!seen[i]);
		seen[i] = 1;
	}
}

/* All from off on; the entries. The nodes of READDIRPLUS are forgotten. */
static unsigned list(uint32_t op, uint64_t n, uint64_t fh, uint64_t off, uint32_t size)
{
	bool plus = op == FUSE_READDIRPLUS;
	struct fuse_entry_out e;
	struct fuse_dirent d;
	unsigned count = 0;
	char name[256];
	size_t at;

	for (;;) {
		check(read_dir(op, n, fh, off, size) == 0 && g.len <= size);
		if (!g.len)
			return count;
		for (at = 0; next(plus, &at, &d, name, &e); off = d.off) {
			bool dots = streq(name, ".") || streq(name, "..");

			count++;
			note(name);
			if (!plus)
				continue;
			check(dots == !e.nodeid);
			if (!dots) {
				static struct rig keep;

				check(e.attr.ino == d.ino && S_ISREG(e.attr.mode));
				memcpy(keep.body, g.body, g.len);
				keep.len = g.len;
				rig_forget(&g, e.nodeid, 1);
				memcpy(g.body, keep.body, keep.len);
				g.len = keep.len;
			}
		}
	}
}

static void large(void)
{
	struct fs_counts c;
	char name[32];
	uint64_t d, fh;
	unsigned i;
	uint32_t size;

	check(mkdirat(g.dir, "large", 0755) == 0);
	for (i = 0; i < FILES; i++) {
		(void)snprintf(name, sizeof(name), "large/file-%u", i);
		rig_host_file(&g, name, "");
	}
	d = rig_lookup(&g, g.root, "large");
	fh = rig_opendir(&g, d);
	check(fh);
	for (size = 512; size <= 1 << 20; size *= 11) {
		memset(seen, 0, sizeof(seen));
		check(list(FUSE_READDIR, d, fh, 0, size) == FILES + 2);
		memset(seen, 0, sizeof(seen));
		check(list(FUSE_READDIRPLUS, d, fh, 0, size) == FILES + 2);
	}
	check(read_dir(FUSE_READDIR, d, fh, 0, 8) == -EINVAL);
	fs_count(g.f, &c);
	check(c.nodes == 3);
	check(rig_release(&g, d, fh) == 0);
}

/* What telldir() gave leads back there, in any order, in another handle too. */
static void seeks(void)
{
	static uint64_t off[FILES + 2];
	static char names[FILES + 2][32];
	struct fuse_dirent d;
	uint64_t dir = rig_lookup(&g, g.root, "large"), fh = rig_opendir(&g, dir), other;
	unsigned n = 0, i, k;
	char name[256];
	size_t at;

	check(read_dir(FUSE_READDIR, dir, fh, 0, 4096) == 0);
	while (g.len) {
		for (at = 0; next(false, &at, &d, name, NULL); n++) {
			check(n < FILES + 2 && strlen(name) < 32);
			memcpy(names[n], name, strlen(name) + 1);
			off[n] = d.off;
		}
		check(read_dir(FUSE_READDIR, dir, fh, off[n - 1], 4096) == 0);
	}
	check(n == FILES + 2);
	other = rig_opendir(&g, dir);
	for (i = 0, k = 7; i < 500; i++, k = (k * 97 + 13) % (n - 1)) {
		check(read_dir(FUSE_READDIR, dir, i & 1 ? fh : other, off[k], 256) == 0);
		at = 0;
		check(next(false, &at, &d, name, NULL) && streq(name, names[k + 1]));
	}
	check(rig_release(&g, dir, fh) == 0 && rig_release(&g, dir, other) == 0);
}

/* More open directories than there are buffers, read in turns. */
static void turns(void)
{
	uint64_t dir = rig_lookup(&g, g.root, "large"), fh[DIRBUF_N + 4], off[DIRBUF_N + 4] = { 0 };
	unsigned count[DIRBUF_N + 4] = { 0 }, i, open = 0;
	struct fuse_dirent d;
	char name[256];
	size_t at;

	for (i = 0; i < ARRAY_SIZE(fh); i++, open++)
		check((fh[i] = rig_opendir(&g, dir)));
	while (open)
		for (i = 0; i < ARRAY_SIZE(fh); i++) {
			if (!fh[i])
				continue;
			check(read_dir(FUSE_READDIR, dir, fh[i], off[i], 1024 + i * 64) == 0);
			for (at = 0; next(false, &at, &d, name, NULL); off[i] = d.off)
				count[i]++;
			if (g.len)
				continue;
			check(count[i] == FILES + 2 && rig_release(&g, dir, fh[i]) == 0);
			fh[i] = 0;
			open--;
		}
}

/* Removing while reading, the way rm -r does. */
static void removing(void)
{
	uint64_t dir = rig_lookup(&g, g.root, "large"), fh = rig_opendir(&g, dir), off = 0;
	struct fuse_dirent d;
	unsigned left = FILES;
	char name[256], all[64][256];
	size_t at, n, i;

	while (left) {
		check(read_dir(FUSE_READDIR, dir, fh, off, 1024) == 0);
		if (!g.len) {
			off = 0; /* some file systems move what is left: once more */
			continue;
		}
		for (at = 0, n = 0; next(false, &at, &d, name, NULL); off = d.off)
			if (name[0] != '.')
				memcpy(all[n++], name, sizeof(name));
		for (i = 0; i < n; i++, left--)
			check(rig_unlink(&g, dir, all[i]) == 0);
	}
	check(rig_call(&g, FUSE_RMDIR, g.root, NULL, 0, "large", NULL) == 0);
	check(read_dir(FUSE_READDIR, dir, fh, 0, 1024) == 0); /* what is gone is empty */
	check(rig_release(&g, dir, fh) == 0);
}

static void shares(void)
{
	struct fuse_entry_out e;
	struct fuse_dirent d;
	uint64_t fh = rig_opendir(&g, FUSE_ROOT_ID), off = 0;
	unsigned n = 0, id, last = 0;
	char name[256], path[16];
	size_t at;

	for (id = 100; id > 50; id--) {
		(void)snprintf(path, sizeof(path), "/x%u", id);
		check(rig_share(&g, id, 0, ".", path) == 0);
	}
	for (;; off = d.off) {
		check(read_dir(FUSE_READDIRPLUS, FUSE_ROOT_ID, fh, off, 400) == 0);
		if (!g.len)
			break;
		for (at = 0; next(true, &at, &d, name, &e); n++) {
			check(!e.nodeid);
			if (sscanf(name, "%u", &id) == 1) {
				check(n == 2 || id > last);
				last = id;
			}
		}
	}
	check(n == 54 && last == 100);
	check(read_dir(FUSE_READDIR, FUSE_ROOT_ID, fh, UINT64_MAX, 400) == 0 && !g.len);
	check(rig_release(&g, FUSE_ROOT_ID, fh) == 0);
}

/* The root of another share, seen by READDIRPLUS of the one around it. */
static void nested(void)
{
	struct fuse_entry_out e;
	struct fuse_dirent d;
	uint64_t fh, in, found = 0;
	char name[256];
	size_t at = 0;

	check(mkdirat(g.dir, "in", 0755) == 0 &&
	      rig_share(&g, 7, FS_SHARE_RO, "in", "/share/in") == 0);
	in = rig_lookup(&g, FUSE_ROOT_ID, "7");
	fh = rig_opendir(&g, g.root);
	check(read_dir(FUSE_READDIRPLUS, g.root, fh, 0, 4096) == 0);
	while (next(true, &at, &d, name, &e))
		if (streq(name, "in"))
			found = e.nodeid;
	check(found && found == in);
	check(rig_release(&g, g.root, fh) == 0);
}

/* Of more entries than OP_DIR_TOLD the rest are names alone; and when it is read again, it begins anew. */
static void told(void)
{
	struct fuse_entry_out e;
	struct fuse_dirent d = { .off = 0 };
	unsigned i, turn, with, total;
	uint64_t dir, fh;
	char name[256];
	size_t at;

	check(mkdirat(g.dir, "huge", 0755) == 0);
	for (i = 0; i < OP_DIR_TOLD + 100; i++) {
		(void)snprintf(name, sizeof(name), "huge/%u", i);
		check(mknodat(g.dir, name, S_IFREG | 0600, 0) == 0);
	}
	dir = rig_lookup(&g, g.root, "huge");
	fh = rig_opendir(&g, dir);
	for (turn = 0; turn < 2; turn++) {
		with = total = 0;
		check(read_dir(FUSE_READDIRPLUS, dir, fh, 0, 65536) == 0);
		while (g.len) {
			for (at = 0; next(true, &at, &d, name, &e); total++) {
				check(!e.nodeid || e.attr.ino == d.ino);
				with += e.nodeid != 0;
			}
			check(read_dir(FUSE_READDIRPLUS, dir, fh, d.off, 65536) == 0);
		}
		check(with == OP_DIR_TOLD && total == OP_DIR_TOLD + 102);
	}
	check(rig_release(&g, dir, fh) == 0);
}

static void all(const char *base)
{
	rig_new(&g, base, NULL, 0);
	large();
	seeks();
	turns();
	removing();
	nested();
	shares();
	told();
	rig_done(&g);
}

int main(void)
{
	all("/dev/shm");
	all("/var/tmp");
	return 0;
}
