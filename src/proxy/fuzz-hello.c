/* Any bytes as a hello: every prefix says MORE, or what the whole says. */
#include "base/check.h"
#include "proxy/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct hello all = { 0 }, part = { 0 };
	enum hello_result res = hello_parse(&all, p, n), first = HELLO_MORE;
	const size_t step = n > 2000 ? n / 97 : 1;

	check(strnlen(all.sni, sizeof(all.sni)) < sizeof(all.sni));
	check(strnlen(all.alpn, sizeof(all.alpn)) < sizeof(all.alpn));
	check(!all.sni_bad || (all.has_sni && !all.sni[0]));
	for (size_t cut = 0; cut < n && first == HELLO_MORE; cut += step) {
		memset(&part, 0, sizeof(part));
		first = hello_parse(&part, p, cut);
	}
	check(first == HELLO_MORE || first == res);
	if (first == HELLO_OK)
		check(!memcmp(&part, &all, sizeof(all)));
	return 0;
}
