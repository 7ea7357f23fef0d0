/* Which credentials go onto a request, and whether it may go on at all. */
#include "proxy/inject.h"

#include <stdio.h>

#include "proxy/http-priv.h"
#include "proxy/inject-priv.h"

/* Where a request goes, and what is looked at. */
struct look {
	const struct cred_set *set;
	const struct xhead *head;
	const struct host *host;
	uint16_t port;
	bool tls;
	const char *sandbox;
	struct buf basic; /* user:password of each Basic field, a newline between them */
};

/* ---- refusals ---- */

static bool refused(const struct inject_plan *p)
{
	return p->status;
}

static void refuse(struct inject_plan *p, const char *reason)
{
	p->status = 403;
	p->reason = reason;
	p->n = 0;
	p->names[0] = '\0';
	p->body = p->search = false;
	p->token = NULL;
}

static bool is_global(const struct cred_use *u)
{
	return starts_with(u->key, "global/");
}

static void say_missing(struct inject_plan *p, const struct look *l, const struct cred_use *u)
{
	const bool scoped = !is_global(u) && l->sandbox && l->sandbox[0];
	const char *opt = scoped ? " --sandbox " : "", *name = scoped ? l->sandbox : "";

	refuse(p, "credential-missing");
	if (u->kind == CRED_CUSTOM)
		(void)snprintf(p->remedy, sizeof(p->remedy),
			       "bac secret set-custom --env %s --host %s%s%s", u->service,
			       u->resource, opt, name);
	else
		(void)snprintf(p->remedy, sizeof(p->remedy), "bac secret set %s%s%s%s", u->service,
			       u->kind == CRED_OAUTH ? " --oauth" : "", opt, name);
	(void)snprintf(p->text, sizeof(p->text),
		       "The credential '%s' belongs on this request, and the host's store has no "
		       "value for it. Set it on the host with: %.300s",
		       u->service, p->remedy);
}

/* What is approved is the use's resource, as it was declared; "create" if there is no sandbox to speak of. */
static void say_unapproved(struct inject_plan *p, const struct look *l, const struct cred_use *u)
{
	const bool named = l->sandbox && l->sandbox[0];

	refuse(p, "credential-unapproved");
	(void)snprintf(p->remedy, sizeof(p->remedy), "bac %s%s --approve %s=%s",
		       named ? "run --name " : "create", named ? l->sandbox : "", u->service,
		       u->resource);
	(void)snprintf(
		p->text, sizeof(p->text),
		"%.80s wants the credential '%s' on requests to %.100s, and nobody has approved "
		"that. Approve it on the host with: %.200s",
		u->origin, u->service, l->host->text, p->remedy);
}

static void say_state(struct inject_plan *p, const struct look *l, const struct cred_use *u)
{
	if (u->state == CRED_UNAPPROVED)
		say_unapproved(p, l, u);
	else
		say_missing(p, l, u);
}

static void say_elsewhere(struct inject_plan *p, const struct look *l, const struct cred_use *u,
			  bool plain)
{
	refuse(p, "placeholder-elsewhere");
	if (plain)
		(void)snprintf(p->text, sizeof(p->text),
			       "The request holds the placeholder of '%s', which becomes a secret "
			       "only over TLS. Use https.",
			       u->service);
	else
		(void)snprintf(p->text, sizeof(p->text),
			       "The request holds the placeholder of '%s', which is for %.120s and "
			       "not for %.120s.",
			       u->service, u->resource, l->host->text);
}

/* ---- uses of this destination ---- */

static bool ready(const struct cred_use *u)
{
	return u->state == CRED_READY;
}

static bool is_key(const struct cred_use *u)
{
	return u->kind == CRED_HEADER || u->kind == CRED_BASIC;
}

static const char *field_of(const struct cred_use *u)
{
	return u->kind == CRED_HEADER ? u->header : "authorization";
}

