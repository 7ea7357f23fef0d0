/* Secrets in what the guest writes: told once for each open file, or refused each time. */
#include "base/leak.h"
#include "workspace/fs-rig.h"

static const uint64_t key = 0x9e3779b97f4a7c15;
static const char secret[] = "sk-ant-api03-the-value-of-it";
static struct rig g;
static unsigned told;
static uint8_t kind;
static char path[200], name[80], op[20];

static void refused(void *arg, const struct fs_refusal *r)
{
	(void)arg;
	told++;
	kind = r->kind;
	check(r->share == 0);
	(void)snprintf(path, sizeof(path), "%s", r->path);
	(void)snprintf(name, sizeof(name), "%s", r->rule);
	(void)snprintf(op, sizeof(op), "%s", r->op);
}

static void marks(bool refuse)
{
	struct leak_mark *v = calloc(LEAK_FORMS_MAX, sizeof(*v));
	struct leak_set s;
	size_t n;

	check(v);
	n = leak_marks(key, "anthropic", (const uint8_t *)secret, strlen(secret), v,
		       LEAK_FORMS_MAX);
	check(leak_set_init(&s, key, v, n) == 0);
	fs_marks(g.f, &s, refuse);
	check(!s.v && !s.n);
}

static void no_marks(void)
{
	struct leak_set s = { 0 };

	fs_marks(g.f, &s, false);
}

static uint64_t file(const char *where, uint64_t *ret_node)
{
	uint64_t fh = rig_create(&g, g.root, where, O_RDWR, 0644, ret_node);

	check(fh && *ret_node);
	return fh;
}

static void flagged(void)
{
	uint64_t n, fh = file("a", &n), m, other;

	check(rig_write(&g, n, fh, 0, secret, 28, O_RDWR, 0) == 28 && !told);
	marks(false);
	check(rig_write(&g, n, fh, 0, "harmless", 8, O_RDWR, 0) == 8 && !told);
	/* across three writes that follow each other */
	check(rig_write(&g, n, fh, 8, secret, 10, O_RDWR, 0) == 10 && !told);
	check(rig_write(&g, n, fh, 18, secret + 10, 10, O_RDWR, 0) == 10 && !told);
	check(rig_write(&g, n, fh, 28, secret + 20, 8, O_RDWR, 0) == 8);
	check(told == 1 && kind == FS_LEAK && streq(path, "a") && streq(name, "anthropic") &&
	      streq(op, "WRITE"));
	check(rig_write(&g, n, fh, 36, secret, 28, O_RDWR, 0) == 28 && told == 1);
	check(rig_read(&g, n, fh, 36, 28) == 28 && memcmp(g.body, secret, 28) == 0);
	/* not if something else is between */
	other = file("b", &m);
	check(rig_write(&g, m, other, 0, secret, 20, O_RDWR, 0) == 20);
	check(rig_write(&g, m, other, 50, secret + 20, 8, O_RDWR, 0) == 8 && told == 1);
	check(rig_write(&g, m, other, 100,
			"x 736b2d616e742d61706930332d7468652d76616c75652d6f662d6974", 58, O_RDWR,
			0) == 58);
	check(told == 2 && streq(path, "b"));
	check(rig_release(&g, m, other) == 0 && rig_release(&g, n, fh) == 0);
}

static void refusing(void)
{
	uint64_t n, fh = file("c", &n), d, m;

	told = 0;
	marks(true);
	check(rig_write(&g, n, fh, 0, "before", 6, O_RDWR, 0) == 6 && !told);
	check(rig_write(&g, n, fh, 6, secret, 28, O_RDWR, 0) == -EACCES && told == 1);
	check(kind == FS_LEAK_REFUSED && streq(path, "c"));
	check(rig_read(&g, n, fh, 0, 100) == 6);
	check(rig_write(&g, n, fh, 6, secret, 28, O_RDWR | O_APPEND, 0) == -EACCES && told == 2);
	check(rig_write(&g, n, fh, 6, "after", 5, O_RDWR, 0) == 5);
	check(rig_release(&g, n, fh) == 0);
	d = rig_mkdir(&g, g.root, "d");
	fh = rig_create(&g, d, "e", O_WRONLY, 0644, &m);
	check(fh && rig_write(&g, m, fh, 0, secret, 28, O_WRONLY, 0) == -EACCES);
	check(told == 3 && streq(path, "d/e"));
	no_marks();
	check(rig_write(&g, m, fh, 0, secret, 28, O_WRONLY, 0) == 28 && told == 3);
	check(rig_release(&g, m, fh) == 0);
}

/* For people: what a byte costs. `speed` as an argument. */
static void speed(void)
{
	enum { N = FS_MAX_WRITE, ROUNDS = 2000 };
	static uint8_t p[N];
	struct timespec a, b;
	uint64_t n, fh = file("big", &n);
	unsigned i, k;

	for (i = 0; i < N; i++)
		p[i] = (uint8_t)(i * 2654435761U >> 13);
	for (k = 0; k < 2; k++) {
		if (k)
			marks(false);
		else
			no_marks();
		(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
		for (i = 0; i < ROUNDS; i++)
			check(rig_write(&g, n, fh, (uint64_t)(i % 64) * N, p, N, O_RDWR, 0) == N);
		(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
		printf("%s marks: %.0f MB/s\n", k ? "with" : "without",
		       (double)N * ROUNDS / 1e6 /
			       ((double)(b.tv_sec - a.tv_sec) +
				(double)(b.tv_nsec - a.tv_nsec) / 1e9));
	}
	check(rig_release(&g, n, fh) == 0);
}

int main(int argc, char **argv)
{
	const struct fs_config c = { .refused = refused };

	rig_new(&g, "/dev/shm", &c, 0);
	if (argc > 1 && streq(argv[1], "speed")) {
		speed();
	} else {
		flagged();
		refusing();
	}
	rig_done(&g);
	return 0;
}
