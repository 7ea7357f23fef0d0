/* Any text as an id_token: what is made of it is of known bytes and bounds, and what is made of that is the same. */
#include "base/check.h"
#include "policy/id-token.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
	struct id_token one = { 0 }, two = { 0 };
	int r = id_token_read((const char *)p, n, &one);

	check(r == 0 || r == -EINVAL);
	if (r < 0) {
		check(!one.stand_in[0] && !one.account[0]);
		return 0;
	}
	check(strlen(one.stand_in) <= ID_STAND_IN_MAX && strlen(one.account) <= ID_ACCOUNT_MAX);
	check(strspn(one.stand_in, letters) == strlen(one.stand_in));
	check(!strpbrk(one.account, "\"\\ "));
	check(id_token_read(one.stand_in, strlen(one.stand_in), &two) == 0);
	check(streq(one.stand_in, two.stand_in) && streq(one.account, two.account));
	return 0;
}