static void need(struct inject_plan *p, const struct cred_use *u)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (p->v[i].use == u)
			return;
	if (p->n == INJECT_NEEDS_MAX) {
		refuse(p, "credential-many");
		(void)snprintf(p->text, sizeof(p->text),
			       "More than %d credentials would go onto one request.",
			       INJECT_NEEDS_MAX);
		return;
	}
	p->v[p->n++].use = u;
}

/* Has the service of u another use here that is ready? keys: that is an API key. */
static bool other_ready(const struct look *l, const struct cred_use *u, bool keys)
{
	const struct cred_use *o;
	size_t at = 0;

	while ((o = cred_next(l->set, l->host, l->port, &at)))
		if (o != u && ready(o) && streq(o->service, u->service) &&
		    (is_key(o) || (!keys && o->kind == CRED_OAUTH)))
			return true;
	return false;
}

/* Is there one that wins the field? The first that is ready, else the first. */
static bool field_lost(const struct look *l, const struct cred_use *u)
{
	const struct cred_use *o;
	bool before = true;
	size_t at = 0;

	while ((o = cred_next(l->set, l->host, l->port, &at))) {
		if (o == u)
			before = false;
		else if (is_key(o) && streq(field_of(o), field_of(u)) &&
			 (before ? ready(o) >= ready(u) : ready(o) > ready(u)))
			return true;
	}
	return false;
}

static void plan_keys(struct inject_plan *p, const struct look *l)
{
	const struct cred_use *u;
	size_t at = 0;

	while (l->tls && !refused(p) && (u = cred_next(l->set, l->host, l->port, &at))) {
		if (!is_key(u) || field_lost(l, u))
			continue;
		if (ready(u))
			need(p, u);
		else if (!other_ready(l, u, false))
			say_state(p, l, u);
	}
}

static bool is_authorization(const struct hfield *f)
{
	return http_word_is((const uint8_t *)f->name, f->name_len, "authorization");
}

static void plan_oauth(struct inject_plan *p, const struct look *l)
{
	const struct hfields *f = &l->head->fields;
	const struct cred_use *u;
	bool seen;
	size_t at = 0, i;

	while (l->tls && !refused(p) && (u = cred_next(l->set, l->host, l->port, &at))) {
		if (u->kind != CRED_OAUTH || other_ready(l, u, true))
			continue;
		for (seen = false, i = 0; i < f->n; i++)
			seen |= is_authorization(&f->v[i]) &&
				inject_seen(f->v[i].value, f->v[i].value_len, u->placeholder);
		if (seen && ready(u))
			need(p, u);
		else if (seen)
			say_state(p, l, u);
	}
}

static void plan_token(struct inject_plan *p, const struct look *l)
{
	const struct xhead *h = l->head;
	const struct cred_use *u;
	size_t at = 0;

	while (l->tls && !refused(p) && !p->token &&
	       (u = cred_next(l->set, l->host, l->port, &at))) {
		if (u->kind != CRED_TOKEN || !streq(h->path, u->path) || !streq(h->method, "POST"))
			continue;
		if (u->state == CRED_UNAPPROVED) {
			say_unapproved(p, l, u);
			return;
		}
		p->token = u;
		if (ready(u))
			need(p, u);
	}
}

/* ---- placeholders ---- */

static unsigned seen_in(const struct look *l, const char *want)
{
	const struct hfields *f = &l->head->fields;
	unsigned where = 0;
	size_t i;

	for (i = 0; i < f->n; i++)
		if (inject_seen(f->v[i].name, f->v[i].name_len, want) ||
		    inject_seen(f->v[i].value, f->v[i].value_len, want))
			where |= CRED_IN_HEADERS;
	if (l->basic.n && inject_seen((const char *)buf_data(&l->basic), l->basic.n, want))
		where |= CRED_IN_BASIC;
	if (l->head->target && inject_seen(l->head->target, strlen(l->head->target), want))
		where |= CRED_IN_QUERY;
	return where;
}

