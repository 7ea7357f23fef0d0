/* Layers in the cache, with the real bac-layer: argument 1. With more arguments, archives: says what came of each, and looks that
 * nothing is left of one that was refused (test/layer/hostile.py). */
#include "image/layer.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/sha256.h"
#include "io/fd.h"
#include "sys/dirs.h"
#include "wire/layer.h"

enum { SECTOR = 512 };

static char cache[] = "/tmp/test-bac-layer-XXXXXX";
static struct image_build b = { .cache = cache };
static struct err err;

/* ---- archives, the old way ---- */

static void add(int fd, char type, const char *name, const char *link, const char *text)
{
	char h[SECTOR] = { 0 }, pad[SECTOR] = { 0 };
	size_t n = strlen(text);
	unsigned sum = 0;

	(void)snprintf(h, 100, "%s", name);
	(void)snprintf(h + 100, 8, "%07o", 0644U);
	(void)snprintf(h + 108, 8, "%07o", 1000U);
	(void)snprintf(h + 116, 8, "%07o", 100U);
	(void)snprintf(h + 124, 12, "%011o", (unsigned)n);
	(void)snprintf(h + 136, 12, "%011o", 1234567U);
	h[156] = type;
	(void)snprintf(h + 157, 100, "%s", link);
	memcpy(h + 257, "ustar\00000", 8);
	memset(h + 148, ' ', 8);
	for (size_t i = 0; i < SECTOR; i++)
		sum += (unsigned char)h[i];
	(void)snprintf(h + 148, 8, "%06o", sum);
	check(fd_write_all(fd, h, SECTOR) == 0 && fd_write_all(fd, text, n) == 0);
	check(fd_write_all(fd, pad, (SECTOR - n % SECTOR) % SECTOR) == 0);
}

static void finish(int fd)
{
	static const char zeros[2 * SECTOR];

	check(fd_write_all(fd, zeros, sizeof(zeros)) == 0);
}

static int archive(void)
{
	int fd = memfd_create("tar", MFD_CLOEXEC);

	check(fd >= 0);
	return fd;
}

static uint64_t size_of(int fd)
{
	struct stat st;

	check(fstat(fd, &st) == 0);
	return (uint64_t)st.st_size;
}

