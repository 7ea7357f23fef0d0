/* Orders: what is put comes out, at the limits too; anything else is refused. */
#include "wire/order.h"

#include "base/check.h"

static char longest[WIRE_PATH_MAX + 2];

static struct wire_order sample(void)
{
	struct wire_order m = { 0 };
	uint64_t v = 1;

#define X(n) m.n = #n " text";
	ORDER_TEXTS(X)
#undef X
#define X(n) m.n = UINT64_MAX - v++;
	ORDER_NUMBERS(X)
#undef X
	return m;
}

static void same(const struct wire_order *a, const struct wire_order *b)
{
	uint32_t i;

#define X(n) check(streq(a->n, b->n));
	ORDER_TEXTS(X)
#undef X
#define X(n) check(a->n == b->n);
	ORDER_NUMBERS(X)
#undef X
	check(a->n_qemu_files == b->n_qemu_files);
	for (i = 0; i < a->n_qemu_files; i++)
		check(streq(a->qemu_files[i], b->qemu_files[i]));
	check(!b->qemu_files[i]);
}

static void round_trip(const struct wire_order *m)
{
	struct buf b = BUF_INIT(ORDER_MAX);
	struct wire_order back;

	check(wire_order_put(&b, m) == 0);
	check(wire_order_parse(&back, buf_data(&b), b.n) == WIRE_OK);
	same(m, &back);
	wire_order_done(&back);
	check(!back.qemu_files);
	buf_done(&b);
}

static void lists(void)
{
	const char *files[ORDER_LIST_MAX + 1];
	struct wire_order m = sample();
	struct buf b = BUF_INIT(2 * ORDER_MAX);
	uint32_t i;

	for (i = 0; i <= ORDER_LIST_MAX; i++)
		files[i] = "/usr/lib/x86_64-linux-gnu/libglib-2.0.so.0";
	m.qemu_files = files;
	round_trip(&m);
	m.n_qemu_files = 1;
	round_trip(&m);
	m.n_qemu_files = ORDER_LIST_MAX;
	round_trip(&m);
	m.n_qemu_files = ORDER_LIST_MAX + 1;
	check(wire_order_put(&b, &m) == -ENOBUFS && !b.n);
	buf_done(&b);
}

static void limits(void)
{
	struct wire_order m = sample(), back;
	struct buf b = BUF_INIT(2 * ORDER_MAX), tight;
	const char *files[32];
	size_t n;

	longest[WIRE_PATH_MAX] = '\0';
	m.cmdline = longest;
	round_trip(&m);
	longest[WIRE_PATH_MAX] = 'x';
	check(wire_order_put(&b, &m) == -ENOBUFS && !b.n);
	longest[WIRE_PATH_MAX] = '\0';

	/* all of ORDER_MAX is used, and not a byte more */
	for (n = 0; n < 32; n++)
		files[n] = longest;
	m.qemu_files = files;
	m.n_qemu_files = 32;
	check(wire_order_put(&b, &m) == -ENOBUFS && !b.n);
	m.n_qemu_files = 30;
	check(wire_order_put(&b, &m) == 0);
	n = b.n;
	m.n_qemu_files = 31;
	files[30] = longest + WIRE_PATH_MAX - (ORDER_MAX - n - 5);
	check(ORDER_MAX - n - 5 <= WIRE_PATH_MAX);
	buf_done(&b);
	check(wire_order_put(&b, &m) == 0 && b.n == ORDER_MAX);
	check(wire_order_parse(&back, b.p, b.n) == WIRE_OK);
	wire_order_done(&back);
	check(buf_add(&b, "", 1) == 0);
	check(wire_order_parse(&back, b.p, b.n) == WIRE_E_TOO_LARGE);
	files[30]--;
	buf_done(&b);
	check(wire_order_put(&b, &m) == -ENOBUFS && !b.n);

	/* into a buffer that is just large enough */
	m = sample();
	check(wire_order_put(&b, &m) == 0);
	buf_init(&tight, b.n);
	check(wire_order_put(&tight, &m) == 0);
	buf_done(&tight);
	buf_init(&tight, b.n - 1);
	check(wire_order_put(&tight, &m) == -ENOBUFS && !tight.n);
	buf_done(&tight);
	buf_done(&b);
}

/* Cut, lengthened and bent at every byte: never a crash, and mostly a refusal. */
static void damaged(void)
{
	const char *files[] = { "/a", "/b" };
	struct wire_order m = sample(), back = { .id = "untouched" };
	struct buf b = BUF_INIT(ORDER_MAX);
	size_t n;

	m.qemu_files = files;
	m.n_qemu_files = 2;
	check(wire_order_put(&b, &m) == 0);
	for (n = 0; n < b.n; n++) {
		_free_ uint8_t *p = malloc(n + !n);

		check(p);
		memcpy(p, b.p, n);
		check(wire_order_parse(&back, p, n) == WIRE_E_MALFORMED);
		check(streq(back.id, "untouched") && !back.qemu_files);
	}
	for (n = 0; n < b.n; n++) {
		b.p[n] ^= 0x80;
		if (wire_order_parse(&back, b.p, b.n) == WIRE_OK)
			wire_order_done(&back);
		b.p[n] ^= 0x80;
	}
	b.p[3] ^= 1;
	check(wire_order_parse(&back, b.p, b.n) == WIRE_E_MALFORMED); /* the magic */
	b.p[3] ^= 1;
	check(buf_add(&b, "", 1) == 0);
	check(wire_order_parse(&back, b.p, b.n) == WIRE_E_MALFORMED); /* a byte over */
	buf_done(&b);
}

int main(void)
{
	memset(longest, 'x', sizeof(longest) - 1);
	round_trip(&(struct wire_order) {
#define X(n) .n = "",
		ORDER_TEXTS(X)
#undef X
	});
	lists();
	limits();
	damaged();
	return 0;
}
