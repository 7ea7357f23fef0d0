/* Orders that are accepted say the same when they are written again. */
#include "base/check.h"
#include "wire/order.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct buf out = BUF_INIT(ORDER_MAX);
	struct wire_order m;

	if (wire_order_parse(&m, p, n) != WIRE_OK)
		return 0;
	check(m.n_qemu_files <= ORDER_LIST_MAX && !m.qemu_files[m.n_qemu_files]);
	check(wire_order_put(&out, &m) == 0);
	check(out.n == n && !memcmp(buf_data(&out), p, n));
	wire_order_done(&m);
	buf_done(&out);
	return 0;
}
