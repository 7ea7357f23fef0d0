/* Replays a fuzzer's corpus: files, or folders of files, named as arguments. */
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/check.h"

enum { INPUT_MAX = 16 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static unsigned replayed;

static void replay_file(const char *path)
{
	FILE *f = fopen(path, "rbe");
	_free_ uint8_t *all = malloc(INPUT_MAX);
	uint8_t *input;
	size_t n;

	check(f && all);
	n = fread(all, 1, INPUT_MAX, f);
	check(!ferror(f) && fclose(f) == 0);
	/* of the very size, so that a byte too far is noticed */
	input = malloc(n ? n : 1);
	check(input);
	memcpy(input, all, n);
	(void)LLVMFuzzerTestOneInput(input, n);
	free(input);
	replayed++;
}

static void replay(const char *path)
{
	struct dirent *d;
	struct stat st;
	DIR *dir;

	check(stat(path, &st) == 0);
	if (!S_ISDIR(st.st_mode)) {
		replay_file(path);
		return;
	}
	dir = opendir(path);
	check(dir);
	while ((d = readdir(dir))) {
		char *inner = NULL;

		if (d->d_name[0] == '.')
			continue;
		check(asprintf(&inner, "%s/%s", path, d->d_name) > 0);
		replay(inner);
		free(inner);
	}
	check(closedir(dir) == 0);
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		replay(argv[i]);
	if (!replayed)
		fprintf(stderr, "%s: nothing to replay: name files or folders\n", argv[0]);
	return replayed ? 0 : 1;
}
