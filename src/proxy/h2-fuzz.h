#pragma once
/* For the fuzzers of HTTP/2: a connection that is an input, and dice that the input threw. */
#include "base/check.h"
#include "proxy/chan.h"
#include "proxy/h2.h"

/* ---- dice ---- */

static uint32_t fuzz_state;

static inline uint32_t dice(uint32_t sides)
{
	fuzz_state ^= fuzz_state << 13;
	fuzz_state ^= fuzz_state >> 17;
	fuzz_state ^= fuzz_state << 5;
	return fuzz_state % sides;
}

/* ---- a chan ---- */

struct chan {
	const struct chan_ops *ops;
	void *arg;
	const uint8_t *p;
	size_t n, left; /* of this round */
	bool again, end, freed;
};

static struct chan fuzz_chan;

ssize_t chan_read(struct chan *c, void *p, size_t max)
{
	const size_t k = MIN(MIN(max, c->left), c->n);

	check(!c->freed);
	if (!k)
		return c->end && !c->n ? CHAN_END : CHAN_WAIT;
	memcpy(p, c->p, k);
	c->p += k;
	c->n -= k;
	c->left -= k;
	return (ssize_t)k;
}

size_t chan_write(struct chan *c, const void *p, size_t n)
{
	(void)p;
	check(!c->freed);
	return dice(8) ? n : dice((uint32_t)n + 1);
}

size_t chan_space(const struct chan *c)
{
	(void)c;
	return CHAN_OUT_MAX;
}

void chan_again(struct chan *c)
{
	c->again = true;
}

void chan_owner(struct chan *c, const struct chan_ops *ops, void *arg)
{
	c->ops = ops;
	c->arg = arg;
}

struct chan *chan_free(struct chan *c, bool reset)
{
	(void)reset;
	if (c)
		c->freed = true;
	return NULL;
}

static inline struct chan *fuzz_open(const uint8_t *p, size_t n)
{
	fuzz_chan = (struct chan) { .p = p, .n = n };
	return &fuzz_chan;
}

/* Edges, until nobody asks for one; a peer that does not read for ever is not simulated. */
static inline void fuzz_round(void)
{
	struct chan *c = &fuzz_chan;

	c->left = dice(3) ? 1 + dice(40) : 16384;
	c->again = true;
	for (int i = 0; i < 50 && c->again && !c->freed; i++) {
		c->again = false;
		c->ops->edge(c->arg);
	}
}

/* ---- values ---- */

static inline void fuzz_fields(struct hfields *f)
{
	static const char *const names[] = { "x-a", "Content-Type", "grpc-status", "Set-Cookie" };
	static const char *const values[] = { "", "0", "text/plain", "a=1; Secure" };

	for (uint32_t i = dice(4); i; i--) {
		const char *name = names[dice(4)], *value = values[dice(4)];

		check(hfields_add(f, name, strlen(name), value, strlen(value)) == 0);
	}
}
