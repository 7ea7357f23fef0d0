/* Any text as declarations and as approvals. */
#include "base/check.h"
#include "cli/approve.h"
#include "kit/declare.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct declarations d = { 0 };
	struct approvals a = { 0 };
	struct err e;
	size_t i;

	if (declare_parse("kit", "k", (const char *)p, n, &d, &e) == 0) {
		for (i = 0; i < d.n; i++)
			check(d.v[i].service && (d.v[i].n == 0 || d.v[i].v[0].resource));
		declare_done(&d);
	}
	if (approve_parse((const char *)p, n, &a, &e) == 0)
		approve_done(&a);
	return 0;
}
