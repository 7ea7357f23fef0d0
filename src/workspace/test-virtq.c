/* Rings as a driver builds them, and as no driver should. */
#include "workspace/virtq.h"

#include <linux/virtio_ring.h>

#include "base/check.h"

enum {
	NUM = 8,
	SIZE = 0x10000,
	AT = 0x40000000, /* the guest's address of the first byte */
	USER = 0x70000000,
	TABLE = 0x4000, /* an indirect table */
	BUF = 0x8000,
};

static struct mem m;
static struct virtq ring;
static struct virtq_chain chain;
static struct virtq_where where;
static uint8_t *base;

static struct vring_desc *desc(void)
{
	return (void *)base;
}

static uint16_t *avail(void)
{
	return (void *)(base + 0x1000); /* flags, idx, ring, used_event */
}

static uint16_t *used(void)
{
	return (void *)(base + 0x2000); /* flags, idx, then elements */
}

static struct vring_used_elem *used_elem(unsigned i)
{
	return (struct vring_used_elem *)(void *)(base + 0x2004) + i;
}

static void fresh(bool event_idx, bool indirect)
{
	memset(base, 0, SIZE);
	m.n = 1;
	m.r[0] = (struct mem_region) { .guest = AT, .user = USER, .size = SIZE, .host = base };
	where = (struct virtq_where) { .num = NUM,
				       .desc = USER,
				       .avail = USER + 0x1000,
				       .used = USER + 0x2000,
				       .event_idx = event_idx,
				       .indirect = indirect };
	check(virtq_open(&ring, &m, &where) == 0);
}

static void set(struct vring_desc *d, uint32_t off, uint32_t len, uint16_t flags, uint16_t next)
{
	*d = (struct vring_desc) {
		.addr = (uint64_t)AT + off, .len = len, .flags = flags, .next = next
	};
}

static void offer(uint16_t head)
{
	avail()[2 + avail()[1] % NUM] = head;
	avail()[1]++;
}

/* One chain to read and fill, all the way. */
static void plain(bool event_idx)
{
	fresh(event_idx, false);
	check(virtq_next(&ring, &chain) == 0);
	set(&desc()[3], BUF, 40, VRING_DESC_F_NEXT, 5);
	set(&desc()[5], BUF + 64, 0, VRING_DESC_F_NEXT, 1); /* nothing */
	set(&desc()[1], BUF + 128, 100, VRING_DESC_F_NEXT | VRING_DESC_F_WRITE, 2);
	set(&desc()[2], SIZE - 1, 1, VRING_DESC_F_WRITE, 9999);
	offer(3);
	check(virtq_next(&ring, &chain) == 1);
	check(chain.head == 3 && chain.n_in == 1 && chain.n_out == 2);
	check(chain.iov[0].iov_base == base + BUF && chain.iov[0].iov_len == 40);
	check(chain.iov[1].iov_base == base + BUF + 128 && chain.iov[1].iov_len == 100);
	check(chain.iov[2].iov_base == base + SIZE - 1 && chain.iov[2].iov_len == 1);
	check(virtq_next(&ring, &chain) == 0);
	virtq_push(&ring, 3, 17);
	check(used()[1] == 1 && used_elem(0)->id == 3 && used_elem(0)->len == 17);
	check(virtq_wants_call(&ring));
	check(!virtq_wants_call(&ring)); /* told already */
}

