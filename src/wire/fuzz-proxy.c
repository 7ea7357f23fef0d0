/* What bac-proxy says to its supervisor, and what it is told: any bytes. */
#include "wire/proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char from[] = "SMP";
	static uint8_t out[PROXY_MSG_MAX];
	struct proxy_msg m;

	for (size_t i = 0; i < 3; i++)
		for (size_t fds = 0; fds < 2; fds++)
			if (proxy_parse(&m, from[i], data, size, fds) == WIRE_OK &&
			    proxy_put(&m, out, sizeof(out)) != (ssize_t)size)
				abort();
	return 0;
}
