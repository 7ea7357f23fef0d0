/* Locks: against the host, between owners, waiting, cancelled. */
#include <sys/file.h>
#include <sys/wait.h>

#include "workspace/fs-rig.h"

static struct rig g;

static int lock(uint32_t op, uint64_t n, uint64_t fh, uint64_t owner, uint32_t type, uint64_t start,
		uint64_t end, uint32_t flags)
{
	struct fuse_lk_in in = { .fh = fh,
				 .owner = owner,
				 .lk = { .start = start, .end = end, .type = type },
				 .lk_flags = flags };

	return rig_call(&g, op, n, &in, sizeof(in), NULL, NULL);
}

static int wait_lock(struct rig_late *l, uint64_t n, uint64_t fh, uint64_t owner, uint32_t type,
		     uint32_t flags)
{
	struct fuse_lk_in in = { .fh = fh,
				 .owner = owner,
				 .lk = { .end = INT64_MAX, .type = type },
				 .lk_flags = flags };

	return rig_start(&g, l, FUSE_SETLKW, n, &in, sizeof(in));
}

static int host_lock(int fd, short type)
{
	struct flock fl = { .l_type = type, .l_whence = SEEK_SET, .l_start = 10, .l_len = 10 };

	return fcntl(fd, F_OFD_SETLK, &fl) < 0 ? -errno : 0;
}

static void records(uint64_t n, uint64_t fh, int host)
{
	struct fuse_flush_in flush = { .fh = fh, .lock_owner = 1 };
	const struct fuse_lk_out *out = (const void *)g.body;

	check(lock(FUSE_SETLK, n, fh, 1, F_WRLCK, 0, 14, 0) == 0);
	check(host_lock(host, F_WRLCK) == -EAGAIN);
	check(lock(FUSE_SETLK, n, fh, 2, F_RDLCK, 14, 14, 0) == -EAGAIN);
	check(lock(FUSE_SETLK, n, fh, 2, F_RDLCK, 15, INT64_MAX, 0) == 0);
	check(lock(FUSE_GETLK, n, fh, 2, F_RDLCK, 0, 100, 0) == 0);
	check(out->lk.type == F_WRLCK && out->lk.start == 0 && out->lk.end == 14);
	check(lock(FUSE_GETLK, n, fh, 1, F_WRLCK, 0, INT64_MAX, 0) == 0);
	check(out->lk.type == F_RDLCK && out->lk.start == 15 && out->lk.end == INT64_MAX);
	check(lock(FUSE_GETLK, n, fh, 3, F_RDLCK, 20, 30, 0) == 0 && out->lk.type == F_UNLCK);
	check(lock(FUSE_SETLK, n, fh, 1, F_UNLCK, 0, 14, 0) == 0);
	check(lock(FUSE_SETLK, n, fh, 2, F_UNLCK, 0, INT64_MAX, 0) == 0);
	check(host_lock(host, F_WRLCK) == 0);
	check(lock(FUSE_SETLK, n, fh, 1, F_WRLCK, 0, 14, 0) == -EAGAIN);
	check(lock(FUSE_GETLK, n, fh, 9, F_WRLCK, 0, 100, 0) == 0 && out->lk.type == F_WRLCK);
	check(out->lk.start == 10 && out->lk.end == 19);
	check(host_lock(host, F_UNLCK) == 0);
	check(lock(FUSE_SETLK, n, fh, 1, F_WRLCK, 0, INT64_MAX, 0) == 0);
	check(rig_call(&g, FUSE_FLUSH, n, &flush, sizeof(flush), NULL, NULL) == 0);
	check(host_lock(host, F_WRLCK) == 0 && host_lock(host, F_UNLCK) == 0);
	/* nonsense */
	check(lock(FUSE_SETLK, n, fh, 1, 77, 0, 1, 0) == -EINVAL);
	check(lock(FUSE_SETLK, n, fh, 1, F_WRLCK, 5, 4, 0) == -EINVAL);
	check(lock(FUSE_SETLK, n, fh, 1, F_WRLCK, UINT64_MAX, UINT64_MAX, 0) == -EINVAL);
	check(lock(FUSE_SETLK, n, fh + 7, 1, F_WRLCK, 0, 1, 0) == -EBADF);
	check(lock(FUSE_SETLK, n, fh, 1, 77, 0, 1, FUSE_LK_FLOCK) == -EINVAL);
}

