/* A key's entry is empty, has a value, has failed, or is asked for; asking leaves no value behind, since it is not good any more. */
#include "keeper/cache.h"

#include <stdio.h>

#include "keeper/vault.h"

static const uint64_t SECOND = 1000000000;

struct entry {
	char *key;
	uint8_t *value; /* vault */
	size_t n;
	uint64_t until; /* of the value, or of the failure */
	char *failed;   /* why; NULL: it has not */
	uint32_t asked; /* the number of the question, 0: none */
	bool peek;      /* and it is one */
	bool again;     /* it is to be asked anew */
	bool unsaved;   /* the value is one of ours, and nowhere else */
	struct cache_wait *waits, **end;
};

struct cache {
	struct entry *v[CACHE_KEYS_MAX];
	size_t n, waits;
	uint32_t last; /* number given out */
};

int cache_new(struct cache **ret)
{
	struct cache *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	*ret = c;
	return 0;
}

static void empty(struct entry *e)
{
	e->value = vault_free(e->value);
	e->n = 0;
	free(e->failed);
	e->failed = NULL;
	e->until = 0;
	e->unsaved = false;
}

static void drop(struct entry *e)
{
	empty(e);
	free(e->key);
	free(e);
}

struct cache *cache_free(struct cache *c)
{
	for (size_t i = 0; c && i < c->n; i++)
		drop(c->v[i]);
	free(c);
	return NULL;
}

static struct entry *find(const struct cache *c, const char *key)
{
	for (size_t i = 0; i < c->n; i++)
		if (streq(c->v[i]->key, key))
			return c->v[i];
	return NULL;
}

static struct entry *by_number(const struct cache *c, uint32_t number)
{
	for (size_t i = 0; number && i < c->n; i++)
		if (c->v[i]->asked == number)
			return c->v[i];
	return NULL;
}

static int find_or_make(struct cache *c, const char *key, struct entry **ret)
{
	struct entry *e = find(c, key);

	if (!e && c->n == CACHE_KEYS_MAX)
		return -E2BIG;
	if (!e) {
		e = calloc(1, sizeof(*e));
		if (e)
			e->key = strdup(key);
		if (!e || !e->key) {
			free(e);
			return -ENOMEM;
		}
		e->end = &e->waits;
		c->v[c->n++] = e;
	}
	*ret = e;
	return 0;
}

static uint32_t ask(struct cache *c, struct entry *e, bool peek)
{
	empty(e);
	if (!++c->last)
		c->last = 1;
	e->asked = c->last;
	e->peek = peek;
	e->again = false;
	return e->asked;
}

static struct cache_wait *take(struct cache *c, struct entry *e)
{
	struct cache_wait *first = e->waits;

	for (struct cache_wait *w = first; w; w = w->next)
		c->waits--;
	e->waits = NULL;
	e->end = &e->waits;
	return first;
}

/* What is there and good: HAVE or FAILED, else 0. */
static int look(struct entry *e, uint64_t now, struct cache_reply *ret)
{
	if (e->asked || (!e->value && !e->failed))
		return 0;
	if (now >= e->until) {
		empty(e);
		return 0;
	}
	*ret = (struct cache_reply) { .value = e->value, .n = e->n, .text = e->failed };
	return e->value ? CACHE_HAVE : CACHE_FAILED;
}

int cache_want(struct cache *c, const char *key, uint64_t now, struct cache_wait *w,
	       struct cache_reply *ret)
{
	struct entry *e;
	int r = find_or_make(c, key, &e);

	if (r == 0)
		r = look(e, now, ret);
	if (r != 0)
		return r;
	if (c->waits == CACHE_WAITS_MAX)
		return -E2BIG;
	w->next = NULL;
	*e->end = w;
	e->end = &w->next;
	c->waits++;
	if (e->asked || e->again)
		return CACHE_WAIT;
	*ret = (struct cache_reply) { .number = ask(c, e, false) };
	return CACHE_ASK;
}

