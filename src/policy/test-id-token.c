/* What stands for an id_token: which claims are in it, and what is none. */
#include <stdio.h>

#include "base/check.h"
#include "policy/id-token.h"

#define HEAD   "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0."
#define TAIL   ".not-signed-proxy-managed"
#define SIGNED ".c2lnbmF0dXJlLW9mLXRoZS1pc3N1ZXI"

#define AUTH "https://api.openai.com/auth"

enum { TOKEN_MAX = 4 * ID_TOKEN_MAX };

/* head, these claims as base64url, tail */
static size_t token(char *to, const char *head, const char *text, const char *tail)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	const size_t n = strlen(text);
	const uint8_t *p = (const uint8_t *)text;
	size_t len = strlen(head), i, bit;
	unsigned v;

	memcpy(to, head, len);
	for (bit = 0; bit < 8 * n; bit += 6) {
		i = bit / 8;
		v = (unsigned)p[i] << 8 | (i + 1 < n ? p[i + 1] : 0);
		to[len++] = letters[v >> (10 - bit % 8) & 63];
	}
	memcpy(to + len, tail, strlen(tail) + 1);
	return len + strlen(tail);
}

/* What an issuer has signed has that stand-in; want NULL: it is none. */
static void becomes(const char *claims, const char *want, const char *account)
{
	static char given[TOKEN_MAX], wanted[TOKEN_MAX];
	struct id_token t = { 0 }, again = { 0 };
	size_t n = token(given, "eyJhbGciOiJSUzI1NiJ9.", claims, SIGNED);
	int r = id_token_read(given, n, &t);

	(void)fprintf(stderr, "%.200s\n", claims);
	if (!want) {
		check(r == -EINVAL && !t.stand_in[0]);
		return;
	}
	(void)token(wanted, HEAD, want, TAIL);
	check(r == 0 && streq(t.stand_in, wanted) && streq(t.account, account));
	check(!strstr(t.stand_in, SIGNED));
	check(id_token_read(t.stand_in, strlen(t.stand_in), &again) == 0);
	check(streq(again.stand_in, wanted) && streq(again.account, account));
}

static void claims(void)
{
	becomes("{\"email\":\"a@b.example\",\"sub\":\"auth0|1\",\"exp\":5,\"at_hash\":\"x\",\"" AUTH
		"\":{\"chatgpt_user_id\":\"user-1\",\"chatgpt_plan_type\":\"plus\",\"chatgpt_"
		"account_id\":"
		"\"0-1\",\"organizations\":[{\"id\":\"org-1\"}],\"chatgpt_account_is_fedramp\":"
		"false}}",
		"{\"email\":\"a@b.example\",\"" AUTH
		"\":{\"chatgpt_account_id\":\"0-1\",\"chatgpt_account_is_fedramp\":false,"
		"\"chatgpt_plan_type\":\"plus\",\"chatgpt_user_id\":\"user-1\"}}",
		"0-1");
	becomes("{\"https://api.openai.com/profile\":{\"email\":\"a@b.example\",\"x\":1},\"" AUTH
		"\":{\"user_id\":\"auth0|1\"}}",
		"{\"" AUTH "\":{\"user_id\":\"auth0|1\"},"
		"\"https://api.openai.com/profile\":{\"email\":\"a@b.example\"}}",
		"");
	becomes("{}", "{}", "");
	becomes("{\"email\":5,\"" AUTH "\":[1]}", "{}", "");
	becomes("{\"email\":\"a b\"}", "{}", "");
	becomes("{\"email\":\"\\\"\"}", "{}", "");
	becomes("{\"email\":\"\"}", "{}", "");
	becomes("{\"email\":\"\303\251@b.example\"}", "{}", "");
	becomes("{\"" AUTH "\":{\"chatgpt_account_id\":\"a\\nb\"}}", "{}", "");
	becomes("{\"" AUTH "\":{\"chatgpt_account_is_fedramp\":\"x\"}}", "{}", "");
	becomes("{\"a\":1,\"a\":2}", NULL, NULL);
	becomes("{\"a\":\"\\u0000\"}", NULL, NULL);
	becomes("{\"a\":\"\xff\"}", NULL, NULL);
	becomes("[]", NULL, NULL);
	becomes("{", NULL, NULL);
	becomes("{} {}", NULL, NULL);
}

/* All claims as long as they may be, and one byte more. */
static void edges(void)
{
	static char text[2048];
	char email[256], account[129], word[97];
	struct id_token t;
	size_t more;

	for (more = 0; more < 2; more++) {
		memset(email, 'e', sizeof(email));
		memset(account, 'a', sizeof(account));
		memset(word, 'w', sizeof(word));
		email[254 + more] = account[127 + more] = word[95 + more] = '\0';
		(void)snprintf(text, sizeof(text),
			       "{\"email\":\"%s\",\"" AUTH "\":{\"chatgpt_account_id\":\"%s\","
			       "\"chatgpt_account_is_fedramp\":false,\"chatgpt_plan_type\":\"%s\","
			       "\"chatgpt_user_id\":\"%s\",\"user_id\":\"%s\"},"
			       "\"https://api.openai.com/profile\":{\"email\":\"%s\"}}",
			       email, account, word, word, word, email);
		becomes(text, more ? "{\"" AUTH "\":{\"chatgpt_account_is_fedramp\":false}}" : text,
			more ? "" : account);
	}
	check(id_token_read(text, 0, &t) == -EINVAL);
}

static void forms(void)
{
	static const char *const none[] = {
		"",          ".",        "..",      "...",
		"a.e30",     ".e30.s",   "a..s",    "a.e30.",
		"a.e30.s.t", "a.e",      "a.e3.s",  "a.!.s",
		"e30",       "a.e30=.s", "a.e+0.s", "openai-oat-proxy-managed",
	};
	static char large[ID_TOKEN_MAX + 1];
	struct id_token t = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(none); i++)
		check(id_token_read(none[i], strlen(none[i]), &t) == -EINVAL && !t.stand_in[0]);
	check(id_token_read("a.e30.s", 7, &t) == 0 && streq(t.stand_in, HEAD "e30" TAIL));
	memset(large, 's', sizeof(large));
	memcpy(large, "a.e30.", 6);
	check(id_token_read(large, ID_TOKEN_MAX, &t) == 0);
	check(id_token_read(large, ID_TOKEN_MAX + 1, &t) == -EINVAL);
	check(id_token_read("a.e30.s\0x", 9, &t) == 0);
}

int main(void)
{
	claims();
	edges();
	forms();
	return 0;
}
