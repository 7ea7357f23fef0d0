/* Files of path rules: lines, and where their faults are. */
#include "policy/path-file.h"

#include "base/check.h"

static const struct {
	const char *text, *msg; /* NULL: taken */
} files[] = {
	{ "", NULL },
	{ "\n\n \t\n", NULL },
	{ "# nothing\n  # either\n", NULL },
	{ "hide a", NULL },
	{ "hide a\r\nprotect b\r\n", NULL },
	{ "  hide\ta b  \n", NULL },
	{ "hide #x\n", NULL },
	{ "hid a\n", "line 1: column 1: 'hid' is none of hide, protect, allow" },
	{ "\n  Hide a\n", "line 2: column 3: 'Hide' is none" },
	{ "hide\n", "line 1: column 5: pattern '', column 1: the pattern is empty" },
	{ "hide a\nprotect a//b\n", "line 2: column 9: pattern 'a//b', column 3: an empty" },
	{ "allow /\n", "line 1: column 7: pattern '/', column 1" },
};

static void lines(void)
{
	struct path_builder *b;
	struct err e;
	size_t i;
	int r;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		check(path_builder_new(&b) == 0);
		r = path_file_add(b, files[i].text, strlen(files[i].text), "x", &e);
		check(r == (files[i].msg ? -EINVAL : 0));
		if (files[i].msg && !starts_with(e.msg, files[i].msg))
			(void)fprintf(stderr, "%s\n", e.msg);
		check(!files[i].msg || starts_with(e.msg, files[i].msg));
		path_builder_free(b);
	}
	check(path_builder_new(&b) == 0);
	check(path_file_add(b, "hide a\nhide b\0c\n", 16, "x", &e) == -EINVAL);
	check(starts_with(e.msg, "line 2: column 7: a NUL"));
	path_builder_free(b);
}

static void big(void)
{
	char *text = malloc(PATH_FILE_MAX + 1);
	struct path_builder *b;
	struct err e;

	check(text && path_builder_new(&b) == 0);
	memset(text, '\n', PATH_FILE_MAX + 1);
	check(path_file_add(b, text, PATH_FILE_MAX, "x", &e) == 0);
	check(path_file_add(b, text, PATH_FILE_MAX + 1, "x", &e) == -EINVAL);
	memset(text, 'x', 5000);
	memcpy(text, "hide ", 5);
	check(path_file_add(b, text, 5000, "x", &e) == -EINVAL);
	check(strstr(e.msg, "too long"));
	path_builder_free(b);
	free(text);
}

int main(void)
{
	lines();
	big();
	return 0;
}
