/* Bodies of a token endpoint. Input: u8 what (even: an answer, odd: a request; 2: without a refresh token), the body. */
#include <jansson.h>

#include "proxy/inject-test.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { OUT_MAX = 16 * INJECT_BODY_MAX };

static const struct cred_use *use(void)
{
	size_t i = 0;

	while (!streq(inject_test_uses[i].id, "token"))
		i++;
	return &inject_test_uses[i];
}

static bool same(const struct buf *b, const uint8_t *p, size_t n)
{
	return b->n == n && (!n || memcmp(buf_data(b), p, n) == 0);
}

static void request(const uint8_t *p, size_t n, bool with)
{
	static const uint8_t value[] = "r/e+al";
	struct buf out = BUF_INIT(OUT_MAX), again = BUF_INIT(OUT_MAX);
	struct err e;
	int r = inject_token_request(use(), p, n, with ? value : NULL, 6, &out, &e), q;

	check(r == 0 || r == 1 || r == -EINVAL || r == -EPERM || (r == -ENOENT && !with));
	check(r < 0 || n <= INJECT_BODY_MAX);
	check(r != 1 || same(&out, p, n));
	if (r == 0) {
		check(with);
		/* what has a value now is read as having one: one that is not the sentinel */
		q = inject_token_request(use(), buf_data(&out), out.n, value, 6, &again, &e);
		check(q == -EPERM || (q == -EINVAL && out.n > INJECT_BODY_MAX));
	} else if (r < 0) {
		check(e.msg[0]);
	}
	buf_done(&out);
	buf_done(&again);
}

static void no_token(const struct inject_tokens *t, const struct buf *out)
{
	check(!t->access || strlen(t->access) < 30 ||
	      !memmem(buf_data(out), out->n, t->access, strlen(t->access)));
	check(!t->refresh || strlen(t->refresh) < 30 ||
	      !memmem(buf_data(out), out->n, t->refresh, strlen(t->refresh)));
}

static void answer(const uint8_t *p, size_t n)
{
	struct buf out = BUF_INIT(OUT_MAX);
	struct inject_tokens t = { 0 };
	json_t *j = NULL, *identity;
	struct err e;
	int r = inject_token_answer(use(), p, n, &t, &out, &e);

	check(r == 0 || r == 1 || r == -EINVAL);
	check(r != 1 || (same(&out, p, n) && !t.access && !t.refresh && !t.scope));
	if (r == 0) {
		j = json_loadb((const char *)buf_data(&out), out.n,
			       JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
		check(j && (t.access ? json_is_object(j) : !t.refresh));
		identity = json_object_get(j, "id_token");
		check(!identity || strstr(json_string_value(identity), ".not-signed-"));
		check(!t.access || streq(json_string_value(json_object_get(j, "access_token")),
					 use()->placeholder2));
		check(!t.refresh || json_string_value(json_object_get(j, "refresh_token")));
		no_token(&t, &out);
		json_decref(j);
	}
	inject_tokens_done(&t);
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (!n)
		return 0;
	if (p[0] & 1)
		request(p + 1, n - 1, !(p[0] & 2));
	else
		answer(p + 1, n - 1);
	return 0;
}
