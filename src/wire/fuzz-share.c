/* Any bytes as a message from either side: what is taken can be written again, byte by byte. The first byte
 * is the number of descriptors. */
#include "base/check.h"
#include "wire/share.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static struct share_msg m;
static uint8_t again[SHARE_MSG_MAX];

static void one(enum share_from from, const uint8_t *p, size_t n, size_t fds)
{
	ssize_t len;

	if (share_parse(&m, from, p, n, fds) != WIRE_OK)
		return;
	len = share_put(&m, again, sizeof(again));
	check(len >= 0 && (size_t)len == n && !memcmp(again, p, n));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (!n)
		return 0;
	one(FROM_SUPERVISOR, p + 1, n - 1, p[0]);
	one(FROM_WORKSPACE, p + 1, n - 1, p[0]);
	return 0;
}
