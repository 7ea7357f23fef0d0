/* The split virtqueue (VIRTIO 1.2, section 2.7), read from memory that its writer may change meanwhile.
 *
 * A descriptor is copied once and judged on the copy. The buffers that it names are translated at once, and
 * only the translation is kept. The order of things that the guest's side may reverse (a writable buffer
 * before a readable one), a table that has no whole number of entries, an index beyond the ring, a chain longer than it can
 * be (and so every loop), a buffer outside of the memory, a head that is still in use: each breaks the
 * ring, for good, until the driver starts it anew. There is no half trust in a ring.
 *
 * The two sides tell each other how far they are by indices that only grow (modulo 65536). We publish what
 * we wrote with a release store and read what the guest published with an acquire load; before we sleep, or
 * decide not to interrupt, a full fence orders our write before the read of the other's.
 *
 * The guest has a fence there as well, but QEMU before 8.0, where it emulates on one thread, leaves it out: the guest may look at our index
 * before its own is to be seen, and both wait for ever. What it wrote is seen in far less than a microsecond, so whoever would sleep or not
 * interrupt looks again after about that. Nobody waits for us then. */
#include "workspace/virtq.h"

#include <endian.h>
#include <linux/virtio_ring.h>

/* Offsets in the available and the used ring: flags, index, entries, then the event index. */
enum { RING_FLAGS = 0, RING_IDX = 2, RING_ENTRIES = 4, AVAIL_ENTRY = 2, USED_ENTRY = 8, EVENT = 2 };

enum { DESC = sizeof(struct vring_desc), ALIGN_DESC = 16, ALIGN_AVAIL = 2, ALIGN_USED = 4 };

/* Guest memory is read through here, once for each value. */
static uint16_t load16(const uint8_t *p)
{
	return le16toh(__atomic_load_n((const uint16_t *)(const void *)p, __ATOMIC_ACQUIRE));
}

static void store16(uint8_t *p, uint16_t v) /* NOLINT(readability-non-const-parameter): written */
{
	__atomic_store_n((uint16_t *)(void *)p, htole16(v), __ATOMIC_RELEASE);
}

/* A copy that the compiler cannot turn back into a second read. p need not be aligned. */
static struct vring_desc load_desc(const uint8_t *p)
{
	struct vring_desc d;

	memcpy(&d, p, sizeof(d));
	__asm__ volatile("" ::: "memory");
	d.addr = le64toh(d.addr);
	d.len = le32toh(d.len);
	d.flags = le16toh(d.flags);
	d.next = le16toh(d.next);
	return d;
}

static size_t event_offset(const struct virtq *v, size_t entry)
{
	return RING_ENTRIES + v->num * entry;
}

static int broken(struct virtq *v, const char *why)
{
	v->broken = why;
	return -EPROTO;
}

int virtq_move(struct virtq *v, const struct mem *m, const struct virtq_where *w)
{
	const size_t num = w->num;
	uint8_t *desc, *avail, *used;

	if (w->desc % ALIGN_DESC || w->avail % ALIGN_AVAIL || w->used % ALIGN_USED)
		return -EPROTO;
	desc = mem_at_user(m, w->desc, num * DESC);
	avail = mem_at_user(m, w->avail, RING_ENTRIES + num * AVAIL_ENTRY + EVENT);
	used = mem_at_user(m, w->used, RING_ENTRIES + num * USED_ENTRY + EVENT);
	/* a region may begin anywhere, so the addresses here are judged as well */
	if (!desc || !avail || !used || (uintptr_t)avail % ALIGN_AVAIL ||
	    (uintptr_t)used % ALIGN_USED)
		return -EPROTO;
	v->mem = m;
	v->desc = desc;
	v->avail = avail;
	v->used = used;
	return 0;
}

int virtq_open(struct virtq *ret, const struct mem *m, const struct virtq_where *w)
{
	struct virtq v = { .num = (uint16_t)w->num,
			   .event_idx = w->event_idx,
			   .indirect = w->indirect,
			   .last_avail = w->base };
	int r;

	if (w->num < 2 || w->num > VIRTQ_SIZE_MAX || (w->num & (w->num - 1)))
		return -EPROTO;
	r = virtq_move(&v, m, w);
	if (r < 0)
		return r;
	v.used_idx = load16(v.used + RING_IDX);
	*ret = v;
	return 0;
}

/* One buffer into the chain. A length of nothing is nothing. */
static int chain_add(struct virtq *v, struct virtq_chain *c, const struct vring_desc *d)
{
	const bool out = d->flags & VRING_DESC_F_WRITE;
	void *p;

	if (!out && c->n_out)
		return broken(v, "a buffer to read behind one to write");
	if (!d->len)
		return 0;
	if (c->n_in + c->n_out == VIRTQ_IOV_MAX)
		return broken(v, "too many buffers in a chain");
	p = mem_at_guest(v->mem, d->addr, d->len);
	if (!p)
		return broken(v, "a buffer outside of the memory");
	c->iov[c->n_in + c->n_out] = (struct iovec) { .iov_base = p, .iov_len = d->len };
	if (out)
		c->n_out++;
	else
		c->n_in++;
	return 0;
}

