/* Each request is judged twice: when it comes, and again when its value does, since the credentials may be others by then. */
#include <stdio.h>

#include "io/fd.h"
#include "keeper/keeper.h"

/* A VALUE that waits for its key. */
struct wait {
	struct cache_wait link;
	uint32_t number;
	uint16_t port;
	char use[CRED_ID_MAX + 1];
	char host[HOST_NAME_MAX_LEN + 1];
};

/* Tokens that bac-fetch is writing: one or two keys. */
struct tokens {
	struct tokens *next;
	uint32_t number; /* of who asked */
	bool alone;      /* who asked is gone */
	uint32_t put[2]; /* 0: none, or it is written */
	char key[2][CRED_KEY_MAX + 1];
	bool failed;
};

/* ---- answers ---- */

static int no(struct keeper *k, uint32_t number, enum keeper_no why, const char *text)
{
	const struct keeper_msg m = {
		.type = KEEPER_NO, .number = number, .code = why, .text = text
	};

	return peer_send(&k->proxy, &m);
}

static int no_longer(struct keeper *k, uint32_t number)
{
	return no(k, number, KEEPER_NO_LONGER, "it was allowed, and is not any more");
}

static int never(struct keeper *k, const char *what, const char *host, uint16_t port)
{
	(void)snprintf(k->why, sizeof(k->why), "asked for %s for %.200s:%u, which nothing allows",
		       what, host, port);
	return -EPROTO;
}

static int failed(struct keeper *k, uint32_t number, int r)
{
	return no(k, number, KEEPER_NO_FAILED,
		  r == -E2BIG ? "too many requests wait for a credential"
			      : "the keeper is out of memory");
}

/* NULL: the use is ready. */
static const char *unready(const struct cred_use *u, enum keeper_no *ret_why, char *text, size_t n)
{
	if (u->state == CRED_UNAPPROVED) {
		*ret_why = KEEPER_NO_UNAPPROVED;
		(void)snprintf(text, n, "the use of '%s' at this host has not been approved",
			       u->service);
		return text;
	}
	if (u->state == CRED_MISSING && u->kind != CRED_TOKEN && u->kind != CRED_OAUTH) {
		*ret_why = KEEPER_NO_MISSING;
		(void)snprintf(text, n, "there is no value for '%s'", u->service);
		return text;
	}
	return NULL;
}

static struct cred_use const *use_by_key(const struct keeper *k, const char *key)
{
	const struct cred_use *u;

	for (size_t i = 0; (u = cred_at(k->judge.cred, i)); i++)
		if (streq(u->key, key))
			return u;
	return NULL;
}

/* ---- marks ---- */

static void mark(struct keeper *k, const char *key, const uint8_t *value, size_t n)
{
	const struct cred_use *u = use_by_key(k, key);
	int r = u ? marks_set(k->marks, key, u->service, value, n) : 0;

	if (r < 0)
		keeper_say(k, "out of memory: '%s' is not looked for in what leaves the sandbox",
			   u->service);
	else if (r > 0)
		k->marks_due = true;
}

/* ---- questions ---- */

static uint64_t now(void)
{
	return fd_now_ns();
}

void asks_fetch(struct keeper *k, uint8_t type, uint32_t number, const char *key)
{
	const struct keeper_msg m = { .type = type, .number = number, .text = key };

	if (peer_send(&k->fetch, &m) < 0)
		k->fetch_lost = true;
}

uint32_t asks_number(struct keeper *k)
{
	k->last_put = (k->last_put + 1) | 1U << 31;
	return k->last_put;
}

static struct wait *wait_new(const struct keeper_msg *m, const struct host *h)
{
	struct wait *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->number = m->number;
	w->port = m->port;
	(void)snprintf(w->use, sizeof(w->use), "%s", m->text2);
	(void)snprintf(w->host, sizeof(w->host), "%s", h->text);
	return w;
}

/* It is known: answer, and done with w. */
static int settle(struct keeper *k, struct wait *w, const struct cred_use *u,
		  const struct cache_reply *reply)
{
	struct keeper_msg m = { .type = KEEPER_VALUE_IS, .number = w->number };
	int r;

	m.bytes = (struct keeper_bytes) { reply->value, (uint32_t)reply->n };
	if (reply->value)
		r = peer_send(&k->proxy, &m);
	else
		r = no(k, w->number,
		       u->state == CRED_MISSING ? KEEPER_NO_MISSING : KEEPER_NO_FAILED,
		       reply->text);
	free(w);
	return r;
}

