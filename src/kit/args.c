#include "kit/args.h"

#include <stdio.h>

#include "base/text.h"
#include "kit/args-text.h"

void kit_args_done(struct kit_args *a)
{
	size_t i;

	for (i = 0; i < a->n; i++) {
		free(a->v[i].kit);
		free(a->v[i].name);
		free(a->v[i].value);
		free(a->v[i].description);
	}
	free(a->v);
	*a = (struct kit_args) { 0 };
}

bool kit_args_is_name(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		char c = s[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

		if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '-')))
			return false;
	}
	return n > 0 && n <= KIT_ARG_NAME_MAX;
}

static struct kit_arg *find(struct kit_args *a, const char *kit, const char *name)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		if (streq(a->v[i].kit, kit) && streq(a->v[i].name, name))
			return &a->v[i];
	return NULL;
}

/* kit and name become its own, also where it fails. */
static int put(struct kit_args *a, char *kit, char *name, const char *value, struct err *e)
{
	struct kit_arg *one = find(a, kit, name), *v;
	char *text = strdup(value);
	int r = text ? 0 : err_set(e, -ENOMEM, "out of memory");

	if (r == 0 && !one) {
		v = a->n < KIT_ARGS_MAX ? reallocarray(a->v, a->n + 1, sizeof(*v)) : NULL;
		if (v) {
			a->v = v;
			one = &v[a->n++];
			*one = (struct kit_arg) { .kit = take_ptr(kit), .name = take_ptr(name) };
		} else {
			r = a->n < KIT_ARGS_MAX
				    ? err_set(e, -ENOMEM, "out of memory")
				    : err_set(e, -E2BIG, "more than %d arguments", KIT_ARGS_MAX);
		}
	}
	if (r == 0) {
		free(one->value);
		one->value = take_ptr(text);
	}
	free(text);
	free(kit);
	free(name);
	return r;
}

int kit_args_add(struct kit_args *a, const char *text, struct err *e)
{
	const char *equal = strchr(text, '='), *dot, *name = text;
	char *kit = NULL, *copy;

	if (!equal)
		return err_set(e, -EINVAL, "'%.60s' is not NAME=VALUE, or KIT.NAME=VALUE", text);
	dot = memchr(text, '.', (size_t)(equal - text));
	name = dot ? dot + 1 : text;
	if (!kit_args_is_name(name, (size_t)(equal - name)) || dot == text)
		return err_set(e, -EINVAL, "'%.*s' is not the name of an argument",
			       (int)MIN(equal - text, 60), text);
	if (strlen(equal + 1) > KIT_ARG_VALUE_MAX)
		return err_set(e, -E2BIG, "the value of '%.*s' has more than %d bytes",
			       (int)(equal - name), name, KIT_ARG_VALUE_MAX);
	if (!text_is_utf8(equal + 1, strlen(equal + 1)))
		return err_set(e, -EINVAL, "the value of '%.*s' is not UTF-8", (int)(equal - name),
			       name);
	if (strstr(equal + 1, "${{"))
		return err_set(e, -EINVAL, "the value of '%.*s' has '${{' in it",
			       (int)(equal - name), name);
	copy = text_dup(name, (size_t)(equal - name));
	kit = dot ? text_dup(text, (size_t)(dot - text)) : NULL;
	if (!copy || (dot && !kit)) {
		free(copy);
		free(kit);
		return err_set(e, -ENOMEM, "out of memory");
	}
	return put(a, kit, copy, equal + 1, e);
}

int kit_args_file(struct kit_args *a, const char *file, const char *text, size_t n, struct err *e)
{
	unsigned number = 0;
	size_t at = 0;
	int r = 0;

	if (n > KIT_ARGS_FILE_MAX || memchr(text, '\0', n))
		return err_set(e, -EINVAL, "%s: not a text of at most %d bytes", file,
			       KIT_ARGS_FILE_MAX);
	while (r == 0 && at < n) {
		const char *p = text + at, *end = memchr(p, '\n', n - at);
		size_t len = end ? (size_t)(end - p) : n - at;
		_free_ char *line = NULL;

		at += len + 1;
		number++;
		if (len && p[len - 1] == '\r')
			len--;
		while (len && (*p == ' ' || *p == '\t')) {
			p++;
			len--;
		}
		if (!len || *p == '#')
			continue;
		line = text_dup(p, len);
		r = line ? kit_args_add(a, line, e) : err_set(e, -ENOMEM, "out of memory");
		if (r < 0)
			r = err_ctx(e, "%s:%u", file, number);
	}
	return r;
}

int kit_args_used(const struct kit_args *a, struct err *e)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		if (!a->v[i].used)
			return err_set(e, -EINVAL, "no kit has an argument '%s%s%s'",
				       a->v[i].kit ? a->v[i].kit : "", a->v[i].kit ? "." : "",
				       a->v[i].name);
	return 0;
}

int kit_args_apply(const struct kit_args *a, const char *text, size_t n, struct buf *out,
		   struct err *e)
{
	size_t at = 0;
	int r = 0;

	while (r == 0 && at < n) {
		struct args_ref ref;
		bool some = args_text_next(text, n, at, &ref);
		size_t plain = (some ? ref.at : n) - at, i;

		r = buf_add(out, text + at, plain);
		if (r < 0 || !some)
			break;
		for (i = 0; i < a->n; i++)
			if (ref.name && strlen(a->v[i].name) == ref.name_n &&
			    !memcmp(a->v[i].name, ref.name, ref.name_n))
				break;
		if (!ref.name || i == a->n) {
			unsigned line, column;

			args_text_place(text, ref.at, &line, &column);
			return err_set(e, -EINVAL,
				       "%u:%u: found '%.*s', expected an argument that is declared",
				       line, column, (int)MIN(ref.n, 80U), text + ref.at);
		}
		r = buf_add(out, a->v[i].value, strlen(a->v[i].value));
		at = ref.at + ref.n;
	}
	return r < 0 ? err_errno(e, r, "cannot replace arguments") : 0;
}