/* Follow a chain through a table of n entries. A chain that has more steps than there are entries has a
 * loop. *ret_table is set if the first descriptor leads to another table. */
static int chain_walk(struct virtq *v, struct virtq_chain *c, const uint8_t *table, uint32_t n,
		      uint32_t i, struct vring_desc *ret_table)
{
	for (uint32_t steps = 0; steps < n; steps++) {
		struct vring_desc d = load_desc(table + (size_t)i * DESC);
		int r;

		if (d.flags & VRING_DESC_F_INDIRECT) {
			if (!ret_table || steps || (d.flags & VRING_DESC_F_NEXT))
				return broken(v, "a table in the middle of a chain");
			*ret_table = d;
			return 0;
		}
		r = chain_add(v, c, &d);
		if (r < 0)
			return r;
		if (!(d.flags & VRING_DESC_F_NEXT))
			return 0;
		if (d.next >= n)
			return broken(v, "a descriptor beyond the table");
		i = d.next;
	}
	return broken(v, "a chain that does not end");
}

static int chain_indirect(struct virtq *v, struct virtq_chain *c, const struct vring_desc *d)
{
	const uint32_t n = d->len / DESC;
	const uint8_t *table;

	if (!v->indirect)
		return broken(v, "a table, which was not agreed");
	if (!n || d->len % DESC || n > VIRTQ_IOV_MAX)
		return broken(v, "a table of a bad size");
	table = mem_at_guest(v->mem, d->addr, d->len);
	if (!table)
		return broken(v, "a table outside of the memory");
	return chain_walk(v, c, table, n, 0, NULL);
}

int virtq_next(struct virtq *v, struct virtq_chain *ret)
{
	const uint16_t idx = load16(v->avail + RING_IDX);
	const uint16_t ready = (uint16_t)(idx - v->last_avail);
	struct vring_desc table = { 0 };
	uint16_t head;
	int r;

	if (v->broken)
		return -EPROTO;
	if (!ready)
		return 0;
	if (ready > v->num)
		return broken(v, "more chains than the ring has room for");
	head = load16(v->avail + RING_ENTRIES + (size_t)(v->last_avail % v->num) * AVAIL_ENTRY);
	if (head >= v->num)
		return broken(v, "a chain beyond the table");
	if (v->busy[head])
		return broken(v, "a chain that is still in use");
	ret->head = head;
	ret->n_in = ret->n_out = 0;
	r = chain_walk(v, ret, v->desc, v->num, head, &table);
	if (r == 0 && table.flags)
		r = chain_indirect(v, ret, &table);
	if (r < 0)
		return r;
	v->busy[head] = true;
	v->last_avail++;
	return 1;
}

void virtq_push(struct virtq *v, uint16_t head, uint32_t len)
{
	const struct vring_used_elem e = { .id = htole32(head), .len = htole32(len) };

	v->busy[head] = false;
	memcpy(v->used + RING_ENTRIES + (size_t)(v->used_idx % v->num) * USED_ENTRY, &e, sizeof(e));
	v->used_idx++;
	store16(v->used + RING_IDX, v->used_idx);
}

/* With the event index nothing need be done: we stay at the value of the last time, which lies behind. */
void virtq_kicks_off(struct virtq *v)
{
	if (!v->event_idx)
		store16(v->used + RING_FLAGS, VRING_USED_F_NO_NOTIFY);
}

static void let_it_arrive(void)
{
	for (unsigned i = 0; i < 64; i++)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool virtq_kicks_on(struct virtq *v)
{
	if (v->event_idx)
		store16(v->used + event_offset(v, USED_ENTRY), v->last_avail);
	else
		store16(v->used + RING_FLAGS, 0);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (load16(v->avail + RING_IDX) != v->last_avail)
		return true;
	let_it_arrive();
	return load16(v->avail + RING_IDX) != v->last_avail;
}

static bool is_wanted(const struct virtq *v, bool known, uint16_t old, uint16_t now)
{
	if (!v->event_idx)
		return !(load16(v->avail + RING_FLAGS) & VRING_AVAIL_F_NO_INTERRUPT);
	return !known ||
	       vring_need_event(load16(v->avail + event_offset(v, AVAIL_ENTRY)), now, old);
}

bool virtq_wants_call(struct virtq *v)
{
	const uint16_t old = v->signalled, now = v->used_idx;
	const bool known = v->signalled_known;

	if (known && old == now)
		return false;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	v->signalled = now;
	v->signalled_known = true;
	if (is_wanted(v, known, old, now))
		return true;
	let_it_arrive();
	return is_wanted(v, known, old, now);
}