/* Takes w over. */
static int want(struct keeper *k, struct wait *w, const struct cred_use *u)
{
	struct cache_reply reply = { 0 };
	uint32_t number = w->number;
	int r = u->kind == CRED_TOKEN ? turn_new(k, number, u->key, &w->link)
				      : cache_want(k->cache, u->key, now(), &w->link, &reply);

	switch (r) {
	case 0: /* its turn comes */
		return 0;
	case CACHE_HAVE:
	case CACHE_FAILED:
		return settle(k, w, u, &reply);
	case CACHE_ASK:
		asks_fetch(k, KEEPER_GET, reply.number, u->key);
		return 0;
	case CACHE_WAIT:
		return 0;
	default:
		free(w);
		return failed(k, number, r);
	}
}

/* The value of a key came, or why it did not, and all of these have waited for it. What cannot be told is not: the proxy is gone. */
static void settle_all(struct keeper *k, struct cache_wait *all, const char *key,
		       const struct cache_reply *reply)
{
	while (all) {
		struct wait *w = (struct wait *)all;
		const struct cred_use *u = NULL;
		struct host h;
		struct err e;

		all = all->next;
		if (host_parse(&h, w->host, strlen(w->host), &e) < 0 ||
		    judge_use(&k->judge, w->use, &h, w->port, &u) != JUDGE_YES) {
			(void)!no_longer(k, w->number);
			free(w);
		} else if (!streq(u->key, key)) {
			(void)!want(k, w, u); /* by now it stands for another */
		} else {
			(void)!settle(k, w, u, reply);
		}
	}
}

/* ---- what the proxy asks ---- */

static int parse_host(struct keeper *k, const struct keeper_msg *m, struct host *ret)
{
	struct err e;

	if (host_parse(ret, m->text, strlen(m->text), &e) == 0)
		return 0;
	(void)snprintf(k->why, sizeof(k->why), "named a host that is none");
	return -EPROTO;
}

static int on_leaf(struct keeper *k, const struct keeper_msg *m)
{
	struct keeper_msg a = { .type = KEEPER_LEAF_IS, .number = m->number };
	struct ca_leaf l;
	struct host h;
	int r = parse_host(k, m, &h);

	if (r < 0)
		return r;
	switch (judge_leaf(&k->judge, &h, m->port)) {
	case JUDGE_NEVER:
		return never(k, "a certificate", h.text, m->port);
	case JUDGE_LONGER:
		return no_longer(k, m->number);
	default:
		break;
	}
	r = ca_leaf(k->ca, &h, (int64_t)(fd_real_ns() / 1000000000), &l);
	if (r < 0)
		return no(k, m->number, KEEPER_NO_FAILED, "no certificate can be made");
	a.bytes = (struct keeper_bytes) { l.chain, (uint32_t)l.n_chain };
	a.bytes2 = (struct keeper_bytes) { l.key, (uint32_t)l.n_key };
	a.when = (uint64_t)l.not_after;
	return peer_send(&k->proxy, &a);
}

/* The use that a message is about. 1; 0: it has been answered; -errno. */
static int find_use(struct keeper *k, const struct keeper_msg *m, struct host *h,
		    const struct cred_use **ret)
{
	enum keeper_no why;
	char text[200];
	int r = parse_host(k, m, h);

	if (r < 0)
		return r;
	switch (judge_use(&k->judge, m->text2, h, m->port, ret)) {
	case JUDGE_NEVER:
		return never(k, "a credential", h->text, m->port);
	case JUDGE_LONGER:
		return no_longer(k, m->number);
	default:
		break;
	}
	return unready(*ret, &why, text, sizeof(text)) ? no(k, m->number, why, text) : 1;
}

static int on_value(struct keeper *k, const struct keeper_msg *m)
{
	const struct cred_use *u;
	struct wait *w;
	struct host h;
	int r = find_use(k, m, &h, &u);

	if (r <= 0)
		return r;
	w = wait_new(m, &h);
	return w ? want(k, w, u) : failed(k, m->number, -ENOMEM);
}

/* ---- tokens ---- */

/* Those that are written, or cannot be, are answered. */
static void tokens_settle(struct keeper *k)
{
	struct tokens **at = &k->tokens, *t;

	while ((t = *at)) {
		const struct keeper_msg kept = { .type = KEEPER_KEPT, .number = t->number };

		if (t->put[0] || t->put[1]) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		if (!t->alone)
			(void)!(t->failed ? no(k, t->number, KEEPER_NO_FAILED,
					       "the new tokens hold until the sandbox stops: the "
					       "store "
					       "does not take them")
					  : peer_send(&k->proxy, &kept));
		free(t);
	}
}

