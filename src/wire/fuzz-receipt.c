/* Any bytes as a datagram of receipts: what is taken can be written again, byte by byte. The same bytes as an answer. */
#include "base/check.h"
#include "wire/frame.h"
#include "wire/receipt.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct buf again = BUF_INIT(RECEIPT_DATAGRAM_MAX);
	struct rd in = rd_init(p, MIN(n, (size_t)RECEIPT_DATAGRAM_MAX));
	uint8_t out[RECEIPT_ANSWER_MAX];
	struct receipt_answer a;
	struct receipt r;

	while (receipt_get(&in, &r) == WIRE_OK)
		check(receipt_put(&again, &r) == 0);
	check(again.n <= n && (!again.n || !memcmp(buf_data(&again), p, again.n)));
	buf_done(&again);
	if (receipt_answer_get(&a, p, n) == WIRE_OK)
		check(receipt_answer_put(&a, out) == n && !memcmp(out, p, n));
	return 0;
}
