/* Credit: two ends of one channel never disagree, and nobody sends more than he may. */
#include "wire/flow.h"

#include "base/check.h"

static void edges(void)
{
	struct wire_flow f = wire_flow_init();

	check(f.may_send == WIRE_WINDOW && f.may_come == WIRE_WINDOW && !f.owed);
	check(!wire_flow_came(&f, WIRE_WINDOW + 1) && f.may_come == WIRE_WINDOW);
	check(!wire_flow_came(&f, UINT32_MAX));
	check(wire_flow_came(&f, 0));
	check(wire_flow_came(&f, WIRE_WINDOW) && f.may_come == 0);
	check(!wire_flow_came(&f, 1));

	check(!wire_flow_credit(&f, 1)); /* a window is the most */
	check(wire_flow_credit(&f, 0));
	f.may_send = 0;
	check(!wire_flow_credit(&f, WIRE_WINDOW + 1) && f.may_send == 0);
	check(!wire_flow_credit(&f, UINT32_MAX));
	check(wire_flow_credit(&f, WIRE_WINDOW) && f.may_send == WIRE_WINDOW);
	check(!wire_flow_credit(&f, 1));
}

static void gives_back_in_quarters(void)
{
	struct wire_flow f = wire_flow_init();

	check(wire_flow_passed(&f, 0, true) == 0);
	check(wire_flow_came(&f, WIRE_WINDOW));
	check(wire_flow_passed(&f, WIRE_WINDOW / 4 - 1, false) == 0);
	check(f.owed == WIRE_WINDOW / 4 - 1 && f.may_come == 0);
	check(wire_flow_passed(&f, 1, false) == WIRE_WINDOW / 4);
	check(f.owed == 0 && f.may_come == WIRE_WINDOW / 4);
	check(wire_flow_passed(&f, 1, true) == 1);
	check(wire_flow_passed(&f, 0, true) == 0);
	check(wire_flow_passed(&f, WIRE_WINDOW - WIRE_WINDOW / 4 - 1, false) ==
	      WIRE_WINDOW - WIRE_WINDOW / 4 - 1);
	check(f.may_come == WIRE_WINDOW);
}

/* A sender that always sends all it may, and a receiver that passes on odd pieces. */
static void conversation(void)
{
	struct wire_flow a = wire_flow_init(), b = wire_flow_init();
	uint32_t held = 0, seed = 1, n, credit;
	uint64_t total = 0;
	int i;

	for (i = 0; i < 100000; i++) {
		seed = seed * 1664525 + 1013904223;
		n = MIN(a.may_send, (seed >> 8) % 40000);
		a.may_send -= n;
		check(wire_flow_came(&b, n));
		held += n;
		total += n;
		n = MIN(held, (seed >> 16) % 30000);
		held -= n;
		credit = wire_flow_passed(&b, n, false);
		check(wire_flow_credit(&a, credit));
		check(held + b.owed + b.may_come == WIRE_WINDOW); /* nothing is lost */
		check(a.may_send == b.may_come);
	}
	check(total > 100 * (uint64_t)WIRE_WINDOW);
}

int main(void)
{
	edges();
	gives_back_in_quarters();
	conversation();
	return 0;
}
