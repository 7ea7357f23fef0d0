/* Whatever a program writes, its modes can be told and taken back. */
#include "base/check.h"
#include "base/term.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct buf out = BUF_INIT(TERM_TEXT_MAX);
	struct term t = { 0 };

	term_see(&t, p, n);
	check(term_put(&t, &out) == 0);
	buf_consume(&out, out.n);
	check(term_undo(&t, &out) == 0);
	buf_done(&out);
	(void)term_draws(&t);
	return 0;
}
