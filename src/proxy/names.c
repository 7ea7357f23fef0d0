/* A slot is a name and two addresses, one of each range, at the slot's place in this generation's slice. Slots are found
 * by name through a hash table with chains, and by address through arithmetic.
 *
 * The guest chooses the names, so it can make them collide: a chain is at most NAMES_MAX long, and walking that takes
 * some ten microseconds. */
#include "proxy/names.h"

enum {
	OURS = 0xc6120000,    /* 198.18.0.0/15 */
	ALLOWED = 0xc6120100, /* 198.18.1.0 */
	N_ALLOWED = 0xff00,
	REFUSED = 0xc6130000, /* 198.19.0.0 */
	N_REFUSED = 0x10000,
	SLICES = MIN(N_ALLOWED, N_REFUSED) / NAMES_MAX,
	HASH = 4096,
	GAVE_ALLOWED = 1,
	GAVE_REFUSED = 2,
};

struct slot {
	struct host name;
	uint32_t holds;
	uint16_t next; /* of the chain, from 1; 0: the last */
	uint8_t gave;
};

struct names {
	uint32_t first; /* of the slice, from the start of each range */
	uint32_t n;
	uint16_t head[HASH]; /* from 1 */
	uint64_t used[NAMES_MAX];
	struct slot slot[NAMES_MAX];
};

int names_new(uint32_t generation, struct names **ret)
{
	struct names *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->first = generation % SLICES * NAMES_MAX;
	*ret = t;
	return 0;
}

struct names *names_free(struct names *t)
{
	free(t);
	return NULL;
}

static uint16_t *chain(struct names *t, const char *text)
{
	uint32_t h = 2166136261U;

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 16777619U;
	return &t->head[(h ^ h >> 16) % HASH];
}

static struct slot *find(struct names *t, const char *text)
{
	for (uint16_t i = *chain(t, text); i; i = t->slot[i - 1].next)
		if (streq(t->slot[i - 1].name.text, text))
			return &t->slot[i - 1];
	return NULL;
}

static void unchain(struct names *t, struct slot *s)
{
	uint16_t *at = chain(t, s->name.text);

	while (&t->slot[*at - 1] != s)
		at = &t->slot[*at - 1].next;
	*at = s->next;
}

static bool is_old(const struct names *t, uint32_t i, uint64_t now_s)
{
	const struct slot *s = &t->slot[i];
	uint64_t keep = s->gave & GAVE_ALLOWED ? NAMES_KEEP_S : NAMES_KEEP_REFUSED_S;

	return !s->holds && now_s >= t->used[i] && now_s - t->used[i] >= keep;
}

/* A slot that nobody has, or the one that was not used for longest of those that are old. */
static struct slot *slot_new(struct names *t, uint64_t now_s)
{
	struct slot *s = NULL;

	if (t->n < NAMES_MAX)
		return &t->slot[t->n++];
	for (uint32_t i = 0; i < NAMES_MAX; i++)
		if (is_old(t, i, now_s) && (!s || t->used[i] < t->used[s - t->slot]))
			s = &t->slot[i];
	if (s)
		unchain(t, s);
	return s;
}

static struct slot *add(struct names *t, const struct host *name, uint64_t now_s)
{
	struct slot *s = slot_new(t, now_s);
	uint16_t *at = chain(t, name->text);

	if (!s)
		return NULL;
	*s = (struct slot) { .name = *name, .next = *at };
	*at = (uint16_t)(s - t->slot + 1);
	return s;
}

int names_get(struct names *t, const struct host *name, bool refused, uint64_t now_s,
	      uint8_t ret[static 4])
{
	struct slot *s;
	uint32_t at;

	if (name->kind != HOST_NAME)
		return -EINVAL;
	s = find(t, name->text);
	if (!s)
		s = add(t, name, now_s);
	if (!s)
		return -ENOSPC;
	s->gave |= refused ? GAVE_REFUSED : GAVE_ALLOWED;
	t->used[s - t->slot] = now_s;
	at = (refused ? REFUSED : ALLOWED) + t->first + (uint32_t)(s - t->slot);
	for (int i = 0; i < 4; i++)
		ret[i] = (uint8_t)(at >> (24 - 8 * i));
	return 0;
}

static uint32_t number(const uint8_t addr[static 4])
{
	return (uint32_t)addr[0] << 24 | (uint32_t)addr[1] << 16 | (uint32_t)addr[2] << 8 | addr[3];
}

static struct slot *by_addr(struct names *t, const uint8_t addr[static 4])
{
	const uint32_t a = number(addr);
	const bool refused = a >= REFUSED;
	const uint32_t base = (refused ? REFUSED : ALLOWED) + t->first;

	if (!names_ours(addr) || a < base || a - base >= t->n)
		return NULL;
	if (!(t->slot[a - base].gave & (refused ? GAVE_REFUSED : GAVE_ALLOWED)))
		return NULL;
	return &t->slot[a - base];
}

const struct host *names_find(struct names *t, const uint8_t addr[static 4], uint64_t now_s)
{
	struct slot *s = by_addr(t, addr);

	if (!s)
		return NULL;
	t->used[s - t->slot] = now_s;
	return &s->name;
}

void names_hold(struct names *t, const uint8_t addr[static 4])
{
	struct slot *s = by_addr(t, addr);

	if (s)
		s->holds++;
}

void names_release(struct names *t, const uint8_t addr[static 4], uint64_t now_s)
{
	struct slot *s = by_addr(t, addr);

	if (!s || !s->holds)
		return;
	s->holds--;
	t->used[s - t->slot] = now_s;
}

bool names_ours(const uint8_t addr[static 4])
{
	return (number(addr) & 0xfffe0000) == OURS;
}
