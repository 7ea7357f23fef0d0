/* The byte queue. */
#include "base/buf.h"

#include "base/check.h"

static void grows_to_its_maximum(void)
{
	struct buf b = BUF_INIT(1000);
	uint8_t src[1000];
	size_t i;

	for (i = 0; i < sizeof(src); i++)
		src[i] = (uint8_t)(i * 7);
	check(!buf_data(&b) && buf_space(&b) == 1000);
	check(buf_add(&b, NULL, 0) == 0);
	check(buf_add(&b, src, 999) == 0);
	check(buf_space(&b) == 1);
	check(buf_add(&b, src, 2) == -ENOBUFS && b.n == 999);
	check(!buf_room(&b, 2));
	check(buf_add(&b, src + 999, 1) == 0);
	check(buf_space(&b) == 0 && b.n == 1000);
	check(!memcmp(buf_data(&b), src, 1000));
	check(buf_add(&b, src, 1) == -ENOBUFS);
	buf_done(&b);
	check(b.max == 1000 && b.n == 0 && !b.p);
	check(buf_add(&b, src, 1) == 0); /* may be used again */
	buf_done(&b);
}

static void is_a_queue(void)
{
	struct buf b;
	uint8_t in = 0, out = 0;
	size_t i, k;

	buf_init(&b, 300);
	for (i = 0; i < 5000; i++) {
		for (k = 0; k < i % 23; k++)
			if (buf_add(&b, &in, 1) == 0)
				in++;
		for (k = 0; k < i % 19 && b.n; k++) {
			check(buf_data(&b)[0] == out++);
			buf_consume(&b, 1);
		}
	}
	while (b.n) {
		check(buf_data(&b)[0] == out++);
		buf_consume(&b, 1);
	}
	check(in == out);
	check(b.cap <= 512);
	buf_done(&b);
}

static void gives_memory_back(void)
{
	struct buf b = BUF_INIT(1 << 20);
	void *to;

	check(buf_room(&b, 65536));
	buf_added(&b, 65536);
	buf_consume(&b, 65536);
	check(b.cap == 65536); /* kept */
	to = buf_room(&b, 65537);
	check(to);
	memset(to, 1, 65537);
	buf_added(&b, 65537);
	buf_consume(&b, 65536);
	check(b.cap > 65536 && buf_data(&b)[0] == 1);
	buf_consume(&b, 1);
	check(b.cap == 0 && !b.p && b.max == 1 << 20);
	buf_done(&b);
}

static void prints(void)
{
	struct buf b = BUF_INIT(5);

	check(buf_printf(&b, "%s", "") == 0 && b.n == 0);
	check(buf_printf(&b, "%d", 12345) == 0 && b.n == 5); /* fills it: no room for a NUL */
	check(streq(buf_str(&b), "12345"));
	check(b.max == 5 && b.n == 5);
	check(buf_printf(&b, "6") == -ENOBUFS && b.n == 5);
	check(streq(buf_str(&b), "12345"));
	buf_consume(&b, 4);
	check(streq(buf_str(&b), "5"));
	check(buf_printf(&b, "%s", "abcde") == -ENOBUFS);
	check(buf_printf(&b, "%s", "abcd") == 0);
	check(streq(buf_str(&b), "5abcd"));
	buf_done(&b);
	check(streq(buf_str(&b), ""));
	buf_done(&b);
}

static void absurd_lengths(void)
{
	struct buf b = BUF_INIT(SIZE_MAX);

	check(buf_add(&b, "abc", 3) == 0);
	check(!buf_room(&b, SIZE_MAX - 3));
	check(!buf_room(&b, SIZE_MAX / 2));
	check(buf_add(&b, "d", SIZE_MAX - 1) == -ENOBUFS);
	check(streq(buf_str(&b), "abc"));
	buf_done(&b);
}

int main(void)
{
	grows_to_its_maximum();
	is_a_queue();
	gives_memory_back();
	prints();
	absurd_lengths();
	return 0;
}