static void digest(int fd, uint64_t offset, char hex[65])
{
	uint8_t part[4096], raw[SHA256_SIZE];
	struct sha256 s;
	ssize_t n;

	sha256_init(&s);
	while ((n = pread(fd, part, sizeof(part), (off_t)offset)) > 0) {
		sha256_add(&s, part, (size_t)n);
		offset += (uint64_t)n;
	}
	sha256_end(&s, raw);
	for (size_t i = 0; i < sizeof(raw); i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", raw[i]);
}

/* ---- what is in the cache ---- */

static int count_layers(void)
{
	_free_ char *path = dirs_join(cache, IMAGE_LAYERS);
	DIR *d = opendir(path);
	struct dirent *x;
	int n = 0;

	while (d && (x = readdir(d)))
		n += !streq(x->d_name, ".") && !streq(x->d_name, "..") &&
		     !streq(x->d_name, ".lock");
	if (d)
		(void)closedir(d);
	return n;
}

static uint64_t content_size(const char *diff, const char *name)
{
	_free_ char *path = image_layer_path(cache, diff, name);
	struct stat st;

	check(path && stat(path, &st) == 0);
	return (uint64_t)st.st_size;
}

/* ---- tests ---- */

static struct image_layer low, high;

static void apply(void)
{
	static const char garbage[100] = "before";
	char want[65];
	int fd = archive();

	check(fd_write_all(fd, garbage, sizeof(garbage)) == 0);
	add(fd, '5', "./d", "", "");
	add(fd, '0', "./d/f", "", "hello\n");
	add(fd, '0', "gone", "", "x");
	finish(fd);
	digest(fd, sizeof(garbage), want);
	check(image_layer_get(cache, want, &low) == 1);
	check(image_layer_apply(&b, fd, sizeof(garbage), size_of(fd) - sizeof(garbage), want, want,
				&low, &err) == 0);
	check(streq(low.diff, want) && streq(low.digest, want) && low.entries == 3);
	check(low.blob == 2 * 4096 && content_size(want, "blob") == low.blob);
	check(content_size(want, "tree") == low.tree && count_layers() == 1);
	check(close(fd) == 0);
	/* it is there: nothing is read */
	low = (struct image_layer) { 0 };
	check(image_layer_apply(&b, -1, 0, 1, NULL, want, &low, &err) == 0);
	check(streq(low.digest, want) && low.entries == 3 && low.dropped == 0);
	check(image_layer_get(cache, want, &low) == 0);
}

static void through_a_pipe(void)
{
	int p[2];

	check(pipe2(p, O_CLOEXEC) == 0);
	add(p[1], '0', ".wh.gone", "", "");
	add(p[1], '1', "d/hard", "d/f", "");
	finish(p[1]);
	check(close(p[1]) == 0);
	check(image_layer_apply(&b, p[0], 0, UINT64_MAX, NULL, NULL, &high, &err) == 0);
	check(high.entries == 2 && high.blob == 0 && count_layers() == 2);
	check(close(p[0]) == 0);
}

static void refused(void)
{
	static const char hex[] =
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	struct image_layer l = { 0 };
	int fd = archive(), here = count_layers();

	add(fd, '0', "../evil", "", "x");
	finish(fd);
	check(image_layer_apply(&b, fd, 0, size_of(fd), NULL, NULL, &l, &err) == -EINVAL);
	check(streq(err.msg, "the archive holds '../evil', which leads out of it"));
	check(close(fd) == 0);
	fd = archive();
	add(fd, '0', "fine", "", "x");
	finish(fd);
	check(image_layer_apply(&b, fd, 0, size_of(fd), hex, NULL, &l, &err) == -EBADMSG);
	check(starts_with(err.msg, "the layer is sha256:"));
	check(image_layer_apply(&b, fd, 0, size_of(fd), NULL, hex, &l, &err) == -EBADMSG);
	check(image_layer_apply(&b, fd, 0, size_of(fd) + 1, NULL, NULL, &l, &err) == -EINVAL);
	check(image_layer_apply(&b, fd, 0, size_of(fd), NULL, "../../x", &l, &err) == -EINVAL);
	check(!l.diff[0] && count_layers() == here);
	check(close(fd) == 0);
}

static void interrupted(void)
{
	struct image_layer l;
	sigset_t set;
	int fd = archive(), here = count_layers(), s;

	add(fd, '0', "late", "", "x");
	finish(fd);
	check(sigemptyset(&set) == 0 && sigaddset(&set, SIGINT) == 0);
	check(sigprocmask(SIG_BLOCK, &set, NULL) == 0 && raise(SIGINT) == 0);
	check(image_layer_apply(&b, fd, 0, size_of(fd), NULL, NULL, &l, &err) == -EINTR);
	check(count_layers() == here && sigwait(&set, &s) == 0 && s == SIGINT);
	check(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0 && close(fd) == 0);
}

static void list(void)
{
	struct image_member *v = NULL;
	char text[16] = "";
	size_t n = 0;
	int fd = archive(), where = -1;

	add(fd, '5', "blobs", "", "");
	add(fd, '0', "./blobs/x", "", "content");
	add(fd, '2', "link", "blobs/x", "");
	finish(fd);
	check(image_layer_list(&b, fd, &v, &n, &where, &err) == 0);
	check(n == 3 && where == fd && v[0].type == 'd' && v[1].type == 'f' && v[2].type == 'l');
	check(streq(v[1].name, "blobs/x") && streq(v[2].target, "blobs/x") && v[1].size == 7);
	check(pread(where, text, v[1].size, (off_t)v[1].offset) == 7 && streq(text, "content"));
	image_members_free(v, n);
	check(close(fd) == 0);
}

static void list_of_a_pipe(void)
{
	struct image_member *v = NULL;
	char text[16] = "";
	size_t n = 0;
	int p[2], where = -1;

	check(pipe2(p, O_CLOEXEC) == 0);
	add(p[1], '0', "x", "", "content");
	finish(p[1]);
	check(close(p[1]) == 0);
	check(image_layer_list(&b, p[0], &v, &n, &where, &err) == 0 && n == 1 && where != p[0]);
	check(pread(where, text, v[0].size, (off_t)v[0].offset) == 7 && streq(text, "content"));
	image_members_free(v, n);
	check(close(where) == 0 && close(p[0]) == 0);
}

static void merge(void)
{
	const char *diffs[] = { low.diff, high.diff, low.digest }, *none[] = { "x" };
	const struct layer_limits few = { 1, 1 << 20, 1 << 20, 1000 };
	struct image_layer l;
	char one[65], two[65];
	int a = archive(), c = archive(), fd = archive();

	check(image_layer_merge(&b, diffs, 2, a, &err) == 0 && size_of(a) == 2 * 4096);
	check(image_layer_merge(&b, diffs, 2, c, &err) == 0);
	digest(a, 0, one);
	digest(c, 0, two);
	check(streq(one, two));
	check(image_layer_merge(&b, diffs + 1, 1, c, &err) == -EINVAL);
	check(streq(err.msg, "layer 1: 'd/hard' links to 'd/f', which is not in the image"));
	check(image_layer_merge(&b, none, 1, c, &err) == -ENOENT);
	check(image_layer_merge(&b, diffs, 0, c, &err) == -E2BIG);
	add(fd, '0', "a", "", "x");
	add(fd, '0', "b", "", "x");
	finish(fd);
	b.limits = &few;
	check(image_layer_apply(&b, fd, 0, size_of(fd), NULL, NULL, &l, &err) == -EINVAL);
	check(streq(err.msg, "the archive has more than 1 entries"));
	b.limits = NULL;
	check(close(a) == 0 && close(c) == 0 && close(fd) == 0);
}

static void prune(void)
{
	const char *keep[] = { high.diff };
	uint64_t freed = 0;
	struct image_layer l;

	check(image_layer_prune(cache, keep, 1, &freed, &err) == 0 && freed >= 8192);
	check(image_layer_get(cache, low.diff, &l) == 1 && count_layers() == 1);
	check(image_layer_get(cache, high.diff, &l) == 0);
	check(image_layer_prune(cache, NULL, 0, NULL, &err) == 0 && count_layers() == 0);
}

static void foreign(const char *path)
{
	struct image_layer l = { 0 };
	const char *diffs[] = { l.diff };
	int fd = open(path, O_RDONLY | O_CLOEXEC), meta = archive();
	int r = image_layer_apply(&b, fd, 0, UINT64_MAX, NULL, NULL, &l, &err);

	check(fd >= 0 && count_layers() == (r == 0));
	if (r == 0)
		r = image_layer_merge(&b, diffs, 1, meta, &err);
	(void)printf("%s %s\n", r == 0 ? "taken" : "refused", r == 0 ? l.diff : err.msg);
	check(image_layer_prune(cache, NULL, 0, NULL, &err) == 0 && count_layers() == 0);
	check(close(fd) == 0 && close(meta) == 0);
}

int main(int argc, char **argv)
{
	check(argc >= 2 && mkdtemp(cache));
	b.layer = argv[1];
	for (int i = 2; i < argc; i++)
		foreign(argv[i]);
	if (argc > 2)
		return dirs_remove(AT_FDCWD, cache) == 0 ? 0 : 1;
	apply();
	through_a_pipe();
	refused();
	interrupted();
	list();
	list_of_a_pipe();
	merge();
	prune();
	check(dirs_remove(AT_FDCWD, cache) == 0);
	return 0;
}