static uint32_t put(struct keeper *k, const char *key, struct keeper_bytes value)
{
	struct keeper_msg m = { .type = KEEPER_PUT, .text = key, .bytes = value };

	m.number = asks_number(k);
	return peer_send(&k->fetch, &m) == 0 ? m.number : 0;
}

/* The new value of a key is good from now on, whether it can be written or not. 0: it cannot. */
static uint32_t renew(struct keeper *k, const char *key, struct keeper_bytes value)
{
	const struct cache_reply reply = { .value = value.p, .n = value.n };
	struct cache_wait *all = NULL;

	if (cache_put(k->cache, key, value.p, value.n, &all) < 0)
		keeper_say(k, "out of memory: new tokens are not kept");
	mark(k, key, value.p, value.n);
	keeper_tell_marks(k);
	settle_all(k, all, key, &reply);
	return put(k, key, value);
}

/* SERVICE.refresh: SERVICE.access is its other half (secrets/store.h). */
static bool other_half(const char *refresh, char *ret, size_t max)
{
	static const char end[] = ".refresh";
	size_t n = strlen(refresh);

	if (n <= sizeof(end) - 1 || !streq(refresh + n - (sizeof(end) - 1), end))
		return false;
	return snprintf(ret, max, "%.*s.access", (int)(n - (sizeof(end) - 1)), refresh) < (int)max;
}

static int on_tokens(struct keeper *k, const struct keeper_msg *m)
{
	const struct cred_use *u;
	char access[CRED_KEY_MAX + 1];
	struct tokens *t;
	struct host h;
	int r = find_use(k, m, &h, &u);

	if (r <= 0)
		return r;
	if (u->kind != CRED_TOKEN)
		return never(k, "tokens to be kept", h.text, m->port);
	if (!m->bytes.n || !other_half(u->key, access, sizeof(access)))
		return no(k, m->number, KEEPER_NO_FAILED,
			  "these tokens have no place in the store");
	t = calloc(1, sizeof(*t));
	if (!t)
		return failed(k, m->number, -ENOMEM);
	(void)snprintf(t->key[0], sizeof(t->key[0]), "%s", access);
	(void)snprintf(t->key[1], sizeof(t->key[1]), "%s", u->key);
	t->number = m->number;
	t->next = k->tokens;
	k->tokens = t;
	t->put[0] = renew(k, t->key[0], m->bytes);
	if (m->bytes2.n)
		t->put[1] = renew(k, t->key[1], m->bytes2);
	t->failed = !t->put[0] || (m->bytes2.n && !t->put[1]);
	tokens_settle(k);
	return 0;
}

static int on_over(struct keeper *k, const struct keeper_msg *m)
{
	turn_over(k, m->number);
	return 0;
}

/* ---- what bac-fetch answers ---- */

static bool put_done(struct keeper *k, uint32_t number, const char *why)
{
	for (struct tokens *t = k->tokens; t; t = t->next)
		for (size_t i = 0; i < ARRAY_SIZE(t->put); i++) {
			if (t->put[i] != number)
				continue;
			t->put[i] = 0;
			t->failed = t->failed || why;
			if (why)
				keeper_say(k, "new tokens cannot be written into the store: %s",
					   why);
			else
				cache_saved(k->cache, t->key[i]);
			tokens_settle(k);
			return true;
		}
	return false;
}

/* ---- the turns of refresh tokens ---- */

/* What the store did not take is newer than what it has. */
static int turn_told(struct keeper *k, struct turn *t, const struct cache_reply *reply)
{
	char access[CRED_KEY_MAX + 1];
	struct cache_reply unsaved;

	if (other_half(t->key, access, sizeof(access)))
		cache_doubt(k->cache, access); /* who had the turn before may have renewed it */
	mark(k, t->key, reply->value, reply->n);
	keeper_tell_marks(k);
	if (cache_unsaved(k->cache, t->key, &unsaved))
		reply = &unsaved;
	settle_all(k, take_ptr(t->wait), t->key, reply);
	return 0;
}

/* Or it took too long, and has been told before. */
static int turn_failed(struct keeper *k, struct turn *t, const struct cache_reply *reply)
{
	settle_all(k, take_ptr(t->wait), t->key, reply);
	turn_end(k, t);
	return 0;
}