/* The use of that placeholder for this destination: one that is ready, else any, else NULL. */
static const struct cred_use *use_here(const struct look *l, const char *placeholder)
{
	const struct cred_use *u, *best = NULL;
	size_t at = 0;

	while ((u = cred_next(l->set, l->host, l->port, &at)))
		if (u->kind == CRED_CUSTOM && streq(u->placeholder, placeholder) &&
		    (!best || ready(u) > ready(best)))
			best = u;
	return best;
}

static void plan_custom(struct inject_plan *p, const struct look *l)
{
	const bool has_body = !l->head->no_body && !p->token;
	const struct cred_use *u, *here;
	unsigned seen;
	size_t i;

	for (i = 0; !refused(p) && (u = cred_at(l->set, i)); i++) {
		if (u->kind != CRED_CUSTOM)
			continue;
		here = use_here(l, u->placeholder);
		if (here && here != u)
			continue; /* it has its turn, or had it */
		seen = seen_in(l, u->placeholder);
		if (seen && (!here || !l->tls)) {
			say_elsewhere(p, l, u, here);
			return;
		}
		if (!here || !l->tls || !ready(u)) {
			p->search |= has_body;
		} else if (has_body && (u->where & CRED_IN_BODY)) {
			p->body = true;
			need(p, u);
		}
		if ((seen & u->where) && ready(u))
			need(p, u);
		else if (seen & u->where)
			say_state(p, l, u);
	}
}

/* ---- all of it ---- */

static void look_basic(struct look *l)
{
	const struct hfields *f = &l->head->fields;
	const char *p;
	size_t i, n;

	buf_init(&l->basic, 2UL * HTTP_HEAD_MAX);
	for (i = 0; i < f->n; i++) {
		p = inject_basic(&f->v[i], &n);
		/* what cannot be decoded holds no placeholder that a server would see */
		if (p && inject_unbase64(&l->basic, p, n) == 0 && buf_add(&l->basic, "\n", 1) < 0)
			return;
	}
}

static uint8_t form_of(const struct xhead *h)
{
	static const char form[] = "application/x-www-form-urlencoded";
	size_t i;

	for (i = 0; i < h->fields.n; i++) {
		const struct hfield *f = &h->fields.v[i];

		if (!http_word_is((const uint8_t *)f->name, f->name_len, "content-type"))
			continue;
		if (f->value_len >= sizeof(form) - 1 &&
		    http_word_is((const uint8_t *)f->value, sizeof(form) - 1, form))
			return INJECT_FORM_QUERY;
		if (strstr(f->value, "json"))
			return INJECT_FORM_JSON;
	}
	return INJECT_FORM_RAW;
}

static void name_all(struct inject_plan *p)
{
	size_t i, k, len = 0;
	int n;

	for (i = 0; i < p->n; i++) {
		for (k = 0; k < i && !streq(p->v[k].use->service, p->v[i].use->service); k++)
			;
		if (k < i)
			continue;
		n = snprintf(p->names + len, sizeof(p->names) - len, "%s%s", len ? ", " : "",
			     p->v[i].use->service);
		if (n < 0 || (size_t)n >= sizeof(p->names) - len) {
			p->names[len] = '\0';
			return;
		}
		len += (size_t)n;
	}
}

void inject_plan(struct inject_plan *ret, const struct cred_set *s, const struct xhead *h,
		 const struct host *host, uint16_t port, bool tls, const char *sandbox)
{
	struct look l = { s, h, host, port, tls, sandbox, BUF_INIT(0) };

	memset(ret, 0, sizeof(*ret));
	if (!cred_at(s, 0))
		return;
	look_basic(&l);
	plan_token(ret, &l);
	plan_custom(ret, &l);
	plan_keys(ret, &l);
	plan_oauth(ret, &l);
	if (!refused(ret)) {
		ret->form = form_of(h);
		name_all(ret);
	}
	inject_wipe(&l.basic);
}
