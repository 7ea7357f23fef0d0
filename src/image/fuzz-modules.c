/* Three texts with NULs between them: wanted, modules.dep, modules.builtin. */
#include "base/check.h"
#include "image/modules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_free_ char *s = calloc(1, size + 3);
	struct image_modules m = { .n = 0 };
	const char *dep, *builtin;
	char name[300];
	struct err e;
	size_t i;

	check(s);
	if (size)
		memcpy(s, data, size);
	dep = s + strlen(s) + 1;
	if (dep > s + size)
		dep = s + size + 1;
	builtin = dep + strlen(dep) + 1;
	if (builtin > s + size)
		builtin = s + size + 1;
	if (image_modules(s, dep, builtin, &m, &e) < 0)
		return 0;
	check(m.n <= IMAGE_MODULES_MAX);
	for (i = 0; i < m.n; i++) {
		check(m.v[i][0] != '/' && !strstr(m.v[i], "..") && strlen(m.v[i]) < 256);
		check(image_modules_name(m.v[i], name, sizeof(name)) == 0 && !strchr(name, '/'));
	}
	image_modules_done(&m);
	return 0;
}
