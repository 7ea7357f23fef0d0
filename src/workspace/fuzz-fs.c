/* A guest's whole conversation: requests one behind the other, on a small tree in memory, with numbers that
 * were given out before. Nothing outside the share changes, tables stay bounded, all ends.
 *
 * A request is: opcode (1), node: index of an earlier answer (1), length (2, little endian), that many bytes of body.
 * In bodies a number 0xf1xx (as 8 bytes) stands for handle xx, 0xf0xx for node xx. Opcode 200 and up: the host
 * does something, or a late answer is taken. */
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rdwr.h"
#include "io/fd.h"
#include "workspace/fs.h"
#include "workspace/fuse-msg.h"

#define IDS 64U

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static struct fs *fs;
static int proc_fd = -1, top = -1, home = -1; /* home: where the fuzzer runs */
static char path[64], outside[80];
static uint64_t nodes[IDS], handles[IDS];
static unsigned n_nodes, n_handles;
static unsigned late;

static struct request {
	struct fuse_in_header h;
	uint8_t body[4096];
} in;
static uint8_t out[8192];
static struct iovec vi, vo;

static int clean_one(const char *p, const struct stat *s, int type, struct FTW *w)
{
	(void)s;
	return w->level == 0 ? 0 : type == FTW_DP ? rmdir(p) : unlink(p);
}

static void clean_all(void)
{
	(void)nftw(path, clean_one, 16, FTW_DEPTH | FTW_PHYS);
	(void)rmdir(path);
	(void)rmdir(outside);
}

/* Once, before all: no file may be large, since memory is what they are in. */
static void prepare(void)
{
	struct rlimit small = { 1 << 20, 1 << 20 };

	check(setrlimit(RLIMIT_FSIZE, &small) == 0 && signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	(void)snprintf(path, sizeof(path), "/dev/shm/fuzz-bac-%d", (int)getpid());
	(void)snprintf(outside, sizeof(outside), "%s.out", path);
	check(mkdir(path, 0700) == 0 && mkdir(outside, 0700) == 0);
	proc_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	top = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	home = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	check(proc_fd >= 0 && top >= 0 && home >= 0 && atexit(clean_all) == 0);
}

static void begin(void)
{
	struct fs_config c = { .fd_budget = 4, .node_max = 1024, .handle_max = 32 };

	if (top < 0)
		prepare();
	c.proc_fd = proc_fd;
	c.uid = getuid();
	c.gid = getgid();
	check(fs_new(&c, &fs) == 0);
	check(fs_share_add(fs, 0, 0, dup(top), "/share") == 0);
	n_nodes = n_handles = late = 0;
	nodes[n_nodes++] = FUSE_ROOT_ID;
}

/* Numbers of earlier answers in place of their signs. */
static void put_ids(uint8_t *p, size_t n)
{
	uint64_t v;
	size_t at;

	for (at = 0; at + 8 <= n; at += 8) {
		memcpy(&v, p + at, 8);
		if (v >> 8 == 0xf0)
			v = nodes[v & (IDS - 1)];
		else if (v >> 8 == 0xf1)
			v = handles[v & (IDS - 1)];
		memcpy(p + at, &v, 8);
	}
}

static void take_ids(uint32_t op, const uint8_t *body, size_t len)
{
	bool both = op == FUSE_CREATE || op == FUSE_TMPFILE;

	if (len >= sizeof(struct fuse_entry_out) &&
	    (both || op == FUSE_LOOKUP || op == FUSE_MKDIR || op == FUSE_MKNOD || op == FUSE_LINK ||
	     op == FUSE_SYMLINK))
		memcpy(&nodes[n_nodes++ % IDS], body, 8);
	if (both && len >= sizeof(struct fuse_entry_out) + 8)
		memcpy(&handles[n_handles++ % IDS], body + sizeof(struct fuse_entry_out), 8);
	if ((op == FUSE_OPEN || op == FUSE_OPENDIR) && len >= 8)
		memcpy(&handles[n_handles++ % IDS], body, 8);
}

static void request(uint32_t op, uint64_t node, const uint8_t *body, size_t len)
{
	struct fs_req r = { .in = &vi, .n_in = 1, .out = &vo, .n_out = 1 };
	struct fuse_out_header h;
	ssize_t n;

	in.h = (struct fuse_in_header) { .len = (uint32_t)(sizeof(in.h) + len),
					 .opcode = op,
					 .nodeid = node };
	memcpy(in.body, body, len);
	put_ids(in.body, len);
	vi = (struct iovec) { &in, sizeof(in.h) + len };
	vo = (struct iovec) { out, sizeof(out) };
	n = fs_handle(fs, &r);
	if (n == FS_LATER) {
		late++;
		return;
	}
	if (n <= 0) {
		check(n == 0 || n == -EPROTO);
		return;
	}
	memcpy(&h, out, sizeof(h));
	check((size_t)n <= sizeof(out) && h.len == (size_t)n && h.error <= 0 && h.error > -4096);
	take_ids(op, out + sizeof(h), (size_t)n - sizeof(h));
}

static void init(void)
{
	struct fuse_init_in i = { .major = 7, .minor = 38, .flags = UINT32_MAX };

	request(FUSE_INIT, 0, (const uint8_t *)&i, sizeof(i));
	request(FUSE_LOOKUP, FUSE_ROOT_ID, (const uint8_t *)"0", 2);
}

static void take_late(void)
{
	struct pollfd p = { .fd = fs_completion_fd(fs), .events = POLLIN };
	void *token;
	size_t len;

	/* not those that wait for a lock: they end with the file system */
	while (late && poll(&p, 1, 0) == 1 && fs_completed(fs, &token, &len)) {
		check(len >= sizeof(struct fuse_out_header) && len <= sizeof(out));
		late--;
	}
}

/* What the host does meanwhile. */
static void host(uint8_t what)
{
	switch (what % 6) {
	case 0:
		(void)renameat2(top, "a", top, "b", RENAME_EXCHANGE);
		break;
	case 1:
		(void)unlinkat(top, "a", 0);
		break;
	case 2:
		(void)symlinkat(outside, top, "c");
		break;
	case 3:
		(void)mkdirat(top, "a", 0700);
		break;
	case 4:
		(void)renameat2(top, "a", top, "c", RENAME_EXCHANGE);
		break;
	default:
		(void)fs_share_remove(fs, 0);
		check(fs_share_add(fs, 0, what & FS_SHARE_RO, dup(top), "/share") == 0);
	}
}

static void step(struct rd *r)
{
	uint8_t op = rd_u8(r), node = rd_u8(r), lo = rd_u8(r);
	size_t len = (size_t)rd_u8(r) << 8 | lo;
	const uint8_t *body;

	len = MIN(len, MIN(r->n, sizeof(in.body)));
	body = rd_take(r, len);
	if (r->bad)
		return;
	if (op >= 200)
		host(op);
	else
		request(op, nodes[node % IDS], body, len);
	take_late();
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct rd r = rd_init(p, n);
	struct fs_counts c;
	unsigned i;

	begin();
	init();
	for (i = 0; i < 256 && r.n && !r.bad; i++)
		step(&r);
	fs_count(fs, &c);
	check(c.dir_fds <= 4 && c.nodes <= 1024 && c.handles <= 32);
	fs = fs_free(fs);
	check(fchdir(home) == 0);
	check(rmdir(outside) == 0 && mkdir(outside, 0700) == 0); /* nothing is in it */
	check(nftw(path, clean_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
	return 0;
}
