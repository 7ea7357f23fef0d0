/* Trees of up to three layers, merged: the first byte says how many and whether they are taken as they are (which the reader has to find
 * fault with) or as a list of records that gets its frame here. What comes out is whole blocks, the same twice. */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "layer/hash.h"
#include "layer/merge.h"
#include "wire/layer.h"

enum { LAYERS = 3, BLOB_MAX = 1 << 30 };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static int file(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	check(fd >= 0);
	return fd;
}

static void append(int fd, const void *p, size_t n)
{
	check(write(fd, p, n) == (ssize_t)n);
}

/* Records that parse, with a head and an end. */
static void write_framed(int fd, const uint8_t *p, size_t n)
{
	static uint8_t record[LAYER_RECORD_MAX];
	struct layer_entry m, end = { .kind = LAYER_END, .path = "", .target = "" };
	size_t used = 0;

	append(fd, LAYER_TREE_MAGIC, strlen(LAYER_TREE_MAGIC));
	while (layer_entry_parse(&m, &used, p, n) == WIRE_OK && m.kind != LAYER_END) {
		append(fd, p, used);
		p += used;
		n -= used;
		end.size++;
	}
	end.offset = BLOB_MAX;
	check(layer_entry_put(record, &used, &end) == 0);
	append(fd, record, used);
}

static void write_tree(int fd, bool framed, const uint8_t *p, size_t n)
{
	check(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
	if (framed)
		write_framed(fd, p, n);
	else
		append(fd, p, n);
}

static bool same(int a, int b, size_t n)
{
	void *x = mmap(NULL, n, PROT_READ, MAP_SHARED, a, 0);
	void *y = mmap(NULL, n, PROT_READ, MAP_SHARED, b, 0);
	bool r = x != MAP_FAILED && y != MAP_FAILED && !memcmp(x, y, n);

	return r && munmap(x, n) == 0 && munmap(y, n) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static int trees[LAYERS], out[2];
	struct merge_result a, b;
	struct err e = { 0 };
	size_t layers;
	struct stat st;

	if (!trees[0]) {
		for (size_t i = 0; i < LAYERS; i++)
			trees[i] = file("tree");
		out[0] = file("one");
		out[1] = file("two");
		check(hash_prepare() == 0);
	}
	if (!n)
		return 0;
	layers = 1 + (p[0] & 0x7f) % LAYERS;
	for (size_t i = 0; i < layers; i++) {
		size_t part = (n - 1) / layers;

		write_tree(trees[i], !(p[0] & 0x80), p + 1 + i * part, part);
	}
	check(ftruncate(out[0], 0) == 0 && ftruncate(out[1], 0) == 0);
	if (merge_layers(trees, layers, out[0], &a, &e) < 0) {
		check(e.code < 0 && e.msg[0]);
		return 0;
	}
	check(merge_layers(trees, layers, out[1], &b, &e) == 0);
	check(a.bytes == b.bytes && a.inodes == b.inodes && a.bytes % LAYER_BLOCK == 0);
	check(fstat(out[0], &st) == 0 && (uint64_t)st.st_size == a.bytes);
	check(same(out[0], out[1], (size_t)a.bytes));
	return 0;
}