static void tables(void)
{
	struct vring_desc *t = (void *)(base + TABLE);

	fresh(true, true);
	set(&desc()[0], TABLE, 3 * sizeof(*t), VRING_DESC_F_INDIRECT, 0);
	set(&t[0], BUF, 40, VRING_DESC_F_NEXT, 2);
	set(&t[2], BUF + 100, 8, VRING_DESC_F_NEXT, 1);
	set(&t[1], BUF + 200, 16, VRING_DESC_F_WRITE, 0);
	offer(0);
	check(virtq_next(&ring, &chain) == 1);
	check(chain.head == 0 && chain.n_in == 2 && chain.n_out == 1);
	check(chain.iov[2].iov_base == base + BUF + 200);

	/* the longest that there is, at an address that is not even */
	for (uint32_t n = VIRTQ_IOV_MAX; n <= VIRTQ_IOV_MAX + 1; n++) {
		fresh(true, true);
		set(&desc()[7], TABLE + 1, n * (uint32_t)sizeof(*t), VRING_DESC_F_INDIRECT, 0);
		for (uint32_t i = 0; i < n; i++) {
			struct vring_desc d;

			set(&d, 0x3000 + i, 1, i + 1 < n ? VRING_DESC_F_NEXT : 0,
			    (uint16_t)(i + 1));
			memcpy(base + TABLE + 1 + i * sizeof(d), &d, sizeof(d));
		}
		offer(7);
		check(virtq_next(&ring, &chain) == (n == VIRTQ_IOV_MAX ? 1 : -EPROTO));
	}
}

/* The other side is told when it must be, and only then. */
static void events(void)
{
	fresh(true, false);
	set(&desc()[0], BUF, 1, 0, 0);
	set(&desc()[1], BUF, 1, 0, 0);
	for (uint16_t round = 0; round < 70; round++) {
		uint16_t *used_event = &avail()[2 + NUM];
		const uint16_t *avail_event = (const void *)used_elem(NUM);

		offer(0);
		offer(1);
		virtq_kicks_off(&ring);
		check(virtq_next(&ring, &chain) == 1);
		virtq_push(&ring, chain.head, 0);
		check(virtq_kicks_on(&ring)); /* there is one more */
		check(virtq_next(&ring, &chain) == 1);
		check(!virtq_kicks_on(&ring) && *avail_event == avail()[1]);
		virtq_push(&ring, chain.head, 0);
		check(virtq_wants_call(&ring));
		*used_event = (uint16_t)(used()[1] + 1); /* not for the next, for the one after */
		offer(0);
		check(virtq_next(&ring, &chain) == 1);
		virtq_push(&ring, chain.head, 0);
		check(!virtq_wants_call(&ring));
		offer(0);
		check(virtq_next(&ring, &chain) == 1);
		virtq_push(&ring, chain.head, 0);
		check(virtq_wants_call(&ring));
		*used_event = used()[1];
	}
	fresh(false, false);
	set(&desc()[0], BUF, 1, 0, 0);
	virtq_kicks_off(&ring);
	check(used()[0] == VRING_USED_F_NO_NOTIFY);
	check(!virtq_kicks_on(&ring) && used()[0] == 0);
	offer(0);
	check(virtq_next(&ring, &chain) == 1);
	avail()[0] = VRING_AVAIL_F_NO_INTERRUPT;
	virtq_push(&ring, 0, 0);
	check(!virtq_wants_call(&ring));
	avail()[0] = 0;
	offer(0);
	check(virtq_next(&ring, &chain) == 1);
	virtq_push(&ring, 0, 0);
	check(virtq_wants_call(&ring));
}

/* Indices run over, and the ring goes on where it was told to. */
static void wraps(void)
{
	fresh(true, false);
	avail()[1] = used()[1] = where.base = 65535;
	check(virtq_open(&ring, &m, &where) == 0);
	set(&desc()[0], BUF, 1, 0, 0);
	for (unsigned i = 0; i < 3; i++) {
		offer(0);
		check(virtq_next(&ring, &chain) == 1);
		virtq_push(&ring, 0, 0);
	}
	check(ring.last_avail == 2 && used()[1] == 2);
	where.base = 0;
}

static void stays_broken(void)
{
	check(virtq_next(&ring, &chain) == -EPROTO && ring.broken);
	avail()[1] = ring.last_avail;
	check(virtq_next(&ring, &chain) == -EPROTO);
}

