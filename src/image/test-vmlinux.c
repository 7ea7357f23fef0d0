/* The payload of a bzImage: of one that we make, and each way in which it can be wrong. */
#include "base/check.h"
#include "image/vmlinux.h"

enum { SETUP = 1024, PLAIN = 256, N = SETUP + PLAIN + 4 };

/* A bzImage with one sector of setup. */
static void make(uint8_t *p)
{
	memset(p, 0, N);
	p[0x1f1] = 1;
	p[0x1fe] = 0x55;
	p[0x1ff] = 0xaa;
	memcpy(p + 0x202, "HdrS", 4);
	p[0x206] = 0x0f;
	p[0x207] = 0x02;
	p[0x24c] = (PLAIN + 4) & 255;
	p[0x24d] = (PLAIN + 4) >> 8;
}

static int run(const uint8_t *p, size_t n, struct err *e)
{
	const uint8_t *pay = NULL;
	size_t len = 0;
	int r = image_vmlinux_payload(p, n, &pay, &len, e);

	check(r < 0 || (pay == p + SETUP && len == PLAIN + 4));
	return r;
}

int main(void)
{
	static const struct {
		size_t at;
		uint8_t v;
		const char *why;
	} wrong[] = {
		{ 0x1fe, 0, "not a Linux kernel" },
		{ 0x202, 'X', "not a Linux kernel" },
		{ 0x207, 1, "older" },
		{ 0x24b, 0xff, "outside" },
		{ 0x24f, 0xff, "outside" },
		{ 0x1f1, 200, "outside" },
	};
	uint8_t p[N];
	struct err e;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		make(p);
		p[wrong[i].at] = wrong[i].v;
		check(run(p, N, &e) == -EINVAL);
		check(strstr(e.msg, wrong[i].why));
	}
	make(p);
	check(run(p, N, &e) == 0);
	for (i = 0; i < N; i += 97)
		check(run(p, i, &e) == -EINVAL);
	return 0;
}
