/* Frames: every type from every side, at the edges of its limits. */
#include "wire/frame.h"

#include "base/check.h"

#define X(name, num, from, stream, min, max, more) { #name, num, from, stream, min, max, more },
static const struct type {
	const char *name;
	uint8_t num;
	unsigned from;
	bool stream;
	uint32_t min, max;
	bool more;
} types[] = { WIRE_TYPES(X) };
#undef X

static const enum wire_from sides[] = { FROM_GUEST, FROM_HOST, FROM_CLIENT, FROM_DOOR };

/* One frame of len zeros, parsed from bytes of that very length. */
static int parse(struct wire_frame *f, enum wire_from from, uint32_t stream, uint8_t type,
		 uint8_t chan, uint16_t flags, uint32_t len)
{
	uint8_t *p = calloc(1, WIRE_HEADER + (size_t)len);
	size_t used = 0;
	int ans;

	check(p);
	wire_header_put(p, stream, type, chan, flags, len);
	ans = wire_frame_parse(f, &used, from, p, WIRE_HEADER + (size_t)len);
	check(used == (ans == WIRE_OK ? WIRE_HEADER + len : 0));
	if (ans == WIRE_OK)
		check(f->stream == stream && f->type == type && f->chan == chan &&
		      f->flags == flags && f->len == len && f->data == p + WIRE_HEADER);
	free(p);
	return ans;
}

static void each_type(const struct type *t)
{
	const uint32_t stream = t->stream ? 77 : 0;
	const uint8_t chans =
		streq(t->name, "DATA") || streq(t->name, "EOF") || streq(t->name, "CREDIT");
	struct wire_frame f;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sides); i++) {
		enum wire_from from = sides[i];
		bool may = t->from & from;

		check(parse(&f, from, stream, t->num, 0, 0, t->min) ==
		      (may ? WIRE_OK : WIRE_E_MALFORMED));
		if (!may)
			continue;
		check(parse(&f, from, stream, t->num, 0, 0, t->max) == WIRE_OK);
		check(parse(&f, from, stream, t->num, 0, 0, t->max + 1) == WIRE_E_TOO_LARGE);
		if (t->min)
			check(parse(&f, from, stream, t->num, 0, 0, t->min - 1) ==
			      WIRE_E_MALFORMED);
		check(parse(&f, from, !stream, t->num, 0, 0, t->min) == WIRE_E_MALFORMED);
		check(parse(&f, from, stream, t->num, 1, 0, t->min) ==
		      (chans ? WIRE_OK : WIRE_E_MALFORMED));
		check(parse(&f, from, stream, t->num, 2, 0, t->min) ==
		      (chans ? WIRE_OK : WIRE_E_MALFORMED));
		check(parse(&f, from, stream, t->num, 3, 0, t->min) == WIRE_E_MALFORMED);
		check(parse(&f, from, stream, t->num, 0, WIRE_MORE, t->min) ==
		      (t->more ? WIRE_OK : WIRE_E_MALFORMED));
		check(parse(&f, from, stream, t->num, 0, 2, t->min) == WIRE_E_MALFORMED);
		check(parse(&f, from, stream, t->num, 0, 0x8001, t->min) == WIRE_E_MALFORMED);
	}
	check(streq(wire_type_name(t->num), t->name));
	check(t->max <= WIRE_FRAME_MAX && t->min <= t->max);
}

static void unknown_types(void)
{
	struct wire_frame f;
	unsigned n, i, known = 0;

	for (n = 0; n < 256; n++) {
		for (i = 0; i < ARRAY_SIZE(types) && types[i].num != n; i++)
			;
		if (i < ARRAY_SIZE(types)) {
			known++;
			continue;
		}
		check(streq(wire_type_name((uint8_t)n), "?"));
		for (i = 0; i < ARRAY_SIZE(sides); i++) {
			check(parse(&f, sides[i], 0, (uint8_t)n, 0, 0, 0) == WIRE_E_MALFORMED);
			check(parse(&f, sides[i], 1, (uint8_t)n, 0, 0, 8) == WIRE_E_MALFORMED);
		}
	}
	check(known == ARRAY_SIZE(types)); /* no number is given twice */
}