static void bad_chains(void)
{
	static const struct {
		uint32_t off, len;
		uint16_t flags, next;
	} bad[] = {
		{ BUF, 1, VRING_DESC_F_NEXT, NUM }, /* beyond the table */
		{ BUF, 1, VRING_DESC_F_NEXT, 0 },   /* to itself */
		{ BUF, 0, VRING_DESC_F_NEXT, 0 },   /* the same with nothing in it */
		{ BUF, 1, VRING_DESC_F_NEXT | VRING_DESC_F_WRITE, 1 }, /* 1 is to read */
		{ SIZE - 1, 2, 0, 0 },                                 /* over the end */
		{ SIZE, 1, 0, 0 },
		{ (uint32_t)-1, 1, 0, 0 }, /* before the start */
		{ BUF, UINT32_MAX, VRING_DESC_F_WRITE, 0 },
		{ TABLE, 16, VRING_DESC_F_INDIRECT | VRING_DESC_F_NEXT, 1 },
		{ TABLE, 0, VRING_DESC_F_INDIRECT, 0 },
		{ TABLE, 17, VRING_DESC_F_INDIRECT, 0 },
		{ SIZE - 16, 32, VRING_DESC_F_INDIRECT, 0 },
		{ TABLE, 32, VRING_DESC_F_INDIRECT, 0 }, /* has a table inside */
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		fresh(true, true);
		set(&desc()[1], BUF, 1, 0, 0);
		set((void *)(base + TABLE), TABLE, 16, VRING_DESC_F_INDIRECT, 0);
		set(&desc()[0], bad[i].off, bad[i].len, bad[i].flags, bad[i].next);
		offer(0);
		stays_broken();
	}
	fresh(true, false); /* not agreed */
	set(&desc()[0], TABLE, 16, VRING_DESC_F_INDIRECT, 0);
	offer(0);
	stays_broken();
	fresh(true, true); /* a table as second */
	set(&desc()[0], BUF, 1, VRING_DESC_F_NEXT, 1);
	set(&desc()[1], TABLE, 16, VRING_DESC_F_INDIRECT, 0);
	offer(0);
	stays_broken();
	fresh(true, true); /* two that point at each other */
	set(&desc()[0], BUF, 1, VRING_DESC_F_NEXT, 1);
	set(&desc()[1], BUF, 1, VRING_DESC_F_NEXT, 0);
	offer(0);
	stays_broken();
}

static void bad_heads(void)
{
	fresh(true, true);
	offer(NUM);
	stays_broken();
	fresh(true, true);
	avail()[1] = NUM + 1;
	stays_broken();
	fresh(true, true); /* the same head twice */
	set(&desc()[0], BUF, 1, 0, 0);
	offer(0);
	offer(0);
	check(virtq_next(&ring, &chain) == 1);
	stays_broken();
}

static void bad_places(void)
{
	static const struct virtq_where good = {
		.num = NUM, .desc = USER, .avail = USER + 0x1000, .used = USER + 0x2000
	};
	struct virtq_where w;

#define REFUSED(field, value) \
	do { \
		w = good; \
		w.field = (value); \
		check(virtq_open(&ring, &m, &w) == -EPROTO); \
	} while (0)
	fresh(true, true);
	REFUSED(num, 0);
	REFUSED(num, 1);
	REFUSED(num, 3);
	REFUSED(num, 2 * VIRTQ_SIZE_MAX);
	REFUSED(num, 65536 + NUM);
	REFUSED(desc, USER + 8);
	REFUSED(desc, USER - 16);
	REFUSED(desc, USER + SIZE - 16 * NUM + 16);
	REFUSED(avail, USER + 0x1001);
	REFUSED(avail, USER + SIZE - 2 * NUM - 4);
	REFUSED(avail, UINT64_MAX - 1);
	REFUSED(used, USER + 0x2002);
	REFUSED(used, USER + SIZE - 8 * NUM - 4);
	REFUSED(used, 0);
#undef REFUSED
	w = good;
	w.num = VIRTQ_SIZE_MAX;
	w.avail = USER + 0x4000;
	w.used = USER + 0x5000;
	check(virtq_open(&ring, &m, &w) == 0);
	m.r[0].size = 0x2000;
	check(virtq_move(&ring, &m, &w) == -EPROTO);
}

int main(void)
{
	base = aligned_alloc(4096, SIZE);
	check(base);
	plain(true);
	plain(false);
	tables();
	events();
	wraps();
	bad_chains();
	bad_heads();
	bad_places();
	free(base);
	return 0;
}
