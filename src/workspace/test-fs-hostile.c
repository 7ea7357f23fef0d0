/* A guest that means harm, and a host that changes while it is looked at: nothing outside the share is
 * reached, tables stay within their bounds, memory stays flat. */
#include <pthread.h>
#include <sys/resource.h>

#include "workspace/fs-rig.h"

#define SECRET "outside the share"

/* A sanitizer keeps what was freed. */
#if defined(__SANITIZE_ADDRESS__)
#define KEEPS_FREED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEPS_FREED true
#endif
#endif
#ifndef KEEPS_FREED
#define KEEPS_FREED false
#endif

static struct rig g;

static long host_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	long n = 0;

	check(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* A tree of thousands with few descriptors: all of it is found again, and no more are held. */
static void few_descriptors(void)
{
	struct fs_config c = { .fd_budget = 8 };
	static uint64_t dir[40][40];
	struct fs_counts n;
	char name[32];
	uint64_t top, file, fh;
	long before;
	int i, k;

	rig_new(&g, "/dev/shm", &c, 0);
	before = host_fds();
	for (i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "top%d", i);
		top = rig_mkdir(&g, g.root, name);
		for (k = 0; k < 40; k++) {
			(void)snprintf(name, sizeof(name), "sub%d", k);
			dir[i][k] = rig_mkdir(&g, top, name);
			fh = rig_create(&g, dir[i][k], "file", O_RDWR, 0644, &file);
			check(rig_write(&g, file, fh, 0, name, 4, O_RDWR, 0) == 4);
			check(rig_release(&g, file, fh) == 0);
			check(host_fds() <= before + 8);
		}
	}
	for (k = 39; k >= 0; k--)
		for (i = 0; i < 40; i++) {
			check(rig_getattr(&g, dir[i][k]) == 0);
			file = rig_lookup(&g, dir[i][k], "file");
			fh = rig_open(&g, file, O_RDONLY);
			check(fh && rig_read(&g, file, fh, 0, 9) == 4 && !memcmp(g.body, "sub", 3));
			check(rig_release(&g, file, fh) == 0);
		}
	fs_count(g.f, &n);
	check(n.dir_fds <= 8 && n.handles == 0 && n.nodes == 2 + 40 + 2 * 1600);
	rig_done(&g);
}

/* No descriptor to be had at all: those kept for directories make room. */
static void out_of_descriptors(void)
{
	struct rlimit old, few;
	uint64_t d, n, fh[64];
	unsigned i, k;
	char name[32];

	rig_new(&g, "/dev/shm", NULL, 0);
	for (i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "d%u", i);
		d = rig_mkdir(&g, g.root, name);
		check(rig_mkdir(&g, d, "x")); /* keeps a descriptor */
	}
	fh[0] = rig_create(&g, g.root, "f", O_RDWR, 0644, &n);
	check(getrlimit(RLIMIT_NOFILE, &old) == 0);
	few = old;
	few.rlim_cur = (rlim_t)host_fds() + 2;
	check(setrlimit(RLIMIT_NOFILE, &few) == 0);
	for (i = 1; i < 64; i++) {
		fh[i] = rig_open(&g, n, O_RDONLY);
		if (!fh[i])
			break;
	}
	check(i > 35 && i < 64 && g.err == -EMFILE);
	for (k = 0; k < i; k++)
		check(rig_release(&g, n, fh[k]) == 0);
	check(setrlimit(RLIMIT_NOFILE, &old) == 0);
	rig_done(&g);
}

static void full_tables(void)
{
	struct fs_config c = { .node_max = 1024, .handle_max = 16 };
	uint64_t n[1100], fh[20], f;
	struct fs_counts count;
	unsigned i, made;
	char name[32];

	rig_new(&g, "/dev/shm", &c, 0);
	for (made = 0; made < ARRAY_SIZE(n); made++) {
		(void)snprintf(name, sizeof(name), "d%u", made);
		check(mkdirat(g.dir, name, 0755) == 0);
		n[made] = rig_lookup(&g, g.root, name);
		if (!n[made])
			break;
	}
	check(g.err == -ENFILE && made > 1000 && made < 1024);
	for (i = 0; i < made; i++)
		rig_forget(&g, n[i], 1);
	fs_count(g.f, &count);
	check(count.nodes == 2 && rig_lookup(&g, g.root, "d0"));
	rig_host_file(&g, "f", "x");
	f = rig_lookup(&g, g.root, "f");
	for (i = 0; i < 16; i++)
		check((fh[i] = rig_open(&g, f, O_RDONLY)));
	check(!rig_open(&g, f, O_RDONLY) && g.err == -ENFILE);
	check(!rig_create(&g, g.root, "new", O_RDWR, 0644, &f) && g.err == -ENFILE);
	rig_done(&g);
}

