/* Any bytes as an archive, as a layer and as a list. The check sums of tar headers are mended first, or nothing would get beyond them. A
 * tree that is made is one that the reader takes. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "layer/apply.h"
#include "layer/list.h"
#include "layer/tree.h"

enum { SECTOR = 512, SUM = 148, INPUT_MAX = 256 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void mend(uint8_t *b, size_t n)
{
	for (; n >= SECTOR; b += SECTOR, n -= SECTOR) {
		unsigned sum = 0;
		char text[8];

		if (memcmp(b + 257, "ustar", 5) != 0)
			continue;
		memset(b + SUM, ' ', 8);
		for (size_t i = 0; i < SECTOR; i++)
			sum += b[i];
		(void)snprintf(text, sizeof(text), "%06o", sum);
		memcpy(b + SUM, text, 7);
	}
}

static void check_tree(int fd, const struct apply_result *res)
{
	struct layer_entry m;
	struct err e = { 0 };
	struct tree t;
	int r = tree_open(&t, fd, NULL, &e);

	check(r == 0);
	while ((r = tree_next(&t, &m, &e)) > 0)
		;
	check(r == 0 && t.entries == res->entries && t.blob == res->blob);
	tree_done(&t);
}

static int empty(int *fd)
{
	if (!*fd)
		*fd = memfd_create("fuzz", MFD_CLOEXEC);
	check(*fd > 0 && ftruncate(*fd, 0) == 0 && lseek(*fd, 0, SEEK_SET) == 0);
	return *fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const struct layer_limits limits = { 1000, 4 << 20, 4 << 20, 400 };
	static int in, blob, tree, plain;
	static uint8_t copy[INPUT_MAX];
	struct apply_result res;
	struct list_result list;
	struct err e = { 0 };

	if (n > INPUT_MAX)
		return 0;
	check(hash_prepare() == 0);
	if (n)
		memcpy(copy, p, n);
	mend(copy, n);
	check(write(empty(&in), copy, n) == (ssize_t)n);
	if (apply_layer(in, 0, n, empty(&blob), empty(&tree), &limits, NULL, &res, &e) == 0)
		check_tree(tree, &res);
	else
		check(e.code < 0 && e.msg[0]);
	e = (struct err) { 0 };
	if (list_archive(in, empty(&tree), empty(&plain), &limits, NULL, &list, &e) < 0)
		check(e.code < 0 && e.msg[0]);
	return 0;
}
