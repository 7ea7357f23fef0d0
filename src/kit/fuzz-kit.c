/* Any text as a kit; what is one is written in its normal form, read into the same again, and composed. */
#include <jansson.h>

#include "base/check.h"
#include "kit/kit.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
const char *__lsan_default_suppressions(void);

/* libfyaml 0.7.12 loses 4 KiB where something is wrong behind a long text in quotes. */
const char *__lsan_default_suppressions(void)
{
	return "leak:libfyaml.so\n";
}

enum { OUT_MAX = 16 * 1024 * 1024 };

static int none(void *arg, const char *service, const char *resource)
{
	(void)arg;
	check(service && resource);
	return 0;
}

/* The normal form says more, so it may be too long to be read again: then there is nothing to compare. */
static bool is_too_much(const struct kit_report *rep)
{
	return rep->n == 1 && (strstr(rep->v[0].text, "bytes, expected") ||
			       strstr(rep->v[0].text, "found more than"));
}

static void check_again(const struct kit *k, struct buf *normal)
{
	struct buf again = BUF_INIT(OUT_MAX);
	struct kit_report rep = { 0 };
	struct kit copy = { 0 };
	struct err e;

	if (kit_parse("again", (const char *)buf_data(normal), normal->n, NULL, &copy, &rep, &e) ==
	    0) {
		check(kit_write(&copy, &again) == 0 && again.n == normal->n);
		check(!memcmp(buf_data(&again), buf_data(normal), again.n));
		check(copy.n_vars == k->n_vars && copy.n_install == k->n_install &&
		      copy.credentials.n == k->credentials.n && copy.allow.n == k->allow.n);
	} else {
		check(is_too_much(&rep));
	}
	buf_done(&again);
	kit_done(&copy);
	report_done(&rep);
}

static void check_written(const struct kit *k)
{
	struct buf out = BUF_INIT(OUT_MAX);
	struct declarations d = { 0 };
	struct err e;
	json_t *j;

	check(kit_write(k, &out) == 0);
	check_again(k, &out);
	buf_done(&out);
	check(kit_write_json(k, &out) == 0);
	j = json_loadb((const char *)buf_data(&out), out.n, 0, NULL);
	check(j);
	json_decref(j);
	buf_done(&out);
	check(kit_write_credentials(k, &out) == 0);
	if (out.n && out.n <= YAML_MAX &&
	    declare_parse("kit", "k", (const char *)buf_data(&out), out.n, &d, &e) == 0)
		check(d.n == k->credentials.n);
	declare_done(&d);
	buf_done(&out);
	check(kit_unlisted(k, none, NULL) == 0);
}

/* With a sandbox that has some of everything, or as one with its parent. */
static void compose(const struct kit *k)
{
	static const char text[] =
		"schemaVersion: \"2\"\nkind: sandbox\nname: base-of-all\nsandbox: {image: i, "
		"entrypoint: [a, b]}\n"
		"environment: {variables: {PATH: \"/a:${PATH}\", A: b}}\nports: [{container: 80}]\n"
		"volumes: [{path: /v}]\ncredentials: [{service: s, apiKey: {name: A}}]\n";
	struct kit base = { 0 }, all = { 0 };
	const struct kit *one = k, *parent = &base;
	struct kit_report rep = { 0 };
	struct err e;
	int r;

	check(kit_parse("base", text, strlen(text), NULL, &base, &rep, &e) == 0);
	if (k->kind == KIT_MIXIN)
		r = kit_compose(&base, NULL, 0, &one, 1, &all, &rep, &e);
	else
		r = kit_compose(k, &parent, k->extends ? 1 : 0, NULL, 0, &all, &rep, &e);
	check(r == 0 || r == -EINVAL || r == -E2BIG);
	if (r == 0)
		check_written(&all);
	kit_done(&all);
	kit_done(&base);
	report_done(&rep);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct kit_report rep = { 0 };
	struct kit k = { 0 };
	struct err e;
	int r = kit_parse("f", (const char *)p, n, NULL, &k, &rep, &e);

	check(r == 0 ? rep.n == 0 : r == -EINVAL && rep.n > 0);
	if (r == 0) {
		check(k.name && k.kind && (k.version == 1 || k.version == 2));
		check_written(&k);
		compose(&k);
	}
	kit_done(&k);
	report_done(&rep);
	return 0;
}