static long rss(void)
{
	long pages = 0, total;
	FILE *f = fopen("/proc/self/statm", "r");

	check(f && fscanf(f, "%ld %ld", &total, &pages) == 2);
	(void)fclose(f);
	return pages * 4;
}

static void flat_memory(void)
{
	struct fs_counts c;
	long before = 0;
	uint64_t n;
	char name[64];
	unsigned i;

	rig_new(&g, "/dev/shm", NULL, 0);
	for (i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof(name), "a-name-that-is-too-long-to-lie-in-the-node-%u",
			       i);
		rig_host_file(&g, name, "");
	}
	for (i = 0; i < 300000; i++) {
		(void)snprintf(name, sizeof(name), "a-name-that-is-too-long-to-lie-in-the-node-%u",
			       i % 100);
		n = rig_lookup(&g, g.root, name);
		check(n);
		rig_forget(&g, n, 1);
		if (i == 1000)
			before = rss();
	}
	check(KEEPS_FREED || rss() < before + 4096);
	fs_count(g.f, &c);
	check(c.nodes == 2 && c.node_memory < 1 << 20);
	rig_done(&g);
}

static void wrong_counts(void)
{
	struct fuse_batch_forget_in b = { .count = UINT32_MAX };
	struct fuse_forget_one one[3];
	uint64_t n, m;

	rig_new(&g, "/dev/shm", NULL, 0);
	rig_host_file(&g, "f", "x");
	n = rig_lookup(&g, g.root, "f");
	rig_forget(&g, n, UINT64_MAX);
	check(rig_getattr(&g, n) == -ESTALE);
	rig_forget(&g, n, 1);
	m = rig_lookup(&g, g.root, "f");
	check(m && m != n && rig_getattr(&g, n) == -ESTALE); /* a new generation */
	rig_lookup(&g, g.root, "f");
	rig_forget(&g, m, 1);
	check(rig_getattr(&g, m) == 0);
	rig_forget(&g, m, 0);
	rig_forget(&g, FUSE_ROOT_ID, UINT64_MAX);
	rig_forget(&g, g.root, UINT64_MAX);
	rig_forget(&g, 0, 1);
	rig_forget(&g, UINT64_MAX, 1);
	check(rig_getattr(&g, FUSE_ROOT_ID) == 0 && rig_getattr(&g, g.root) == 0);
	one[0] = (struct fuse_forget_one) { m, 5 };
	one[1] = (struct fuse_forget_one) { 12345, 5 };
	one[2] = (struct fuse_forget_one) { m, 5 };
	check(rig_call_full(&g, FUSE_BATCH_FORGET, 0, &b, sizeof(b), NULL, NULL, one, sizeof(one),
			    0) == 0);
	check(rig_getattr(&g, m) == -ESTALE);
	rig_done(&g);
}

static void no_room(void)
{
	struct fuse_in_header h = { .opcode = FUSE_LOOKUP, .len = sizeof(h) };
	uint8_t in[64] = { 0 }, out[64];
	struct iovec vi = { in, sizeof(h) }, vo = { out, 15 };
	struct fs_req r = { .in = &vi, .n_in = 1, .out = &vo, .n_out = 1 };

	rig_new(&g, "/dev/shm", NULL, 0);
	memcpy(in, &h, sizeof(h));
	check(fs_handle(g.f, &r) == -EPROTO);
	vo.iov_len = 16;
	check(fs_handle(g.f, &r) == 16);
	vi.iov_len = 39;
	check(fs_handle(g.f, &r) == -EPROTO);
	vi.iov_len = 41;
	check(fs_handle(g.f, &r) == -EPROTO);
	r.n_in = 0;
	check(fs_handle(g.f, &r) == -EPROTO);
	/* an entry that does not fit is not counted */
	rig_host_file(&g, "f", "x");
	check(rig_call_full(&g, FUSE_LOOKUP, g.root, NULL, 0, "f", NULL, NULL, 0, 100) == -ERANGE);
	rig_done(&g);
}

