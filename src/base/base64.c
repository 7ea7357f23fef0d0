#include "base/base64.h"

static const char digits[][65] = {
	[BASE64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
	[BASE64_URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

char *base64_put(char *to, const void *p, size_t n, enum base64_kind kind)
{
	const uint8_t *from = p;

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)from[i] << 16 |
			     (i + 1 < n ? (uint32_t)from[i + 1] << 8 : 0) |
			     (i + 2 < n ? from[i + 2] : 0);

		for (size_t k = 0; k < 4; k++)
			if (i + k <= n)
				*to++ = digits[kind][v >> (18 - 6 * k) & 63];
			else if (kind == BASE64)
				*to++ = '=';
	}
	return to;
}

int base64_get(uint8_t *to, const char *p, size_t n, enum base64_kind kind, size_t *ret_n)
{
	uint32_t bits = 0;
	unsigned have = 0;
	size_t len = 0;

	while (kind == BASE64 && n && p[n - 1] == '=')
		n--;
	if (n % 4 == 1)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		const char *at = p[i] ? strchr(digits[kind], p[i]) : NULL;

		if (!at)
			return -EINVAL;
		bits = bits << 6 | (uint32_t)(at - digits[kind]);
		have += 6;
		if (have >= 8) {
			have -= 8;
			to[len++] = (uint8_t)(bits >> have);
		}
	}
	*ret_n = len;
	return 0;
}
