/* The rate of the time stamp counter. An emulated guest reads the host's counter, and cannot always
 * measure how fast it runs (one boot of ten hung in that); so we measure it here and tell. */
#include <cpuid.h>
#include <time.h>
#include <x86intrin.h>

#include "vm/vm.h"

enum { TRIES = 32, KHZ_MIN = 100000, KHZ_MAX = 20000000 };

/* Does the counter run at one rate, whatever the processor does? */
static bool is_constant(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1U << 8);
}

/* A time and the counter's value at that time: the tightest of some pairs, so that being interrupted in
 * between does not count. */
static void sample(uint64_t *ns, uint64_t *ticks)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		struct timespec t;
		uint64_t a = __rdtsc(), b;

		(void)clock_gettime(CLOCK_MONOTONIC_RAW, &t);
		b = __rdtsc();
		if (b - a >= best)
			continue;
		best = b - a;
		*ticks = a + (b - a) / 2;
		*ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	}
}

uint64_t vm_tsc_khz(unsigned ms)
{
	struct timespec pause = { ms / 1000, (long)(ms % 1000) * 1000000 };
	uint64_t t0 = 0, t1 = 0, c0 = 0, c1 = 0, khz;

	if (!is_constant())
		return 0;
	sample(&t0, &c0);
	(void)nanosleep(&pause, NULL);
	sample(&t1, &c1);
	if (t1 <= t0 || c1 <= c0)
		return 0;
	khz = (uint64_t)((double)(c1 - c0) / (double)(t1 - t0) * 1e6 + 0.5);
	return khz >= KHZ_MIN && khz <= KHZ_MAX ? khz : 0;
}
