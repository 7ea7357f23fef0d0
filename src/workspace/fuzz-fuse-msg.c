/* Any bytes as one request: what is accepted lies within them. */
#include "base/check.h"
#include "workspace/fuse-msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void within(const uint8_t *own, size_t head, const void *at, size_t len)
{
	const uint8_t *q = at;

	check(q >= own && len <= head && q + len <= own + head);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	uint32_t op = 0;
	struct fuse_msg m;
	uint8_t *own;
	size_t head;

	if (n > FUSE_MSG_MAX)
		return 0;
	if (n >= 8)
		memcpy(&op, p + 4, 4);
	head = fuse_msg_head(op, n);
	check(head <= n);
	own = aligned_alloc(8, (head + 8) & ~(size_t)7);
	check(own);
	if (head)
		memcpy(own, p, head);
	if (fuse_msg_parse(&m, own, head, n) == FUSE_MSG_OK) {
		within(own, head, m.arg, m.arg_len);
		within(own, head, m.data, m.data_len);
		if (m.name)
			within(own, head, m.name, strlen(m.name) + 1);
		if (m.name2)
			within(own, head, m.name2, strlen(m.name2) + 1);
		check(!streq(m.op, "?") && m.h.len == n);
	}
	free(own);
	return 0;
}
