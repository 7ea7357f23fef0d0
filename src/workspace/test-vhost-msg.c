/* vhost-user messages: every request with the right payload, a byte less, a byte more, and the wrong
 * number of descriptors; then the values that are judged. */
#include "workspace/vhost-msg.h"

#include "base/check.h"

enum { NONE = 0, U64 = 8, STATE = 8, ADDR = 40, FILE_ = 8, MEM = 40 };

static const struct {
	uint8_t request;
	uint32_t size;
	size_t n_fds;
	const char *name;
} all[] = {
#define PAYLOAD_FILE                      FILE_
#define PAYLOAD_NONE                      NONE
#define PAYLOAD_U64                       U64
#define PAYLOAD_STATE                     STATE
#define PAYLOAD_ADDR                      ADDR
#define PAYLOAD_MEM                       MEM
#define FDS_NONE                          0
#define FDS_FILE                          1
#define FDS_REGION                        1
#define X(name, num, payload, fds, reply) { num, PAYLOAD_##payload, FDS_##fds, #name },
	VHOST_REQUESTS(X)
#undef X
};

static uint8_t body[VHOST_PAYLOAD_MAX];

static int head(struct vhost_msg *m, uint32_t request, uint32_t flags, uint32_t size)
{
	const uint32_t h[3] = { request, flags, size };
	uint8_t p[VHOST_HEADER];

	memcpy(p, h, sizeof(p));
	return vhost_msg_head(m, p);
}

static void put32(size_t at, uint32_t v)
{
	memcpy(body + at, &v, sizeof(v));
}

static void put64(size_t at, uint64_t v)
{
	memcpy(body + at, &v, sizeof(v));
}

static int whole(struct vhost_msg *m, uint32_t request, uint32_t size, size_t n_fds)
{
	int r = head(m, request, 1, size);

	return r < 0 ? r : vhost_msg_body(m, body, n_fds);
}

static void region(uint32_t i, uint64_t guest, uint64_t size, uint64_t user, uint64_t offset)
{
	put64(8 + 32 * i, guest);
	put64(16 + 32 * i, size);
	put64(24 + 32 * i, user);
	put64(32 + 32 * i, offset);
}

static void each(void)
{
	struct vhost_msg m;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		const uint32_t size = all[i].size;

		memset(body, 0, sizeof(body));
		if (all[i].request == VHOST_SET_MEM_TABLE) {
			put32(0, 1);
			region(0, 0, 4096, 4096, 0);
		}
		check(whole(&m, all[i].request, size, all[i].n_fds) == 0);
		check(m.request == all[i].request && !m.need_reply);
		check(whole(&m, all[i].request, size, all[i].n_fds + 1) == -EPROTO);
		if (all[i].n_fds)
			check(whole(&m, all[i].request, size, 0) == -EPROTO);
		if (size)
			check(head(&m, all[i].request, 1, size - 1) == -EPROTO);
		if (all[i].request != VHOST_SET_MEM_TABLE)
			check(head(&m, all[i].request, 1, size + 1) == -EPROTO);
		check(head(&m, all[i].request, 9, size) == 0 && m.need_reply);
		check(head(&m, all[i].request, 0, size) == -EPROTO);  /* no version */
		check(head(&m, all[i].request, 2, size) == -EPROTO);  /* another */
		check(head(&m, all[i].request, 5, size) == -EPROTO);  /* a reply */
		check(head(&m, all[i].request, 17, size) == -EPROTO); /* a flag that is none */
		check(streq(vhost_msg_name(all[i].request), all[i].name));
	}
}

static void unknown(void)
{
	struct vhost_msg m;
	size_t known = 0;

	for (uint32_t n = 0; n < 300; n++) {
		size_t i = 0;

		while (i < ARRAY_SIZE(all) && all[i].request != n)
			i++;
		known += i < ARRAY_SIZE(all);
		if (i == ARRAY_SIZE(all))
			check(head(&m, n, 1, 0) == -EPROTO && head(&m, n, 1, 8) == -EPROTO);
	}
	check(known == ARRAY_SIZE(all));
	check(head(&m, VHOST_SET_MEM_TABLE, 1, UINT32_MAX) == -EPROTO);
	check(head(&m, VHOST_SET_MEM_TABLE, 1, VHOST_PAYLOAD_MAX + 1) == -EPROTO);
	check(streq(vhost_msg_name(0), "?"));
}

