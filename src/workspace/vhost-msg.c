/* vhost-user messages. What may come is one table; what is not in it is not spoken.
 *
 * Not spoken, and why: logging and in-flight regions are for migration and reconnection, which a sandbox
 * has not; the channel back to the front-end serves DAX only; CONFIG is not needed, since QEMU keeps
 * the configuration space of this device (tag, number of queues) itself. The front-end sends none of them
 * unless the feature was offered. */
#include "workspace/vhost-msg.h"

#include "base/rdwr.h"

enum { FLAG_VERSION = 3, VERSION = 1, FLAG_REPLY = 4, FLAG_NEED_REPLY = 8 };

/* In the u64 of a FILE: the queue, and "no descriptor comes with this". */
enum { FILE_INDEX = 0xff, FILE_NONE = 0x100 };

enum payload { PAYLOAD_NONE, PAYLOAD_U64, PAYLOAD_STATE, PAYLOAD_ADDR, PAYLOAD_FILE, PAYLOAD_MEM };

enum fds { FDS_NONE, FDS_FILE, FDS_REGION };

enum reply { REPLY_NONE, REPLY_U64, REPLY_STATE };

static const struct kind {
	uint8_t request;
	uint8_t payload;
	uint8_t fds;
	uint8_t reply;
	const char *name;
} kinds[] = {
#define X(name, num, payload, fds, reply) \
	{ num, PAYLOAD_##payload, FDS_##fds, REPLY_##reply, #name },
	VHOST_REQUESTS(X)
#undef X
};

/* The least and the most that a payload has. */
static const struct {
	uint32_t min, max;
} sizes[] = {
	[PAYLOAD_NONE] = { 0, 0 },  [PAYLOAD_U64] = { 8, 8 },
	[PAYLOAD_STATE] = { 8, 8 }, [PAYLOAD_ADDR] = { 40, 40 },
	[PAYLOAD_FILE] = { 8, 8 },  [PAYLOAD_MEM] = { 8 + 32, VHOST_PAYLOAD_MAX },
};

static const struct kind *kind_find(uint32_t request)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].request == request)
			return &kinds[i];
	return NULL;
}

static uint32_t native32(struct rd *r)
{
	const uint8_t *p = rd_take(r, sizeof(uint32_t));
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t native64(struct rd *r)
{
	const uint8_t *p = rd_take(r, sizeof(uint64_t));
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return v;
}

int vhost_msg_head(struct vhost_msg *ret, const uint8_t p[VHOST_HEADER])
{
	struct rd r = rd_init(p, VHOST_HEADER);
	uint32_t request = native32(&r), flags = native32(&r), size = native32(&r);
	const struct kind *k = kind_find(request);

	if (!k || (flags & FLAG_VERSION) != VERSION || (flags & ~(FLAG_VERSION | FLAG_NEED_REPLY)))
		return -EPROTO;
	if (size < sizes[k->payload].min || size > sizes[k->payload].max)
		return -EPROTO;
	*ret = (struct vhost_msg) { .request = k->request,
				    .need_reply = flags & FLAG_NEED_REPLY,
				    .size = size };
	return 0;
}

static void body_file(struct vhost_msg *m, struct rd *r, size_t n_fds)
{
	uint64_t v = native64(r);

	m->index = v & FILE_INDEX;
	m->has_fd = !(v & FILE_NONE);
	if ((v & ~(uint64_t)(FILE_INDEX | FILE_NONE)) || n_fds != m->has_fd)
		r->bad = true;
}

static void body_addr(struct vhost_msg *m, struct rd *r)
{
	m->index = native32(r);
	if (native32(r) != 0) /* flags: the only one is for logging */
		r->bad = true;
	m->desc = native64(r);
	m->used = native64(r);
	m->avail = native64(r);
	(void)native64(r); /* where writes would be logged */
}

/* No memory beyond the end of the number space, so that nobody after us need think of it. */
static bool region_wraps(const struct vhost_region *g)
{
	return g->size > UINT64_MAX - g->guest || g->size > UINT64_MAX - g->user ||
	       g->size > UINT64_MAX - g->offset;
}

static void body_mem(struct vhost_msg *m, struct rd *r, size_t n_fds)
{
	m->n_regions = native32(r);
	(void)native32(r); /* padding */
	if (m->n_regions < 1 || m->n_regions > VHOST_REGIONS_MAX || n_fds != m->n_regions) {
		r->bad = true;
		return;
	}
	for (uint32_t i = 0; i < m->n_regions; i++) {
		struct vhost_region *g = &m->regions[i];

		g->guest = native64(r);
		g->size = native64(r);
		g->user = native64(r);
		g->offset = native64(r);
		if (!g->size || region_wraps(g))
			r->bad = true;
	}
}

int vhost_msg_body(struct vhost_msg *m, const uint8_t *p, size_t n_fds)
{
	const struct kind *k = kind_find(m->request);
	struct rd r = rd_init(p, m->size);

	if (!k || (k->fds == FDS_NONE && n_fds))
		return -EPROTO;
	switch ((enum payload)k->payload) {
	case PAYLOAD_NONE:
		break;
	case PAYLOAD_U64:
		m->u64 = native64(&r);
		break;
	case PAYLOAD_STATE:
		m->index = native32(&r);
		m->num = native32(&r);
		break;
	case PAYLOAD_ADDR:
		body_addr(m, &r);
		break;
	case PAYLOAD_FILE:
		body_file(m, &r, n_fds);
		break;
	case PAYLOAD_MEM:
		body_mem(m, &r, n_fds);
		break;
	}
	return rd_done(&r) && m->index < VHOST_QUEUES ? 0 : -EPROTO;
}

bool vhost_msg_has_answer(const struct vhost_msg *m)
{
	const struct kind *k = kind_find(m->request);

	return k && k->reply != REPLY_NONE;
}

size_t vhost_msg_reply(uint8_t dst[VHOST_REPLY_MAX], const struct vhost_msg *m, uint64_t value)
{
	const struct kind *k = kind_find(m->request);
	const uint32_t head[3] = { m->request, VERSION | FLAG_REPLY, sizeof(uint64_t) };
	const uint32_t state[2] = { m->index, (uint32_t)value };
	struct wr w = wr_init(dst, VHOST_REPLY_MAX);

	wr_bytes(&w, head, sizeof(head));
	if (k && k->reply == REPLY_STATE)
		wr_bytes(&w, state, sizeof(state));
	else
		wr_bytes(&w, &value, sizeof(value));
	return w.n;
}

const char *vhost_msg_name(uint8_t request)
{
	const struct kind *k = kind_find(request);

	return k ? k->name : "?";
}
