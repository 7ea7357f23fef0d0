/* Any bytes as vhost-user messages: header and payload, with the number of descriptors in a byte before each. */
#include "base/check.h"
#include "base/rdwr.h"
#include "workspace/vhost-msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void regions(const struct vhost_msg *m, size_t n_fds)
{
	check(m->n_regions <= VHOST_REGIONS_MAX && m->n_regions == n_fds);
	for (uint32_t i = 0; i < m->n_regions; i++) {
		const struct vhost_region *g = &m->regions[i];

		check(g->size && g->guest + g->size >= g->size && g->user + g->size >= g->size &&
		      g->offset + g->size >= g->size);
	}
}

static void one(struct rd *r)
{
	const size_t n_fds = rd_u8(r);
	const uint8_t *head = rd_take(r, VHOST_HEADER), *body;
	uint8_t out[VHOST_REPLY_MAX];
	_free_ uint8_t *exact = NULL;
	struct vhost_msg m;

	if (!head || vhost_msg_head(&m, head) < 0) {
		r->bad = true;
		return;
	}
	check(m.size <= VHOST_PAYLOAD_MAX && !streq(vhost_msg_name(m.request), "?"));
	body = rd_take(r, m.size);
	if (!body)
		return;
	exact = malloc(m.size + !m.size);
	check(exact);
	memcpy(exact, body, m.size);
	if (vhost_msg_body(&m, exact, n_fds) < 0) {
		r->bad = true;
		return;
	}
	check(m.index < VHOST_QUEUES);
	regions(&m, m.n_regions ? n_fds : 0);
	check(vhost_msg_reply(out, &m, 1) == VHOST_REPLY_MAX);
	check(n_fds <= VHOST_FDS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct rd r = rd_init(p, n);

	while (!r.bad && r.n)
		one(&r);
	return 0;
}
