/* bac-layer: the one program that takes foreign images apart. It moves bytes between the descriptors that it was given, and has no
 * other, no network and no file (docs/protocol/layer.md):
 *
 *   bac-layer list LIMITS                 0 an archive; 3 its members; 4 its plain bytes, if it is packed
 *   bac-layer apply LIMITS OFFSET SIZE    0 a layer; 3 its blob; 4 its tree
 *   bac-layer merge N                     3 the image; 4 and up the trees of N layers, the lowest first
 *
 * On 1 stand lines about how far it is, and at last the result. Status 0, or 1 with one line on stderr. */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/text.h"
#include "config.h"
#include "io/fd.h"
#include "layer/apply.h"
#include "layer/list.h"
#include "layer/merge.h"
#include "layer/seal.h"

enum { FIRST = 3, SECOND = 4 };

/* Bytes of memory: what a merge needs grows with the number of files, that of the others does not. */
static const rlim_t memory_most = (rlim_t)256 << 20, memory_merge = (rlim_t)1536 << 20;

static void say(const struct layer_line *l)
{
	char text[LAYER_LINE_MAX + 2];
	size_t n = layer_line_text(text, l);

	(void)!fd_write_all(STDOUT_FILENO, text, n);
}

static void on_progress(struct source *s)
{
	struct layer_line l = { .v = { s->came, s->plain }, .n = 2 };

	say(&l);
}

static int do_list(char **argv, struct err *e)
{
	struct layer_line l = { .done = true, .n = 3 };
	struct list_result res;
	struct layer_limits limits;
	int r = layer_limits_parse(argv[0], &limits);

	if (r < 0)
		return err_errno(e, r, "bad limits");
	r = list_archive(STDIN_FILENO, FIRST, SECOND, &limits, on_progress, &res, e);
	if (r < 0)
		return r;
	l.v[0] = res.unpacked;
	l.v[1] = res.n;
	l.v[2] = res.size;
	say(&l);
	return 0;
}

static int do_apply(char **argv, struct err *e)
{
	struct layer_line l = { .done = true, .n = 5 };
	struct apply_result res;
	struct layer_limits limits;
	uint64_t offset, size;

	if (layer_limits_parse(argv[0], &limits) < 0 || text_u64(argv[1], INT64_MAX, &offset) < 0 ||
	    text_u64(argv[2], UINT64_MAX, &size) < 0)
		return err_errno(e, -EINVAL, "bad arguments");
	if (apply_layer(STDIN_FILENO, offset, size, FIRST, SECOND, &limits, on_progress, &res, e) <
	    0)
		return e->code;
	memcpy(l.digest, res.digest, sizeof(l.digest));
	memcpy(l.diff, res.diff, sizeof(l.diff));
	l.v[0] = res.came;
	l.v[1] = res.blob;
	l.v[2] = res.tree;
	l.v[3] = res.entries;
	l.v[4] = res.dropped;
	say(&l);
	return 0;
}

static int do_merge(char **argv, struct err *e)
{
	struct layer_line l = { .done = true, .n = 2 };
	int trees[LAYER_LAYERS_MAX];
	struct merge_result res;
	uint64_t n;

	if (text_u64(argv[0], LAYER_LAYERS_MAX, &n) < 0 || !n)
		return err_set(e, -EINVAL, "an image has 1 to %d layers", LAYER_LAYERS_MAX);
	for (size_t i = 0; i < n; i++)
		trees[i] = SECOND + (int)i;
	if (merge_layers(trees, (size_t)n, FIRST, &res, e) < 0)
		return e->code;
	l.v[0] = res.bytes;
	l.v[1] = res.inodes;
	say(&l);
	return 0;
}

static const struct {
	const char *name;
	int args;
	bool grows;
	int (*run)(char **argv, struct err *e);
} modes[] = {
	{ "list", 1, false, do_list },
	{ "apply", 3, false, do_apply },
	{ "merge", 1, true, do_merge },
};

static int work(int argc, char **argv, struct err *e)
{
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(modes); i++) {
		struct rlimit memory = { modes[i].grows ? memory_merge : memory_most,
					 modes[i].grows ? memory_merge : memory_most };
		int r;

		if (!streq(modes[i].name, argv[1]) || argc - 2 != modes[i].args)
			continue;
		if (!BAC_SANITIZED && setrlimit(RLIMIT_DATA, &memory) < 0)
			return err_errno(e, -errno, "cannot limit the memory");
		r = layer_seal();
		if (r < 0)
			return err_errno(e, r, "cannot seal bac-layer (seccomp)");
		return modes[i].run(argv + 2, e);
	}
	return err_set(e, -EINVAL, "bac-layer is started by bac, not by hand");
}

int main(int argc, char **argv)
{
	struct rlimit none = { 0, 0 };
	struct err e = { 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (work(argc, argv, &e) == 0)
		return 0;
	(void)fprintf(stderr, "%s\n", e.msg);
	return 1;
}
