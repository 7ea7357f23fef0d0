/* Layers over each other, as trees by hand: what hides what, what is refused, and the form of the image. */
#include "layer/merge.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "layer/erofs.h"
#include "layer/hash.h"
#include "wire/layer.h"

enum { SUPER = 1024, ROOT = 4096, DIRENT = 12 };

static struct err err;
static struct merge_result res;
static uint8_t record[LAYER_RECORD_MAX];

/* ---- trees ---- */

struct layer {
	int fd;
	uint64_t n, blob;
};

static int file(void)
{
	int fd = memfd_create("tree", MFD_CLOEXEC);

	check(fd >= 0);
	return fd;
}

static void put(struct layer *l, struct layer_entry m)
{
	size_t n;

	m.path = m.path ? m.path : "";
	m.target = m.target ? m.target : "";
	check(layer_entry_put(record, &n, &m) == 0);
	check(write(l->fd, record, n) == (ssize_t)n);
	l->n++;
}

static struct layer begin(void)
{
	struct layer l = { .fd = file() };

	check(write(l.fd, LAYER_TREE_MAGIC, 8) == 8);
	return l;
}

static int end(struct layer *l)
{
	put(l, (struct layer_entry) { .kind = LAYER_END, .size = l->n, .offset = l->blob });
	return l->fd;
}

static void add(struct layer *l, uint8_t kind, const char *path, const char *target)
{
	struct layer_entry m = { .kind = kind, .path = path, .target = target };

	if (kind < LAYER_HARD)
		m.mode = 0755;
	if (kind == LAYER_FILE) {
		m.size = 5;
		m.offset = l->blob;
		l->blob += LAYER_BLOCK;
	}
	put(l, m);
}

/* ---- images ---- */

static uint8_t *image; /* mapped */

static int try(const int *trees, size_t n)
{
	int out = file(), r;

	err = (struct err) { 0 };
	r = merge_layers(trees, n, out, &res, &err);
	if (r == 0) {
		image = mmap(NULL, res.bytes, PROT_READ, MAP_SHARED, out, 0);
		check(image != MAP_FAILED);
	}
	for (size_t i = 0; i < n; i++)
		check(fcntl(trees[i], F_GETFD) >= 0);
	check(close(out) == 0);
	return r;
}

static uint64_t le(const uint8_t *p, size_t n)
{
	return n ? p[0] | le(p + 1, n - 1) << 8 : 0; /* NOLINT(misc-no-recursion) */
}

/* Where the inode of a name in a small directory (all of it behind the inode) is; 0: not there. */
static uint64_t find(uint64_t dir, const char *name)
{
	const uint8_t *p = image + dir + 64;
	size_t size = (size_t)le(image + dir + 8, 8), n = (size_t)le(p + 8, 2) / DIRENT;

	check((le(image + dir, 2) >> 1) == 2 && !le(image + dir + 2, 2));
	for (size_t i = 0; i < n; i++) {
		size_t at = (size_t)le(p + i * DIRENT + 8, 2);
		size_t to = i + 1 < n ? (size_t)le(p + (i + 1) * DIRENT + 8, 2) : size;

		if (to - at == strlen(name) && !memcmp(p + at, name, to - at))
			return le(p + i * DIRENT, 8) * 32;
	}
	return 0;
}

static unsigned links(uint64_t inode)
{
	return (unsigned)le(image + inode + 44, 4);
}

static void done(const int *trees, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check(close(trees[i]) == 0);
	if (image)
		check(munmap(image, res.bytes) == 0);
	image = NULL;
}

/* ---- tests ---- */

static void nothing(void)
{
	struct layer l = begin();
	int t[] = { end(&l) };

	check(try(t, 1) == 0 && res.bytes == 2 * LAYER_BLOCK && res.inodes == 1);
	check(le(image + SUPER, 4) == 0xe0f5e1e2 && le(image + SUPER + 14, 2) == ROOT / 32);
	check(le(image + SUPER + 36, 4) == 2 && le(image + SUPER + 80, 4) == 0);
	check(find(ROOT, ".") == ROOT && find(ROOT, "..") == ROOT && links(ROOT) == 2);
	check(le(image + ROOT + 4, 2) == 040755);
	done(t, 1);
}

