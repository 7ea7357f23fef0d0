/* Any bytes as a file of path rules; what is taken can be frozen, unless it has too many parts. */
#include "base/check.h"
#include "policy/path-file.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	_cleanup_(path_builder_freep) struct path_builder *b = NULL;
	_cleanup_(path_rules_freep) struct path_rules *r = NULL;
	struct err e;
	int ret;

	check(path_builder_new(&b) == 0);
	if (path_file_add(b, (const char *)p, n, "fuzz", &e) < 0) {
		check(strstr(e.msg, "line ") || n > PATH_FILE_MAX);
		return 0;
	}
	ret = path_rules_freeze(b, &r);
	check(ret == 0 || ret == -E2BIG);
	if (ret == 0)
		check(path_rules_decide(r, "a/b", 3).kind <= PATH_HIDE);
	return 0;
}
