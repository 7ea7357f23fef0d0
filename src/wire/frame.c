/* Frames: checked against one table before anybody looks at the payload. */
#include "wire/frame.h"

struct info {
	const char *name;
	uint8_t from;
	uint8_t on_stream;
	uint8_t more;
	uint32_t min, max;
};

#define X(n, num, f, s, lo, hi, m) \
	[num] = { \
		.name = #n, .from = (f), .on_stream = (s), .more = (m), .min = (lo), .max = (hi) \
	},
static const struct info types[] = { WIRE_TYPES(X) };
#undef X

const char *wire_type_name(uint8_t type)
{
	return type < ARRAY_SIZE(types) && types[type].name ? types[type].name : "?";
}

static bool has_channel(uint8_t type)
{
	return type == WIRE_DATA || type == WIRE_EOF || type == WIRE_CREDIT;
}

static int check(const struct wire_frame *f, enum wire_from from)
{
	const struct info *t;

	if (f->type >= ARRAY_SIZE(types))
		return WIRE_E_MALFORMED;
	t = &types[f->type];
	if (!t->name || !(t->from & from))
		return WIRE_E_MALFORMED;
	if (t->on_stream != (f->stream != 0))
		return WIRE_E_MALFORMED;
	if (f->flags & ~WIRE_MORE || (f->flags && !t->more))
		return WIRE_E_MALFORMED;
	if (f->chan > (has_channel(f->type) ? 2 : 0))
		return WIRE_E_MALFORMED;
	if (f->len > t->max)
		return WIRE_E_TOO_LARGE;
	return f->len < t->min ? WIRE_E_MALFORMED : WIRE_OK;
}

int wire_frame_parse(struct wire_frame *ret, size_t *ret_used, enum wire_from from, const void *p,
		     size_t n)
{
	struct rd r = rd_init(p, n);
	struct wire_frame f = { 0 };
	int ans;

	if (n < WIRE_HEADER)
		return WIRE_AGAIN;
	f.len = rd_be32(&r);
	f.stream = rd_be32(&r);
	f.type = rd_u8(&r);
	f.chan = rd_u8(&r);
	f.flags = rd_be16(&r);
	ans = check(&f, from);
	if (ans != WIRE_OK)
		return ans;
	f.data = rd_take(&r, f.len);
	if (!f.data)
		return WIRE_AGAIN;

	*ret = f;
	*ret_used = WIRE_HEADER + (size_t)f.len;
	return WIRE_OK;
}

void wire_header_put(uint8_t dst[WIRE_HEADER], uint32_t stream, uint8_t type, uint8_t chan,
		     uint16_t flags, uint32_t len)
{
	struct wr w = wr_init(dst, WIRE_HEADER);

	wr_be32(&w, len);
	wr_be32(&w, stream);
	wr_u8(&w, type);
	wr_u8(&w, chan);
	wr_be16(&w, flags);
}

static void put(uint8_t *to, uint32_t stream, uint8_t type, uint8_t chan, uint16_t flags,
		const void *data, size_t len)
{
	wire_header_put(to, stream, type, chan, flags, (uint32_t)len);
	if (len)
		memcpy(to + WIRE_HEADER, data, len);
}

int wire_frame_add(struct buf *out, uint32_t stream, enum wire_type type, uint8_t chan,
		   const void *data, size_t len)
{
	uint8_t *to;

	if (len > WIRE_FRAME_MAX || len + WIRE_HEADER > buf_space(out))
		return -ENOBUFS;
	to = buf_room(out, WIRE_HEADER + len);
	if (!to)
		return -ENOMEM;
	put(to, stream, type, chan, 0, data, len);
	buf_added(out, WIRE_HEADER + len);
	return 0;
}

int wire_message_add(struct buf *out, uint32_t stream, enum wire_type type, const void *data,
		     size_t len)
{
	size_t frames = len ? (len + WIRE_FRAME_MAX - 1) / WIRE_FRAME_MAX : 1;
	const uint8_t *p = data;
	uint8_t *to;

	if (len > WIRE_EXEC_MAX || frames * WIRE_HEADER + len > buf_space(out))
		return -ENOBUFS;
	to = buf_room(out, frames * WIRE_HEADER + len);
	if (!to)
		return -ENOMEM;
	buf_added(out, frames * WIRE_HEADER + len);
	while (frames--) {
		size_t n = MIN(len, (size_t)WIRE_FRAME_MAX);

		put(to, stream, type, 0, frames ? WIRE_MORE : 0, p, n);
		to += WIRE_HEADER + n;
		p += n;
		len -= n;
	}
	return 0;
}
