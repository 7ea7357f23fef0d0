/* An EXEC that is accepted says the same when it is written again. */
#include "base/check.h"
#include "wire/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct buf out = BUF_INIT(WIRE_EXEC_MAX);
	struct wire_exec m;

	if (wire_exec_parse(&m, p, n) != WIRE_OK)
		return 0;
	check(m.argc >= 1 && m.argc <= WIRE_ARGS_MAX && m.envc <= WIRE_ENV_MAX);
	check(!m.argv[m.argc] && !m.env[m.envc]);
	check(wire_exec_put(&out, &m) == 0);
	check(out.n == n && !memcmp(buf_data(&out), p, n));
	wire_exec_done(&m);
	buf_done(&out);
	return 0;
}
