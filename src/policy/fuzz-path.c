/* Any rules and any path: first a path, a NUL, a second path, a NUL, then a file of rules. What the
 * tree decides is what the plain meaning of the patterns gives. */
#include "base/check.h"
#include "policy/path-file.h"
#include "policy/path-priv.h"
#include "policy/path-test.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Short ones only: the plain meaning takes exponential time. */
enum { SLOW_MAX = 24 };

static bool is_slow(const struct path_rules *r, size_t i)
{
	return strlen(r->rules[i]->text) > SLOW_MAX;
}

static void compare(const struct path_rules *r, const char *path, size_t len)
{
	struct path_answer a = path_rules_decide(r, path, len);
	enum path_rule_kind strictest = PATH_FREE;
	size_t i, n;

	check(a.kind <= PATH_HIDE && (a.kind == PATH_FREE) == !a.rule);
	check(path_rules_below(r, path, len) >= a.kind);
	if (len > SLOW_MAX || (a.rule && streq(a.origin, "built in")))
		return;
	for (i = 0; i < r->n_rules; i++) {
		bool hit = is_slow(r, i) ||
			   slow_match(r->rules[i]->text, path, r->rules[i]->kind != PATH_ALLOW);
		bool freed = false;

		for (n = 0; n < r->freed[i].n; n++) {
			size_t exc = r->frees[r->freed[i].at + n];
			bool met = is_slow(r, exc) || slow_match(r->rules[exc]->text, path, false);

			check(!met || hit || is_slow(r, exc));
			freed |= met;
		}
		if (!hit || r->rules[i]->kind == PATH_ALLOW)
			continue;
		strictest = MAX(strictest, r->rules[i]->kind);
		check(freed || is_slow(r, i) || a.kind >= r->rules[i]->kind);
	}
	check(a.kind <= strictest);
}

/* The text up to a NUL, which the rest begins behind. */
static const char *take_text(const uint8_t **p, size_t *n, size_t *ret_len)
{
	const char *s = (const char *)*p;
	const uint8_t *end = *n ? memchr(*p, 0, *n) : NULL;

	if (!end)
		return NULL;
	*ret_len = (size_t)(end - *p);
	*n -= *ret_len + 1;
	*p = end + 1;
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	_cleanup_(path_builder_freep) struct path_builder *b = NULL;
	_cleanup_(path_rules_freep) struct path_rules *r = NULL;
	size_t a_len, c_len;
	const char *a = take_text(&p, &n, &a_len), *c = a ? take_text(&p, &n, &c_len) : NULL;
	struct err e;

	check(path_builder_new(&b) == 0);
	if (!c || n > 4096 || path_file_add(b, (const char *)p, n, "fuzz", &e) < 0)
		return 0;
	check(path_rules_freeze(b, &r) == 0);
	compare(r, a, a_len);
	compare(r, c, c_len);
	check(path_rules_may_move(r, a, a_len, c, c_len) ==
	      path_rules_may_move(r, c, c_len, a, a_len));
	return 0;
}