/* A path far longer than a path may be, through relative steps. */
static void deep(void)
{
	struct fs_config c = { .fd_budget = 4 };
	static uint64_t n[100];
	char name[251];
	uint64_t f, fh;
	int i, fd, up;

	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	rig_new(&g, "/dev/shm", &c, 0);
	for (i = 0; i < 100; i++) /* 25,000 bytes */
		check((n[i] = rig_mkdir(&g, i ? n[i - 1] : g.root, name)));
	fh = rig_create(&g, n[99], "f", O_RDWR, 0644, &f);
	check(fh && rig_write(&g, f, fh, 0, "deep", 4, O_RDWR, 0) == 4 &&
	      rig_release(&g, f, fh) == 0);
	for (i = 0; i < 100; i++)
		check(rig_getattr(&g, n[i]) == 0);
	fh = rig_open(&g, f, O_RDONLY);
	check(fh && rig_read(&g, f, fh, 0, 9) == 4 && rig_release(&g, f, fh) == 0);
	for (i = 99; i >= 0; i--) {
		if (i == 99)
			check(rig_unlink(&g, n[99], "f") == 0);
		check(rig_call(&g, FUSE_RMDIR, i ? n[i - 1] : g.root, NULL, 0, name, NULL) == 0);
	}
	fd = openat(g.dir, ".", O_RDONLY | O_DIRECTORY);
	up = unlinkat(fd, name, AT_REMOVEDIR);
	check(up < 0 && errno == ENOENT);
	close(fd);
	rig_done(&g);
}

/* The host turns its tree over: what the guest knew is stale, and found again by looking. */
static void host_moves(const char *base)
{
	struct fs_config c = { .fd_budget = 4 };
	uint64_t a, b, f, x, fh;
	int i;

	rig_new(&g, base, &c, 0);
	a = rig_mkdir(&g, g.root, "a");
	b = rig_mkdir(&g, a, "b");
	fh = rig_create(&g, b, "f", O_RDWR, 0644, &f);
	check(rig_release(&g, f, fh) == 0);
	check(renameat(g.dir, "a/b/f", g.dir, "a/b/g") == 0);
	check(!rig_open(&g, f, O_RDONLY) && g.err == -ESTALE);
	check(rig_getattr(&g, f) == -ESTALE);
	check(rig_lookup(&g, b, "g") == f && (fh = rig_open(&g, f, O_RDONLY)));
	check(rig_release(&g, f, fh) == 0);
	/* another file of that name */
	rig_host_file(&g, "a/b/h", "new");
	check(renameat(g.dir, "a/b/h", g.dir, "a/b/g") == 0);
	check(!rig_open(&g, f, O_RDONLY) && g.err == -ESTALE);
	x = rig_lookup(&g, b, "g");
	check(x && x != f && (fh = rig_open(&g, x, O_RDONLY)) && rig_read(&g, x, fh, 0, 9) == 3);
	check(rig_release(&g, x, fh) == 0);
	/* removed and made again at once, with the same number very likely */
	check(unlinkat(g.dir, "a/b/g", 0) == 0);
	rig_host_file(&g, "a/b/g", "newer");
	f = rig_lookup(&g, b, "g");
	check(f && f != x && rig_entry(&g)->attr.size == 5);
	/* something that is not to be opened at all */
	check(unlinkat(g.dir, "a/b/g", 0) == 0 && mkfifoat(g.dir, "a/b/g", 0666) == 0);
	check(!rig_open(&g, f, O_RDWR) && g.err == -ESTALE);
	if (unlinkat(g.dir, "a/b/g", 0) == 0 && mknodat(g.dir, "a/b/g", S_IFCHR | 0666, 0x103) == 0)
		check(!rig_open(&g, f, O_RDWR) && g.err == -ESTALE);
	(void)unlinkat(g.dir, "a/b/g", 0);
	/* b is above a now */
	check(renameat(g.dir, "a/b", g.dir, "b") == 0 && renameat(g.dir, "a", g.dir, "b/a") == 0);
	check(rig_lookup(&g, b, "a") == a); /* b is still thought to lie below a */
	for (i = 0; i < 8; i++)
		check(rig_mkdir(&g, g.root, (char[]) { 'x', (char)('0' + i), 0 }) &&
		      rig_mkdir(&g, rig_entry(&g)->nodeid, "y")); /* out with all descriptors */
	check(rig_getattr(&g, a) == -ESTALE || g.err == 0);
	check(rig_lookup(&g, g.root, "b") == b && rig_lookup(&g, b, "a") == a);
	check(rig_getattr(&g, a) == 0 && rig_getattr(&g, b) == 0);
	rig_done(&g);
}