/* Beside a file that is locked others come and go: the guest keeps no entry there. */
static void beside(void)
{
	uint64_t d = rig_mkdir(&g, g.root, "beside"), n, m, fh;

	fh = rig_create(&g, d, "db", O_RDWR, 0644, &n);
	check(fh && rig_lookup(&g, d, "db") == n && rig_entry(&g)->entry_valid == 1);
	check(lock(FUSE_SETLK, n, fh, 1, F_RDLCK, 0, 1, 0) == 0);
	check(rig_create(&g, d, "journal", O_RDWR, 0644, &m));
	check(rig_lookup(&g, d, "journal") == m && rig_entry(&g)->entry_valid == 0);
	check(rig_release(&g, n, fh) == 0);
}

static void whole(uint64_t n, uint64_t fh, uint64_t fh2, int host)
{
	check(lock(FUSE_SETLK, n, fh, 1, F_WRLCK, 0, INT64_MAX, FUSE_LK_FLOCK) == 0);
	check(flock(host, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK);
	check(lock(FUSE_SETLK, n, fh2, 1, F_RDLCK, 0, INT64_MAX, FUSE_LK_FLOCK) == -EAGAIN);
	check(lock(FUSE_SETLK, n, fh, 1, F_RDLCK, 0, INT64_MAX, FUSE_LK_FLOCK) == 0);
	check(lock(FUSE_SETLK, n, fh2, 1, F_RDLCK, 0, INT64_MAX, FUSE_LK_FLOCK) == 0);
	check(lock(FUSE_SETLK, n, fh, 1, F_UNLCK, 0, INT64_MAX, FUSE_LK_FLOCK) == 0);
	check(lock(FUSE_SETLK, n, fh2, 1, F_UNLCK, 0, INT64_MAX, FUSE_LK_FLOCK) == 0);
	check(flock(host, LOCK_EX | LOCK_NB) == 0 && flock(host, LOCK_UN) == 0);
}

static void waits(uint64_t n, uint64_t fh, uint64_t fh2, uint32_t flags)
{
	struct fuse_interrupt_in stop;
	struct rig_late a, b, *who;

	check(lock(FUSE_SETLK, n, fh, 1, F_WRLCK, 0, INT64_MAX, flags) == 0);
	check(wait_lock(&a, n, fh2, 2, F_WRLCK, flags) == FS_LATER);
	/* others are served meanwhile */
	check(rig_getattr(&g, n) == 0);
	check(lock(FUSE_SETLK, n, fh, 1, F_UNLCK, 0, INT64_MAX, flags) == 0);
	check(rig_wait(&g, &who) == 0 && who == &a);
	/* one that is interrupted */
	check(wait_lock(&b, n, fh, 1, F_WRLCK, flags) == FS_LATER);
	stop.unique = b.h.unique;
	check(rig_call(&g, FUSE_INTERRUPT, 0, &stop, sizeof(stop), NULL, NULL) == 0);
	check(rig_wait(&g, &who) == -EINTR && who == &b);
	check(lock(FUSE_SETLK, n, fh2, 2, F_UNLCK, 0, INT64_MAX, flags) == 0);
}

/* Interrupted at any moment: it ends each time, and never twice. */
static void interrupts(uint64_t n, uint64_t fh, uint64_t fh2)
{
	struct fuse_interrupt_in stop;
	struct rig_late w, *who;
	int i, r;

	check(lock(FUSE_SETLK, n, fh, 1, F_WRLCK, 0, INT64_MAX, 0) == 0);
	for (i = 0; i < 3000; i++) {
		check(wait_lock(&w, n, fh2, 2, F_WRLCK, 0) == FS_LATER);
		stop.unique = w.h.unique;
		for (r = i % 50 * 20; r > 0; r--)
			__asm__ volatile("");
		check(rig_call(&g, FUSE_INTERRUPT, 0, &stop, sizeof(stop), NULL, NULL) == 0);
		check(rig_wait(&g, &who) == -EINTR && who == &w);
	}
	check(lock(FUSE_SETLK, n, fh, 1, F_UNLCK, 0, INT64_MAX, 0) == 0);
}

/* As many waits as there are threads, and one more; then the file system ends with them waiting. */
static void many(uint64_t n, uint64_t fh, uint64_t fh2)
{
	static struct rig_late w[WORKER_WAITERS];
	struct rig_late one;
	struct fuse_release_in rel = { .fh = fh2 };
	unsigned i;

	check(lock(FUSE_SETLK, n, fh, 1, F_WRLCK, 0, INT64_MAX, 0) == 0);
	for (i = 0; i < WORKER_WAITERS; i++)
		check(wait_lock(&w[i], n, fh2, 100 + i, F_WRLCK, 0) == FS_LATER);
	check(wait_lock(&one, n, fh2, 99, F_WRLCK, 0) == -ENOLCK);
	/* closed by a guest that does not wait for its answers */
	check(rig_call(&g, FUSE_RELEASE, n, &rel, sizeof(rel), NULL, NULL) == 0);
	check(rig_call(&g, FUSE_RELEASE, n, &rel, sizeof(rel), NULL, NULL) == -EBADF);
}

static void hosts_process(uint64_t n, uint64_t fh)
{
	struct rig_late w, *who;
	int ready[2], go[2], status;
	char c = 0;
	pid_t pid;

	check(pipe(ready) == 0 && pipe(go) == 0);
	pid = fork();
	check(pid >= 0);
	if (pid == 0) {
		struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
		int fd = openat(g.dir, "f", O_RDWR);

		close(go[1]);
		if (fd < 0 || fcntl(fd, F_SETLK, &fl) < 0 || write(ready[1], &c, 1) != 1)
			_exit(1);
		_exit(read(go[0], &c, 1) != 0);
	}
	close(go[0]);
	check(read(ready[0], &c, 1) == 1);
	check(lock(FUSE_SETLK, n, fh, 1, F_WRLCK, 0, INT64_MAX, 0) == -EAGAIN);
	check(wait_lock(&w, n, fh, 1, F_WRLCK, 0) == FS_LATER);
	close(go[1]); /* it ends */
	check(rig_wait(&g, &who) == 0 && who == &w);
	check(waitpid(pid, &status, 0) == pid && status == 0);
	check(lock(FUSE_SETLK, n, fh, 1, F_UNLCK, 0, INT64_MAX, 0) == 0);
	close(ready[0]);
	close(ready[1]);
}

static void all(const char *base)
{
	uint64_t n, fh, fh2;
	int host;

	rig_new(&g, base, NULL, 0);
	fh = rig_create(&g, g.root, "f", O_RDWR, 0644, &n);
	fh2 = rig_open(&g, n, O_RDWR);
	host = openat(g.dir, "f", O_RDWR | O_CLOEXEC);
	check(fh && fh2 && host >= 0);
	records(n, fh, host);
	whole(n, fh, fh2, host);
	waits(n, fh, fh2, 0);
	waits(n, fh, fh2, FUSE_LK_FLOCK);
	interrupts(n, fh, fh2);
	hosts_process(n, fh);
	many(n, fh, fh2);
	close(host);
	beside();
	rig_done(&g);
}

int main(void)
{
	all("/dev/shm");
	all("/var/tmp");
	return 0;
}
