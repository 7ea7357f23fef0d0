/* QEMU's side of the conversation, in any bytes. */
#include "vm/qmp.h"

#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf in = BUF_INIT(2 * QMP_LINE_MAX);
	enum qmp_event ev = QMP_NOTHING;
	char text[128] = "";
	size_t before;
	int r = 1;

	if (size > in.max || buf_add(&in, data, size) < 0)
		return 0;
	while (r > 0) {
		before = in.n;
		r = qmp_next(&in, &ev, text, sizeof(text));
		check(r <= 0 || in.n < before);
		check(ev <= QMP_ERROR && strlen(text) < sizeof(text));
	}
	check(r == 0 || r == -EPROTO);
	buf_done(&in);
	return 0;
}
