/* Hostile rings: the input pokes bytes anywhere into two regions of guest memory, between which we drain the ring,
 * read and fill the buffers of each chain, and give chains back at once or later.
 *
 *   byte 0   bit 0 event index, bit 1 indirect tables, bits 2..5 the size's logarithm
 *   then     0..253: poke so many bytes at the be16 address that follows; 254, 255: drain, giving
 *            chains back at once, or keeping them until the end */
#include "base/check.h"
#include "base/rdwr.h"
#include "workspace/virtq.h"

enum { SIZE_A = 0x6000, SIZE_B = 0x1000, USER = 0x10000000, DRAIN_MAX = 4096, KEEP = 254 };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static struct virtq ring;
static struct virtq_chain chain;

/* The second follows the first in the guest, not here. */
static void memory(struct mem *m)
{
	m->n = 2;
	m->r[0] = (struct mem_region) { .guest = 0, .user = USER, .size = SIZE_A };
	m->r[1] = (struct mem_region) { .guest = SIZE_A, .user = USER + SIZE_A, .size = SIZE_B };
	for (uint32_t i = 0; i < m->n; i++) {
		m->r[i].host = calloc(1, m->r[i].size);
		check(m->r[i].host);
	}
}

static bool inside(const struct mem *m, const struct iovec *io)
{
	bool in = false;

	for (uint32_t i = 0; i < m->n; i++) {
		const uint8_t *a = m->r[i].host, *b = io->iov_base;

		in = in || (b >= a && io->iov_len <= m->r[i].size - (size_t)(b - a));
	}
	return in;
}

/* What the file system does with a chain. Filling one may change the ring. */
static unsigned use(const struct mem *m)
{
	unsigned sum = 0;

	check(chain.n_in + chain.n_out <= VIRTQ_IOV_MAX && chain.head < ring.num);
	for (size_t i = 0; i < chain.n_in + chain.n_out; i++) {
		const struct iovec *io = &chain.iov[i];
		uint8_t *b = io->iov_base;

		check(io->iov_len && inside(m, io));
		sum += b[0] + b[io->iov_len - 1];
		if (i >= chain.n_in)
			b[io->iov_len - 1] ^= 1;
	}
	return sum;
}

static void drain(const struct mem *m, bool keep)
{
	static uint16_t kept[VIRTQ_SIZE_MAX];
	unsigned n = 0, sum = 0;
	size_t n_kept = 0;
	int r;

	virtq_kicks_off(&ring);
	while ((r = virtq_next(&ring, &chain)) == 1 && n++ < DRAIN_MAX) {
		sum += use(m);
		if (keep) {
			check(n_kept < ring.num);
			kept[n_kept++] = chain.head;
		} else {
			virtq_push(&ring, chain.head, sum);
		}
	}
	check(r >= 0 || ring.broken);
	while (n_kept)
		virtq_push(&ring, kept[--n_kept], 1);
	(void)virtq_wants_call(&ring);
	(void)virtq_kicks_on(&ring);
}

static void poke(const struct mem *m, struct rd *r, uint8_t len)
{
	const uint32_t at = rd_be16(r);
	const uint8_t *bytes = rd_take(r, len);

	for (uint32_t i = 0; bytes && i < len && at + i < SIZE_A + SIZE_B; i++)
		*(at + i < SIZE_A ? &m->r[0].host[at + i] : &m->r[1].host[at + i - SIZE_A]) =
			bytes[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct rd r = rd_init(p, n);
	const uint8_t how = rd_u8(&r);
	const struct virtq_where w = { .num = 1U << (how >> 2 & 15),
				       .desc = USER,
				       .avail = USER + 0x1000,
				       .used = USER + 0x2000,
				       .event_idx = how & 1,
				       .indirect = how & 2 };
	struct mem m = { 0 };

	memory(&m);
	if (virtq_open(&ring, &m, &w) == 0)
		while (!r.bad && r.n) {
			uint8_t op = rd_u8(&r);

			if (op >= KEEP)
				drain(&m, op > KEEP);
			else
				poke(&m, &r, op);
		}
	free(m.r[0].host);
	free(m.r[1].host);
	return 0;
}
