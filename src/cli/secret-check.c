/* bac secret check: a line for each host that a secret is bound to. */
#include <stdio.h>

#include "cli/cred-push.h"
#include "cli/policy.h"
#include "cli/secret.h"

enum { RESOLVE_MS = 30000 };

struct check {
	struct secret *s;
	const char *service;
	struct cred_set *set;
	struct net_policy *policy; /* NULL: none was chosen */
	char fault[ERR_MSG_MAX];   /* what is wrong for all hosts: the value, or the sandbox */
	char asked[STORE_KEY_MAX + 1];
	size_t lines, bad;
};

/* Can the value be had? Once for each key. */
static void check_value(struct check *k, const char *key)
{
	struct err e = { 0 };
	char *value = NULL;
	int64_t refresh;
	size_t n = 0;

	if (streq(k->asked, key) || k->fault[0])
		return;
	(void)snprintf(k->asked, sizeof(k->asked), "%s", key);
	if (store_resolve(k->s->store, key, RESOLVE_MS, &value, &n, &refresh, &e) < 0)
		(void)snprintf(k->fault, sizeof(k->fault), "its value cannot be had: %.300s",
			       e.msg);
	store_value_free(value, n);
}

static void line(struct check *k, const char *resource, const char *how, const char *missing)
{
	k->lines++;
	k->bad += missing != NULL;
	(void)printf("%s: %s%s\n", resource, missing ? "not authenticated: " : "authenticated, ",
		     missing ? missing : how);
}

/* Of a key that bac knows the hosts of without being told: the first one, which it is for, if this is another. Whether a client goes to those
 * as well nobody says, so it is no fault that they are closed. NULL: this host is meant, by the first line of the data, a user or a kit. */
static const char *beside(const struct check *k, const struct cred_use *u)
{
	const struct service *known = services_find(&k->s->services, k->service);

	if (!known || !known->n_uses || !streq(u->origin, "builtin") ||
	    (u->kind != CRED_HEADER && u->kind != CRED_BASIC) ||
	    streq(u->resource, known->uses[0].resource))
		return NULL;
	return known->uses[0].resource;
}

/* It would be put on, but no network rule allows the host. */
static void closed(struct check *k, const struct cred_use *u)
{
	const char *box = k->s->b.id[0] ? k->s->b.name : NULL, *main = beside(k, u);
	char rule[NET_RESOURCE_MAX + 128], missing[NET_RESOURCE_MAX + 256];

	(void)snprintf(rule, sizeof(rule), "bac policy allow network %s%s%s%s",
		       box ? "--sandbox " : "", box ? box : "", box ? " " : "", u->resource);
	(void)snprintf(missing, sizeof(missing), "no network rule allows it; run: %s", rule);
	if (!main) {
		line(k, u->resource, "", missing);
		return;
	}
	k->lines++;
	(void)printf("%s: not opened (%s does not need it); to open it: %s\n", u->resource, main,
		     rule);
}

static const char *how_of(const struct cred_use *u, char *dst, size_t max)
{
	if (u->kind == CRED_HEADER)
		(void)snprintf(dst, max, "by %s", u->header);
	else if (u->kind == CRED_BASIC)
		(void)snprintf(dst, max, "as %s (basic)", u->username);
	else if (u->kind == CRED_CUSTOM)
		(void)snprintf(dst, max, "where the placeholder is");
	else
		(void)snprintf(dst, max,
			       u->kind == CRED_TOKEN ? "the login is renewed here"
						     : "by the login");
	return dst;
}

static void check_use(struct check *k, const struct cred_use *u)
{
	const char *box = k->s->b.id[0] ? k->s->b.name : NULL;
	char how[320], missing[ERR_MSG_MAX + 128];

	if (u->state == CRED_READY)
		check_value(k, u->key);
	if (u->state == CRED_MISSING)
		(void)snprintf(missing, sizeof(missing),
			       "no secret is stored; run: bac secret set %s", k->service);
	else if (u->state == CRED_UNAPPROVED)
		(void)snprintf(missing, sizeof(missing),
			       "%s is not approved here; run: bac run --name %s --approve %s=%s",
			       u->origin, box ? box : "NAME", k->service, u->resource);
	else if (k->fault[0])
		(void)snprintf(missing, sizeof(missing), "%s", k->fault);
	else if (!k->policy)
		(void)snprintf(missing, sizeof(missing),
			       "no network policy was chosen; run: bac policy init balanced");
	else
		missing[0] = '\0';
	if (!missing[0] && !secret_reaches(k->policy, u->resource))
		closed(k, u);
	else
		line(k, u->resource, how_of(u, how, sizeof(how)), missing[0] ? missing : NULL);
}

/* Uses that would be there if there were a secret. */
static void check_absent(struct check *k, const struct cred_use *v, size_t n)
{
	struct cred_use u;
	size_t i;

	for (i = 0; i < n; i++) {
		u = v[i];
		u.state = CRED_MISSING;
		check_use(k, &u);
	}
}

static int check_declared(struct check *k, struct err *e)
{
	struct compose_declared d = { 0 };
	size_t i, j;
	int r = 0;

	if (k->s->b.id[0])
		r = compose_declared(&k->s->c, k->s->b.id, &d, e);
	for (i = 0; i < d.n; i++)
		for (j = 0; j < d.v[i].n; j++)
			if (streq(d.v[i].v[j].service, k->service))
				check_absent(k, d.v[i].v[j].v, d.v[i].v[j].n);
	compose_declared_done(&d);
	return r;
}

/* A sandbox that runs takes what holds now: that is the way to find out that its keeper does not. */
static void ask_sandbox(struct check *k)
{
	struct secret *s = k->s;
	struct err e = { 0 };

	if (!s->b.id[0])
		return;
	if (s->b.no_network)
		(void)snprintf(k->fault, sizeof(k->fault), "'%s' has no network", s->b.name);
	else if (state_is_locked(s->c.state, s->b.id) && cred_push(&s->c, &s->b, &e) < 0)
		(void)snprintf(k->fault, sizeof(k->fault), "%.400s", e.msg);
}

static int check_all(struct check *k, struct err *e)
{
	const struct service *known = services_find(&k->s->services, k->service);
	const struct cred_use *u;
	size_t i;
	int r;

	for (i = 0; (u = cred_at(k->set, i)); i++)
		if (streq(u->service, k->service))
			check_use(k, u);
	if (!k->lines && known)
		check_absent(k, known->uses, known->n_uses);
	r = k->lines ? 0 : check_declared(k, e);
	if (r == 0 && !k->lines)
		r = err_set(e, -ENOENT,
			    "nothing is known of a secret '%.60s' (see 'bac secret services')",
			    k->service);
	return r;
}

int secret_run_check(void *opt, struct args *args, struct err *e)
{
	_cleanup_(secret_done) struct secret s = { 0 };
	struct check k = { .s = &s, .service = args->v[0] };
	struct err none = { 0 };
	int r = secret_begin(&s, opt, e);

	if (r == 0)
		r = secret_uses(&s, &k.set, e);
	if (r == 0 && policy_load(&s.c, s.b.id, &k.policy, &none) < 0)
		k.policy = NULL;
	if (r == 0) {
		ask_sandbox(&k);
		r = check_all(&k, e);
	}
	net_policy_free(k.policy);
	cred_set_free(k.set);
	if (r == 0)
		r = flush_out(e);
	return r < 0 ? r : k.bad > 0;
}