/* Whatever is missing at the end, the answer is to wait; but a bad header is bad at once. */
static void in_pieces(void)
{
	struct wire_frame f = { .stream = 1 };
	struct buf b = BUF_INIT(4096);
	uint8_t bad[WIRE_HEADER];
	size_t n, used = 99;

	check(wire_frame_add(&b, 5, WIRE_DATA, 2, "hello", 5) == 0);
	check(wire_frame_add(&b, 5, WIRE_EOF, 2, NULL, 0) == 0);
	for (n = 0; n < WIRE_HEADER + 5; n++) {
		_free_ uint8_t *p = malloc(n + !n);

		check(p);
		memcpy(p, b.p, n);
		check(wire_frame_parse(&f, &used, FROM_GUEST, p, n) == WIRE_AGAIN);
		check(used == 99 && f.stream == 1);
	}
	check(wire_frame_parse(&f, &used, FROM_GUEST, NULL, 0) == WIRE_AGAIN);
	check(wire_frame_parse(&f, &used, FROM_GUEST, b.p, b.n) == WIRE_OK);
	check(used == WIRE_HEADER + 5 && f.type == WIRE_DATA && f.chan == 2 && f.len == 5);
	check(!memcmp(f.data, "hello", 5));
	buf_consume(&b, used);
	check(wire_frame_parse(&f, &used, FROM_GUEST, buf_data(&b), b.n) == WIRE_OK);
	check(used == WIRE_HEADER && f.type == WIRE_EOF && f.len == 0);
	buf_done(&b);

	wire_header_put(bad, 5, WIRE_DATA, 0, 0, WIRE_FRAME_MAX + 1);
	check(wire_frame_parse(&f, &used, FROM_HOST, bad, sizeof(bad)) == WIRE_E_TOO_LARGE);
	wire_header_put(bad, 5, WIRE_DATA, 0, 0, UINT32_MAX);
	check(wire_frame_parse(&f, &used, FROM_HOST, bad, sizeof(bad)) == WIRE_E_TOO_LARGE);
}

static void frames_out(void)
{
	static uint8_t data[WIRE_FRAME_MAX + 1];
	struct buf b = BUF_INIT(WIRE_HEADER + WIRE_FRAME_MAX);

	check(wire_frame_add(&b, 1, WIRE_DATA, 0, data, WIRE_FRAME_MAX + 1) == -ENOBUFS && !b.n);
	check(wire_frame_add(&b, 1, WIRE_DATA, 0, data, WIRE_FRAME_MAX) == 0);
	check(b.n == WIRE_HEADER + WIRE_FRAME_MAX);
	check(wire_frame_add(&b, 1, WIRE_EOF, 0, NULL, 0) == -ENOBUFS);
	buf_done(&b);
	buf_init(&b, WIRE_HEADER + 4);
	check(wire_frame_add(&b, 1, WIRE_DATA, 0, data, 5) == -ENOBUFS && !b.n);
	check(wire_frame_add(&b, 1, WIRE_DATA, 0, data, SIZE_MAX) == -ENOBUFS && !b.n);
	buf_done(&b);
}

/* A message of any length comes out as it went in, with MORE on all frames but the last. */
static void message(size_t len)
{
	const size_t frames = len ? (len + WIRE_FRAME_MAX - 1) / WIRE_FRAME_MAX : 1;
	struct buf out = BUF_INIT(len + frames * WIRE_HEADER), in = BUF_INIT(WIRE_EXEC_MAX);
	_free_ uint8_t *data = malloc(len + !len);
	struct wire_frame f = { .flags = WIRE_MORE };
	size_t i, used, n = 0;

	check(data);
	for (i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 31 >> 3);
	check(wire_message_add(&out, 9, WIRE_EXEC, data, len) == 0);
	check(buf_space(&out) == 0);
	for (; out.n; n++) {
		check(f.flags == WIRE_MORE);
		check(wire_frame_parse(&f, &used, FROM_CLIENT, buf_data(&out), out.n) == WIRE_OK);
		check(f.stream == 9 && f.type == WIRE_EXEC);
		check(buf_add(&in, f.data, f.len) == 0);
		buf_consume(&out, used);
	}
	check(f.flags == 0 && n == frames && in.n == len && !memcmp(in.p + in.off, data, len));
	buf_done(&in);
	buf_done(&out);

	buf_init(&out, len + frames * WIRE_HEADER - 1);
	check(wire_message_add(&out, 9, WIRE_EXEC, data, len) == -ENOBUFS && !out.n);
	buf_done(&out);
}

static void messages(void)
{
	static const size_t lens[] = { 0,
				       1,
				       WIRE_FRAME_MAX - 1,
				       WIRE_FRAME_MAX,
				       WIRE_FRAME_MAX + 1,
				       3 * WIRE_FRAME_MAX,
				       WIRE_EXEC_MAX };
	struct buf out = BUF_INIT(SIZE_MAX);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lens); i++)
		message(lens[i]);
	check(wire_message_add(&out, 9, WIRE_EXEC, "", WIRE_EXEC_MAX + 1) == -ENOBUFS);
}

int main(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		each_type(&types[i]);
	unknown_types();
	in_pieces();
	frames_out();
	messages();
	return 0;
}
