#include "policy/id-token.h"

#include <jansson.h>

#include "base/base64.h"
#include "base/buf.h"

enum { CLAIMS_MAX = 1200, EMAIL_MAX = 254, WORD_MAX = 95 };

#define HEAD "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." /* {"alg":"none","typ":"JWT"} */
#define TAIL ".not-signed-proxy-managed"
_Static_assert(sizeof(HEAD) + (CLAIMS_MAX + 2UL) / 3 * 4 + sizeof(TAIL) <= ID_STAND_IN_MAX,
	       "the longest stand-in has room");

static int decode(struct buf *out, const char *p, size_t n)
{
	uint8_t *room = buf_room(out, n);
	size_t len = 0;
	int r = room ? base64_get(room, p, n, BASE64_URL, &len) : -ENOMEM;

	if (r == 0)
		buf_added(out, len);
	return r;
}

/* ---- claims ---- */
#define AUTH    "https://api.openai.com/auth"
#define PROFILE "https://api.openai.com/profile"

static const struct {
	const char *object, *name; /* object NULL: at the top */
	size_t max;
} claims[] = {
	{ NULL, "email", EMAIL_MAX },
	{ PROFILE, "email", EMAIL_MAX },
	{ AUTH, "chatgpt_account_id", ID_ACCOUNT_MAX },
	{ AUTH, "chatgpt_plan_type", WORD_MAX },
	{ AUTH, "chatgpt_user_id", WORD_MAX },
	{ AUTH, "user_id", WORD_MAX },
	{ AUTH, "chatgpt_account_is_fedramp", 0 },
};

static bool is_plain(const json_t *j, size_t max)
{
	static const char chars[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:@+|/=";
	const char *s = json_string_value(j);
	const size_t n = s ? strspn(s, chars) : 0;

	return n && n <= max && n == json_string_length(j);
}

/* One claim that is fine, into to. */
static int keep(json_t *to, const char *object, const char *name, json_t *value)
{
	json_t *in = object ? json_object_get(to, object) : to;

	if (!in) {
		in = json_object();
		if (json_object_set_new(to, object, in) < 0)
			return -ENOMEM;
	}
	return json_object_set(in, name, value) < 0 ? -ENOMEM : 0;
}

static int keep_all(json_t *to, const json_t *from)
{
	size_t i;
	int r = 0;

	for (i = 0; i < ARRAY_SIZE(claims) && r == 0; i++) {
		const json_t *in =
			claims[i].object ? json_object_get(from, claims[i].object) : from;
		json_t *value = json_object_get(in, claims[i].name);

		if (claims[i].max ? is_plain(value, claims[i].max) : json_is_boolean(value))
			r = keep(to, claims[i].object, claims[i].name, value);
	}
	return r;
}

static int write_out(const json_t *kept, struct id_token *ret)
{
	const char *account = json_string_value(
		json_object_get(json_object_get(kept, AUTH), "chatgpt_account_id"));
	char text[CLAIMS_MAX], *p;
	size_t n = json_dumpb(kept, text, sizeof(text), JSON_COMPACT | JSON_SORT_KEYS);

	if (!n || n > sizeof(text))
		return -ENOMEM;
	memcpy(ret->stand_in, HEAD, sizeof(HEAD) - 1);
	p = base64_put(ret->stand_in + sizeof(HEAD) - 1, text, n, BASE64_URL);
	memcpy(p, TAIL, sizeof(TAIL));
	memset(ret->account, 0, sizeof(ret->account));
	if (account)
		memcpy(ret->account, account, strlen(account));
	return 0;
}

/* The middle one of three parts; NULL: they are not three. */
static const char *payload(const char *token, size_t n, size_t *ret_n)
{
	const char *end = token + n, *one = memchr(token, '.', n),
		   *two = one ? memchr(one + 1, '.', (size_t)(end - one - 1)) : NULL;

	if (!two || one == token || two == one + 1 || two == end - 1 ||
	    memchr(two + 1, '.', (size_t)(end - two - 1)))
		return NULL;
	*ret_n = (size_t)(two - one - 1);
	return one + 1;
}

int id_token_read(const char *token, size_t n, struct id_token *ret)
{
	struct buf text = BUF_INIT(ID_TOKEN_MAX);
	json_t *all = NULL, *kept = NULL;
	size_t len = 0;
	const char *p = n <= ID_TOKEN_MAX ? payload(token, n, &len) : NULL;
	int r = p ? decode(&text, p, len) : -EINVAL;

	if (r == 0)
		all = json_loadb((const char *)buf_data(&text), text.n, JSON_REJECT_DUPLICATES,
				 NULL);
	if (r == 0 && !json_is_object(all))
		r = -EINVAL;
	if (r == 0)
		kept = json_object();
	if (r == 0)
		r = kept ? keep_all(kept, all) : -ENOMEM;
	if (r == 0)
		r = write_out(kept, ret);
	json_decref(kept);
	json_decref(all);
	buf_done(&text);
	return r;
}