static void over_each_other(void)
{
	struct layer a = begin(), b = begin();
	uint64_t d;
	int t[2];

	add(&a, LAYER_FILE, "d/one", NULL);
	add(&a, LAYER_FILE, "d/two", NULL);
	add(&a, LAYER_DIR, "e", NULL);
	add(&a, LAYER_FILE, "e/x", NULL);
	add(&a, LAYER_SYMLINK, "l", "/../d/.");
	add(&b, LAYER_WHITEOUT, "l/one", NULL); /* through the link */
	add(&b, LAYER_FILE, "d/three", NULL);
	add(&b, LAYER_HARD, "h", "l/three");
	add(&b, LAYER_HARD, "h", "d/three");
	add(&b, LAYER_FILE, "e/new", NULL);
	add(&b, LAYER_OPAQUE, "e", NULL); /* hides what is below it only, wherever it stands */
	t[0] = end(&a);
	t[1] = end(&b);
	check(try(t, 2) == 0);
	d = find(ROOT, "d");
	check(d && !find(d, "one") && find(d, "two") && find(d, "three"));
	check(find(ROOT, "h") == find(d, "three") && links(find(ROOT, "h")) == 2);
	check(find(find(ROOT, "e"), "new") && !find(find(ROOT, "e"), "x") && links(ROOT) == 4);
	/* the blobs one behind the other */
	check(le(image + find(d, "two") + 16, 4) == res.bytes / LAYER_BLOCK + 1);
	check(le(image + find(d, "three") + 16, 4) == res.bytes / LAYER_BLOCK + 3);
	check(le(image + SUPER + 36, 4) == res.bytes / LAYER_BLOCK + 5);
	done(t, 2);
}

static void replaced(void)
{
	struct layer a = begin();
	int t[1];

	add(&a, LAYER_FILE, "d/x", NULL);
	add(&a, LAYER_HARD, "keeps", "d/x");
	add(&a, LAYER_FILE, "d", NULL);
	add(&a, LAYER_FIFO, "d", NULL);
	t[0] = end(&a);
	check(try(t, 1) == 0 && res.inodes == 3);
	check(le(image + find(ROOT, "d") + 4, 2) == 010755 && links(find(ROOT, "keeps")) == 1);
	done(t, 1);
}

static void refuses(const char *why, uint8_t kind, const char *path, const char *target)
{
	struct layer a = begin();
	int t[1];

	add(&a, LAYER_FILE, "f", NULL);
	add(&a, LAYER_DIR, "d", NULL);
	add(&a, LAYER_SYMLINK, "loop", "loop");
	add(&a, kind, path, target);
	t[0] = end(&a);
	check(try(t, 1) < 0 && strstr(err.msg, why));
	done(t, 1);
}

static void too_deep(void)
{
	static char long_way[3000];
	struct layer a = begin();
	int t[1];

	for (size_t i = 0; i < sizeof(long_way) - 1; i++)
		long_way[i] = i % 2 ? '/' : 'd';
	add(&a, LAYER_FILE, long_way, NULL);
	add(&a, LAYER_SYMLINK, "l", long_way);
	t[0] = end(&a);
	check(try(t, 1) == 0);
	done(t, 1);
	a = begin();
	add(&a, LAYER_DIR, long_way, NULL);
	add(&a, LAYER_SYMLINK, "l", long_way);
	(void)snprintf(long_way, sizeof(long_way), "l");
	for (size_t i = 1; i < 1999; i++)
		long_way[i] = i % 2 ? '/' : 'e';
	long_way[1999] = '\0';
	add(&a, LAYER_FILE, long_way, NULL);
	t[0] = end(&a);
	check(try(t, 1) == -ENAMETOOLONG && strstr(err.msg, "too long"));
	done(t, 1);
}

/* A tree that was changed since it was written. */
static void damaged(void)
{
	struct layer a = begin();
	int t[1] = { end(&a) };
	struct stat st;

	check(fstat(t[0], &st) == 0 && ftruncate(t[0], st.st_size - 1) == 0 && try(t, 1) < 0);
	check(ftruncate(t[0], st.st_size + 1) == 0 && try(t, 1) < 0);
	check(ftruncate(t[0], 4) == 0 && try(t, 1) < 0 && strstr(err.msg, "damaged"));
	done(t, 1);
	a = begin();
	a.n++;
	t[0] = end(&a);
	check(try(t, 1) < 0);
	done(t, 1);
	a = begin();
	add(&a, LAYER_FILE, "a", NULL);
	a.blob = 0;
	add(&a, LAYER_FILE, "b", NULL); /* lies over a */
	t[0] = end(&a);
	check(try(t, 1) < 0);
	done(t, 1);
	a = begin();
	add(&a, LAYER_FILE, "a", NULL);
	a.blob = 0;
	t[0] = end(&a);
	check(try(t, 1) < 0); /* the blob is shorter than that */
	done(t, 1);
}

int main(void)
{
	check(hash_prepare() == 0);
	nothing();
	over_each_other();
	replaced();
	refuses("below 'f', which is not", LAYER_DIR, "f/x", NULL);
	refuses("not in the image", LAYER_HARD, "h", "none");
	refuses("not in the image", LAYER_HARD, "h", "f/none");
	refuses("is a directory", LAYER_HARD, "h", "d");
	refuses("too many symbolic links", LAYER_FILE, "loop/x", NULL);
	too_deep();
	damaged();
	return 0;
}