int cache_peek(struct cache *c, const char *key, struct cache_reply *ret)
{
	struct entry *e;
	int r = find_or_make(c, key, &e);

	if (r < 0)
		return r;
	if (e->asked || e->again)
		return CACHE_WAIT;
	if (e->value) {
		*ret = (struct cache_reply) { .value = e->value, .n = e->n };
		return CACHE_HAVE;
	}
	*ret = (struct cache_reply) { .number = ask(c, e, true) };
	return CACHE_ASK;
}

size_t cache_peeking(const struct cache *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		n += c->v[i]->peek && (c->v[i]->asked || c->v[i]->again);
	return n;
}

static void store(struct entry *e, const uint8_t *value, size_t n, uint64_t until)
{
	empty(e);
	e->value = vault_copy(value, n);
	e->n = e->value ? n : 0;
	e->until = until;
}

static uint64_t until(uint64_t seconds, uint64_t now)
{
	return seconds >= (UINT64_MAX - now) / SECOND ? UINT64_MAX : now + seconds * SECOND;
}

void cache_got(struct cache *c, uint32_t number, const uint8_t *value, size_t n, uint64_t seconds,
	       uint64_t now, const char **ret_key, struct cache_wait **ret)
{
	struct entry *e = by_number(c, number);

	*ret_key = e ? e->key : NULL;
	*ret = e ? take(c, e) : NULL;
	if (!e)
		return;
	e->asked = 0;
	e->peek = false;
	if (seconds)
		store(e, value, n, until(seconds, now));
}

int cache_not(struct cache *c, uint32_t number, const char *why, uint64_t now, const char **ret_key,
	      struct cache_wait **ret, uint32_t *ret_number)
{
	struct entry *e = by_number(c, number);

	*ret_key = e ? e->key : NULL;
	*ret = NULL;
	if (!e)
		return 0;
	e->asked = 0;
	if (e->peek && e->waits) { /* whatever the peek saw: they want it made */
		*ret_number = ask(c, e, false);
		return CACHE_ASK;
	}
	if (!e->peek) {
		*ret = take(c, e);
		e->failed = strndup(*why ? why : "it cannot be got", CACHE_TEXT_MAX);
		e->until = now + CACHE_FAILED_MS * (SECOND / 1000);
	}
	e->peek = false;
	return 0;
}

int cache_put(struct cache *c, const char *key, const uint8_t *value, size_t n,
	      struct cache_wait **ret)
{
	struct entry *e;
	int r = find_or_make(c, key, &e);

	if (r < 0)
		return r;
	*ret = take(c, e);
	e->asked = 0;
	e->again = e->peek = false;
	store(e, value, n, UINT64_MAX);
	e->unsaved = e->value;
	return e->value ? 0 : -ENOMEM;
}

void cache_saved(struct cache *c, const char *key)
{
	struct entry *e = find(c, key);

	if (e && e->unsaved)
		empty(e);
}

void cache_doubt(struct cache *c, const char *key)
{
	struct entry *e = find(c, key);

	if (e && !e->unsaved)
		empty(e);
}

bool cache_unsaved(const struct cache *c, const char *key, struct cache_reply *ret)
{
	const struct entry *e = find(c, key);

	if (!e || !e->unsaved)
		return false;
	*ret = (struct cache_reply) { .value = e->value, .n = e->n };
	return true;
}

void cache_forget(struct cache *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->n; i++) {
		struct entry *e = c->v[i];

		if (!e->asked && !e->again) {
			drop(e);
			continue;
		}
		empty(e);
		e->asked = 0;
		e->again = true;
		c->v[kept++] = e;
	}
	c->n = kept;
}

const char *cache_again(struct cache *c, uint32_t *ret_number, bool *ret_peek)
{
	for (size_t i = 0; i < c->n; i++) {
		struct entry *e = c->v[i];

		if (!e->again)
			continue;
		*ret_peek = e->peek;
		*ret_number = ask(c, e, e->peek);
		return e->key;
	}
	return NULL;
}

struct cache_wait *cache_take_all(struct cache *c, bool asked)
{
	struct cache_wait *all = NULL, **end = &all;

	for (size_t i = 0; i < c->n; i++) {
		struct entry *e = c->v[i];

		*end = take(c, e);
		while (*end)
			end = &(*end)->next;
		if (!asked)
			continue;
		e->asked = 0;
		e->again = e->peek = false;
	}
	return all;
}