static void memory(void)
{
	struct vhost_msg m;
	uint32_t i;

	memset(body, 0, sizeof(body));
	put32(0, VHOST_REGIONS_MAX);
	for (i = 0; i < VHOST_REGIONS_MAX; i++)
		region(i, i << 20, 1 << 20, (uint64_t)i << 32, 0);
	check(whole(&m, VHOST_SET_MEM_TABLE, VHOST_PAYLOAD_MAX, VHOST_REGIONS_MAX) == 0);
	check(m.n_regions == VHOST_REGIONS_MAX && m.regions[7].user == 7ULL << 32);
	check(whole(&m, VHOST_SET_MEM_TABLE, VHOST_PAYLOAD_MAX, 7) == -EPROTO);
	put32(0, VHOST_REGIONS_MAX + 1);
	check(whole(&m, VHOST_SET_MEM_TABLE, VHOST_PAYLOAD_MAX, 9) == -EPROTO);
	put32(0, 7); /* fewer than there is room for, and more */
	check(whole(&m, VHOST_SET_MEM_TABLE, VHOST_PAYLOAD_MAX, 7) == -EPROTO);
	check(whole(&m, VHOST_SET_MEM_TABLE, 8 + 32 * 6, 7) == -EPROTO);
	check(whole(&m, VHOST_SET_MEM_TABLE, 8 + 32 * 7, 7) == 0);
	put32(0, 0);
	check(whole(&m, VHOST_SET_MEM_TABLE, 40, 0) == -EPROTO);
	put32(0, 1);
	region(0, 0, 0, 0, 0);
	check(whole(&m, VHOST_SET_MEM_TABLE, 40, 1) == -EPROTO);
	region(0, UINT64_MAX - 4095, 4096, 0, 0);
	check(whole(&m, VHOST_SET_MEM_TABLE, 40, 1) == -EPROTO);
	region(0, UINT64_MAX - 4096, 4096, 0, 0);
	check(whole(&m, VHOST_SET_MEM_TABLE, 40, 1) == 0);
	region(0, 0, 4096, UINT64_MAX, 0);
	check(whole(&m, VHOST_SET_MEM_TABLE, 40, 1) == -EPROTO);
	region(0, 0, 4096, 0, UINT64_MAX - 1);
	check(whole(&m, VHOST_SET_MEM_TABLE, 40, 1) == -EPROTO);
}

static void values(void)
{
	uint8_t out[VHOST_REPLY_MAX];
	uint32_t word[5];
	struct vhost_msg m;

	memset(body, 0, sizeof(body));
	put32(0, 1);
	put32(4, 77);
	check(whole(&m, VHOST_GET_VRING_BASE, 8, 0) == 0 && m.index == 1 && m.num == 77);
	check(vhost_msg_has_answer(&m) && vhost_msg_reply(out, &m, 99) == VHOST_REPLY_MAX);
	memcpy(word, out, sizeof(word));
	check(word[0] == VHOST_GET_VRING_BASE && word[1] == 5 && word[2] == 8);
	check(word[3] == 1 && word[4] == 99);
	put32(0, VHOST_QUEUES);
	check(whole(&m, VHOST_GET_VRING_BASE, 8, 0) == -EPROTO);
	check(whole(&m, VHOST_SET_VRING_NUM, 8, 0) == -EPROTO);
	check(whole(&m, VHOST_SET_VRING_ENABLE, 8, 0) == -EPROTO);
	check(whole(&m, VHOST_SET_VRING_ADDR, 40, 0) == -EPROTO);

	put64(0, 1 | 0x100);
	check(whole(&m, VHOST_SET_VRING_CALL, 8, 0) == 0 && !m.has_fd && m.index == 1);
	check(whole(&m, VHOST_SET_VRING_CALL, 8, 1) == -EPROTO);
	put64(0, 2);
	check(whole(&m, VHOST_SET_VRING_KICK, 8, 1) == -EPROTO);
	put64(0, 0x200);
	check(whole(&m, VHOST_SET_VRING_KICK, 8, 1) == -EPROTO);
	put64(0, 1ULL << 32);
	check(whole(&m, VHOST_SET_VRING_KICK, 8, 1) == -EPROTO);

	memset(body, 0, sizeof(body));
	put64(8, 0x1000);
	put64(16, 0x3000);
	put64(24, 0x2000);
	check(whole(&m, VHOST_SET_VRING_ADDR, 40, 0) == 0);
	check(m.desc == 0x1000 && m.avail == 0x2000 && m.used == 0x3000);
	check(!vhost_msg_has_answer(&m));
	put32(4, 1); /* logging */
	check(whole(&m, VHOST_SET_VRING_ADDR, 40, 0) == -EPROTO);
}

int main(void)
{
	each();
	unknown();
	memory();
	values();
	return 0;
}
