/* Reader and writer: the first failure stays, and nothing is read or written beyond the end. */
#include "base/rdwr.h"

#include "base/check.h"

static void round_trip(void)
{
	uint8_t b[64];
	struct wr w = wr_init(b, sizeof(b));
	struct rd r;

	wr_u8(&w, 0xfe);
	wr_be16(&w, 0x1234);
	wr_be32(&w, 0xdeadbeef);
	wr_be64(&w, 0x0123456789abcdef);
	wr_str(&w, "text");
	wr_str(&w, "");
	wr_str(&w, NULL);
	wr_bytes(&w, "raw", 3);
	wr_bytes(&w, NULL, 0);
	check(wr_ok(&w) && w.n == 1 + 2 + 4 + 8 + 9 + 5 + 5 + 3);
	check(b[1] == 0x12 && b[3] == 0xde && b[7] == 0x01 && b[14] == 0xef);
	check(!memcmp(b + 15, "\0\0\0\4text\0", 9));

	r = rd_init(b, w.n);
	check(rd_u8(&r) == 0xfe && rd_be16(&r) == 0x1234 && rd_be32(&r) == 0xdeadbeef);
	check(rd_be64(&r) == 0x0123456789abcdef);
	check(streq(rd_str(&r, 4), "text") && streq(rd_str(&r, 0), "") && streq(rd_str(&r, 9), ""));
	check(!rd_done(&r)); /* bytes are left */
	check(!memcmp(rd_take(&r, 3), "raw", 3));
	check(rd_done(&r));
	check(rd_u8(&r) == 0 && !rd_done(&r));
}

/* Cut at every byte: never done, and once it has failed every read is zero. */
static void short_input(void)
{
	static const uint8_t b[15] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
	size_t n;

	for (n = 0; n < sizeof(b); n++) {
		_free_ uint8_t *p = malloc(n + !n);
		struct rd r;

		check(p);
		memcpy(p, b, n);
		r = rd_init(p, n);
		(void)rd_be64(&r);
		(void)rd_be32(&r);
		(void)rd_be16(&r);
		(void)rd_u8(&r);
		check(r.bad && !rd_done(&r));
		check(!rd_u8(&r) && !rd_be16(&r) && !rd_be32(&r) && !rd_be64(&r));
		check(!rd_take(&r, 0) && !rd_take(&r, 1) && streq(rd_str(&r, 10), ""));
	}
}

static bool takes(const char *bytes, size_t n, size_t max)
{
	_free_ uint8_t *p = malloc(n + !n);
	struct rd r;

	check(p);
	memcpy(p, bytes, n);
	r = rd_init(p, n);
	check(rd_str(&r, max)); /* never NULL */
	return rd_done(&r);
}

static void texts(void)
{
	check(takes("\0\0\0\0\0", 5, 0));
	check(takes("\0\0\0\3abc\0", 8, 3));
	check(!takes("\0\0\0\3abc\0", 8, 2));   /* longer than allowed */
	check(!takes("\0\0\0\3abc\1", 8, 3));   /* no NUL */
	check(!takes("\0\0\0\3a\0c\0", 8, 3));  /* a NUL inside */
	check(!takes("\0\0\0\3abc", 7, 3));     /* the NUL is missing */
	check(!takes("\0\0\0\3abc\0\0", 9, 3)); /* a byte over */
	check(!takes("\0\0\0", 3, 3));
	check(!takes("\377\377\377\377\0", 5, SIZE_MAX)); /* length + 1 would wrap in 32 bits */
	check(!takes("\377\377\377\376\0", 5, SIZE_MAX));
	check(!takes("\0\0\0\4abc\0", 8, SIZE_MAX));
}

static void full_writer(void)
{
	uint8_t b[16];
	struct wr w;
	size_t max;

	for (max = 0; max < 15; max++) {
		memset(b, 0xaa, sizeof(b));
		w = wr_init(b, max);
		wr_be64(&w, 0);
		wr_be32(&w, 0);
		wr_be16(&w, 0);
		wr_u8(&w, 0);
		check(!wr_ok(&w) && w.n <= max);
		check(b[max] == 0xaa);
		wr_bytes(&w, NULL, 0);
		wr_u8(&w, 0);
		check(!wr_room(&w, 0) && !wr_ok(&w));
	}
	w = wr_init(b, 8);
	wr_str(&w, "abc");
	check(wr_ok(&w) && w.n == 8);
	w = wr_init(b, 7);
	wr_str(&w, "abc");
	check(!wr_ok(&w));
	w = wr_init(b, 8);
	wr_u8(&w, 1);
	check(!wr_room(&w, SIZE_MAX)); /* compared by subtraction */
}

/* What a reader takes of it. */
static bool cut_to(const char *s, size_t max, const char *want)
{
	uint8_t b[64];
	struct wr w = wr_init(b, sizeof(b));
	struct rd r;

	wr_cut(&w, s, max);
	r = rd_init(b, w.n);
	return wr_ok(&w) && streq(rd_str(&r, max), want) && rd_done(&r);
}

static void limits(void)
{
	uint8_t b[16];
	struct wr w = wr_init(b, sizeof(b));

	wr_text(&w, "abc", 3);
	wr_text(&w, NULL, 0);
	check(wr_ok(&w) && w.n == 13);
	w = wr_init(b, sizeof(b));
	wr_text(&w, "abcd", 3);
	check(!wr_ok(&w));
	check(cut_to("abcd", 3, "abc") && cut_to("abc", 3, "abc") && cut_to(NULL, 3, "") &&
	      cut_to("abc", 0, ""));
	check(cut_to("a\303\251b", 2, "a") &&
	      cut_to("a\303\251b", 3, "a\303\251")); /* not in the middle of a character */
	check(cut_to("a\360\237\230\200", 4, "a") && cut_to("\360\237\230\200", 2, ""));
	check(cut_to("\200\200\200\200\200\200\200\200", 6,
		     "\200\200\200")); /* is none: little is lost */
}

int main(void)
{
	round_trip();
	short_input();
	texts();
	full_writer();
	limits();
	return 0;
}
