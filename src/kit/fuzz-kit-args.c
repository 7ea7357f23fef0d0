/* A pattern in the first line, a file of arguments up to an empty line, and behind it a text that refers to them. */
#include "base/check.h"
#include "base/text.h"
#include "kit/args.h"
#include "kit/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { OUT_MAX = 64 * 1024 * 1024 };

static void apply(const struct kit_args *a, const char *text, size_t n)
{
	struct buf out = BUF_INIT(OUT_MAX);
	struct err e;
	int r = kit_args_apply(a, text, n, &out, &e);

	check(r == 0 || r == -EINVAL || r == -ENOBUFS);
	if (r == 0 && !memmem(text, n, "${{", 3))
		check(out.n == n && (!n || !memcmp(buf_data(&out), text, n)));
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	const char *text = (const char *)p, *eol = n ? memchr(text, '\n', n) : NULL, *end;
	size_t line = eol ? (size_t)(eol - text) : n;
	_free_ char *pattern = text_dup(text, line);
	struct kit_args a = { 0 };
	struct err e;
	bool good;
	size_t i;

	check(pattern);
	good = text_is_utf8(pattern, strlen(pattern)) && pattern_check(pattern, &e) == 0;
	if (!eol)
		return 0;
	n -= line + 1;
	text = eol + 1;
	end = memmem(text, n, "\n\n", 2);
	i = end ? (size_t)(end + 1 - text) : n;
	if (kit_args_file(&a, "f", text, i, &e) == 0)
		check(a.n <= KIT_ARGS_MAX);
	text += i;
	n -= i;
	for (i = 0; i < a.n; i++) {
		check(a.v[i].name && a.v[i].value);
		if (good)
			check(pattern_matches(pattern, a.v[i].value) >= 0);
	}
	apply(&a, text, n);
	kit_args_done(&a);
	return 0;
}