static int on_got(struct keeper *k, const struct keeper_msg *m)
{
	struct cache_reply reply = { .value = m->bytes.p, .n = m->bytes.n };
	struct turn *t = turn_asked(k, m->number);
	struct cache_wait *all;
	const char *key;

	if (t)
		return turn_told(k, t, &reply);
	cache_got(k->cache, m->number, m->bytes.p, m->bytes.n, m->when, now(), &key, &all);
	if (!key)
		return 0;
	mark(k, key, m->bytes.p, m->bytes.n);
	keeper_tell_marks(k);
	settle_all(k, all, key, &reply);
	return 0;
}

static int on_not(struct keeper *k, const struct keeper_msg *m)
{
	struct cache_reply reply = { .text = *m->text ? m->text : "it cannot be got" };
	struct cache_wait *all;
	struct turn *t = turn_asked(k, m->number);
	uint32_t again = 0;
	const char *key;

	if (t)
		return turn_failed(k, t, &reply);
	if (put_done(k, m->number, m->text))
		return 0;
	if (cache_not(k->cache, m->number, m->text, now(), &key, &all, &again) == CACHE_ASK)
		asks_fetch(k, KEEPER_GET, again, key);
	else if (key)
		settle_all(k, all, key, &reply);
	keeper_tell_marks(k);
	return 0;
}

static int on_put_done(struct keeper *k, const struct keeper_msg *m)
{
	(void)put_done(k, m->number, NULL);
	return 0;
}

/* ---- the table ---- */

static const struct {
	char from;
	int (*run)(struct keeper *k, const struct keeper_msg *m);
} ops[] = {
	[KEEPER_LEAF] = { 'P', on_leaf },         [KEEPER_VALUE] = { 'P', on_value },
	[KEEPER_TOKENS] = { 'P', on_tokens },     [KEEPER_OVER] = { 'P', on_over },
	[KEEPER_GOT] = { 'F', on_got },           [KEEPER_NOT] = { 'F', on_not },
	[KEEPER_PUT_DONE] = { 'F', on_put_done },
};

static int dispatch(struct keeper *k, char from, const struct keeper_msg *m)
{
	if (m->type >= ARRAY_SIZE(ops) || ops[m->type].from != from)
		return -EPROTO;
	return ops[m->type].run(k, m);
}

int asks_take(struct keeper *k, const struct keeper_msg *m)
{
	(void)snprintf(k->why, sizeof(k->why), "broke its protocol");
	return dispatch(k, 'P', m);
}

int asks_answer(struct keeper *k, const struct keeper_msg *m)
{
	return dispatch(k, 'F', m);
}

/* ---- what happens ---- */

static void ask_again(struct keeper *k)
{
	const char *key;
	uint32_t number;
	bool peek;

	while ((key = cache_again(k->cache, &number, &peek)))
		asks_fetch(k, peek ? KEEPER_PEEK : KEEPER_GET, number, key);
}

static void peek(struct keeper *k, const char *key)
{
	struct cache_reply reply;

	if (cache_peek(k->cache, key, &reply) == CACHE_ASK)
		asks_fetch(k, KEEPER_PEEK, reply.number, key);
}

void asks_credentials(struct keeper *k)
{
	const struct cred_use *u;

	cache_forget(k->cache);
	ask_again(k);
	for (size_t i = 0; (u = cred_at(k->judge.cred, i)); i++)
		if (u->state == CRED_READY)
			peek(k, u->key);
}

void asks_proxy_gone(struct keeper *k)
{
	struct cache_wait *all = cache_take_all(k->cache, false);

	while (all) {
		struct cache_wait *w = all;

		all = all->next;
		free(w);
	}
	for (struct tokens *t = k->tokens; t; t = t->next) /* they are written all the same */
		t->alone = true;
	turns_drop(k);
}

void asks_fetch_gone(struct keeper *k)
{
	static const char why[] = "what opens the store has ended; it is started again";
	struct cache_wait *all = cache_take_all(k->cache, true);

	k->fetch_lost = false;
	for (struct turn *t = k->turns; t; t = t->next) {
		const struct cache_reply none = { .text = why };

		settle_all(k, take_ptr(t->wait), t->key, &none);
	}
	turns_drop(k);
	while (all) {
		struct wait *w = (struct wait *)all;

		all = all->next;
		(void)!no(k, w->number, KEEPER_NO_FAILED, why);
		free(w);
	}
	for (struct tokens *t = k->tokens; t; t = t->next) {
		t->failed = t->failed || t->put[0] || t->put[1];
		t->put[0] = t->put[1] = 0;
	}
	tokens_settle(k);
}