struct swap {
	pthread_t t;
	const char *name;
	int outside;
	bool stop;
};

/* The directory "d", the link "l" to the directory outside, changing places. */
static void *swapping(void *arg)
{
	struct swap *s = arg;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED))
		check(renameat2(g.dir, s->name, g.dir, "l", RENAME_EXCHANGE) == 0);
	return NULL;
}

static unsigned opened, made; /* while the directory was the directory */

static void try_all(int round, uint64_t outside_ino)
{
	uint64_t d = rig_lookup(&g, g.root, "d"), f, fh;
	struct fuse_setattr_in sa = { .valid = FATTR_MODE, .mode = 0600 };
	char name[32];

	if (!d || !S_ISDIR(rig_entry(&g)->attr.mode))
		return;
	f = rig_lookup(&g, d, "f");
	if (f) {
		check(rig_entry(&g)->attr.ino != outside_ino && rig_entry(&g)->attr.size == 6);
		fh = rig_open(&g, f, O_RDWR);
		if (fh) {
			opened++;
			check(rig_read(&g, f, fh, 0, 100) == 6 && !memcmp(g.body, "inside", 6));
			check(rig_release(&g, f, fh) == 0);
		}
		(void)rig_call(&g, FUSE_SETATTR, f, &sa, sizeof(sa), NULL, NULL);
	}
	(void)snprintf(name, sizeof(name), "new%d", round);
	fh = rig_create(&g, d, name, O_RDWR, 0644, &f);
	if (fh) {
		made++;
		check(rig_release(&g, f, fh) == 0);
	}
	(void)rig_unlink(&g, d, name);
	(void)rig_rename(&g, d, "f", d, "f2", 0);
	(void)rig_rename(&g, d, "f2", d, "f", 0);
}

static void races(void)
{
	struct fs_config c = { .fd_budget = 4 };
	struct swap s = { .name = "d" };
	char outside[80], path[128], buf[64] = { 0 };
	uint64_t x[8];
	struct stat st;
	int i, k, fd;

	rig_new(&g, "/dev/shm", &c, 0);
	(void)snprintf(outside, sizeof(outside), "%s.out", g.path);
	check(mkdir(outside, 0777) == 0);
	(void)snprintf(path, sizeof(path), "%s/f", outside);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	check(fd >= 0 && write(fd, SECRET, strlen(SECRET)) > 0 && fstat(fd, &st) == 0);
	check(mkdirat(g.dir, "d", 0777) == 0 && symlinkat(outside, g.dir, "l") == 0);
	rig_host_file(&g, "d/f", "inside");
	for (i = 0; i < 8; i++) {
		check((x[i] = rig_mkdir(&g, g.root, (char[]) { 'x', (char)('0' + i), 0 })));
		check(rig_mkdir(&g, x[i], "y"));
	}
	check(pthread_create(&s.t, NULL, swapping, &s) == 0);
	for (i = 0; i < 4000; i++) {
		try_all(i, st.st_ino);
		for (k = 0; k < 8; k++) /* descriptors are evicted all the time */
			(void)rig_lookup(&g, x[k], "y");
	}
	__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
	check(pthread_join(s.t, NULL) == 0);
	check(opened && made && opened < 4000);
	check(pread(fd, buf, sizeof(buf), 0) == (ssize_t)strlen(SECRET) && streq(buf, SECRET));
	check(fstat(fd, &st) == 0 && (st.st_mode & 0777) == 0644 && st.st_nlink == 1);
	close(fd);
	check(unlink(path) == 0 && rmdir(outside) == 0); /* and nothing else is in it */
	rig_done(&g);
}

int main(void)
{
	few_descriptors();
	out_of_descriptors();
	full_tables();
	wrong_counts();
	no_room();
	deep();
	host_moves("/dev/shm");
	host_moves("/var/tmp");
	races();
	flat_memory();
	return 0;
}
