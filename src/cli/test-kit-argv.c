/* What is run, from what a kit says and what the user adds. */
#include "cli/kit-argv.h"

#include <stdio.h>

#include "base/check.h"

static const struct {
	const char *spec; /* below sandbox: */
	bool tty;
	const char *extra; /* words */
	const char *want;
} rows[] = {
	{ "  image: x\n  entrypoint: [a]\n  command: [-d]\n", false, "", "a -d" },
	{ "  image: x\n  entrypoint: [a]\n  command: [-d]\n", true, "", "a -d" },
	{ "  image: x\n  entrypoint: [a]\n  command: [-d]\n", true, "-x y", "a -d -x y" },
	{ "  image: x\n  entrypoint: [a]\n  command: [-d]\n", true, "sub -x", "a sub -x" },
	{ "  image: x\n  entrypoint: [a, b]\n", false, "", "a b" },
	{ "  image: x\n  entrypoint: [a, b]\n", true, "c", "a b c" },
	{ "  image: x\n  entrypoint: [a]\n  command: {default: [-d], interactive: [-i, 1]}\n",
	  false, "", "a -d" },
	{ "  image: x\n  entrypoint: [a]\n  command: {default: [-d], interactive: [-i, 1]}\n", true,
	  "-x", "a -i 1 -x" },
	{ "  image: x\n  entrypoint: [a]\n  command: {default: [-d]}\n", true, "", "a -d" },
	{ "  image: x\n  command: [bash, -l]\n", true, "", "bash -l" },
	{ "  image: x\n  command: [bash, -l]\n", true, "ls -l", "ls -l" },
	{ "  image: x\n  command: [bash, -l]\n", false, "-c id", "bash -l -c id" },
	{ "  image: x\n", true, "", "bash -l" },
	{ NULL, true, "", "bash -l" },
	{ NULL, false, "ls", "ls" },
};

static void row(size_t i)
{
	char text[512], words[64], got[128] = "", *rest = NULL;
	const char *extra[8] = { NULL }, **argv;
	struct kit_report rep = { 0 };
	struct kit kit = { 0 };
	size_t n = 0, n_argv = 0;
	struct err e;

	if (rows[i].spec) {
		(void)snprintf(text, sizeof(text),
			       "schemaVersion: \"2\"\nkind: sandbox\nname: k\nsandbox:\n%s",
			       rows[i].spec);
		check(kit_parse("spec.yaml", text, strlen(text), NULL, &kit, &rep, &e) == 0);
	}
	(void)snprintf(words, sizeof(words), "%s", rows[i].extra);
	for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
		extra[n++] = w;
	argv = kit_argv(rows[i].spec ? &kit : NULL, rows[i].tty, extra, n, &n_argv);
	check(argv && !argv[n_argv]);
	for (size_t k = 0; k < n_argv; k++) {
		size_t at = strlen(got);

		(void)snprintf(got + at, sizeof(got) - at, "%s%s", k ? " " : "", argv[k]);
	}
	check(streq(got, rows[i].want));
	free(argv);
	report_done(&rep);
	kit_done(&kit);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		row(i);
	return 0;
}
