#include "keeper/turn.h"

#include "keeper/keeper.h"

/* May it be asked for? Then nobody is before it. */
static bool is_next(const struct keeper *k, const struct turn *t)
{
	size_t asked = 0;

	for (const struct turn *o = k->turns; o; o = o->next) {
		asked += o->asked != 0;
		if (o != t && o->asked && streq(o->key, t->key))
			return false;
	}
	return asked < TURNS_ASKED_MAX;
}

static void begin(struct keeper *k)
{
	for (struct turn *t = k->turns; t; t = t->next) {
		if (t->asked || !is_next(k, t))
			continue;
		t->asked = asks_number(k);
		asks_fetch(k, KEEPER_TURN, t->asked, t->key);
	}
}

int turn_new(struct keeper *k, uint32_t number, const char *key, struct cache_wait *w)
{
	struct turn **end = &k->turns, *t;
	size_t n = 0;

	for (; *end; end = &(*end)->next)
		n++;
	if (n >= TURNS_MAX)
		return -E2BIG;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->number = number;
	t->wait = w;
	(void)snprintf(t->key, sizeof(t->key), "%s", key);
	*end = t;
	begin(k);
	return 0;
}

struct turn *turn_asked(const struct keeper *k, uint32_t number)
{
	struct turn *t;

	for (t = number ? k->turns : NULL; t && t->asked != number; t = t->next)
		;
	return t;
}

static void drop(struct keeper *k, struct turn *t)
{
	const struct keeper_msg loose = { .type = KEEPER_LOOSE, .number = t->asked };

	if (t->asked)
		(void)!peer_send(&k->fetch, &loose); /* one that is gone holds nothing */
	free(t->wait);
	free(t);
}

void turn_end(struct keeper *k, struct turn *t)
{
	struct turn **at = &k->turns;

	while (*at && *at != t)
		at = &(*at)->next;
	if (*at)
		*at = t->next;
	drop(k, t);
	begin(k);
}

void turns_drop(struct keeper *k)
{
	struct turn *all = take_ptr(k->turns);

	while (all) {
		struct turn *t = all;

		all = t->next;
		drop(k, t);
	}
}

void turn_over(struct keeper *k, uint32_t number)
{
	struct turn *t = k->turns, *next;

	for (; t; t = next) {
		next = t->next;
		if (t->number == number)
			turn_end(k, t);
	}
}
