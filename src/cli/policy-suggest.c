/* bac policy suggest: from what was refused to the narrowest rules that would allow it.
 *
 * What is in the log was chosen by the guest. So nothing is suggested that is not a plain connection to a host and port (or an
 * HTTP request with a plain path), nothing that a deny forbids (no allow would help), and --apply leaves out what a rule must
 * name before it opens: private addresses and this machine. A person reads the list first. */
#include <jansson.h>
#include <stdio.h>

#include "cli/cmds.h"
#include "cli/net-push.h"
#include "cli/policy.h"
#include "cli/receipts.h"
#include "io/fd.h"

enum { WANTS_MAX = 2048, SLOTS = 4 * WANTS_MAX };

/* One thing that was refused: a port of a host, or a method and path there. */
struct want {
	char *host, *method, *path; /* method and path "" for connections */
	uint16_t port;
	uint64_t count;
	char last[AUDIT_TIME + 1];
	const char *class; /* an address that a rule must name; NULL: public */
	bool done;         /* it is part of a suggestion, or needs none */
};

struct suggestion {
	char resource[NET_RESOURCE_MAX + 1];
	const struct want *first;
	uint64_t count;
	const char *last;
};

struct hints {
	struct ctx c;
	const struct policy_args *o;
	struct sandbox b;
	struct net_policy *policy;
	struct want wants[WANTS_MAX];
	uint16_t slots[SLOTS]; /* 1 + index */
	size_t n;
	struct suggestion v[WANTS_MAX];
	size_t n_v;
	uint64_t denied_by_rule, left_out;
};

static struct hints *hints_free(struct hints *h)
{
	if (!h)
		return NULL;
	while (h->n) {
		struct want *w = &h->wants[--h->n];

		free(w->host);
		free(w->method);
		free(w->path);
	}
	net_policy_free(h->policy);
	sandbox_done(&h->b);
	ctx_done(&h->c);
	free(h);
	return NULL;
}
DEFINE_FREEP(struct hints, hints_free)

/* ---- reading ---- */
static uint32_t hash_text(uint32_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619U;
	return (h ^ 0xff) * 16777619U;
}

/* The want of this record, made if need be; NULL: no room. */
static struct want *want_of(struct hints *h, const char *host, uint16_t port, const char *method,
			    const char *path)
{
	uint32_t hash = hash_text(hash_text(hash_text(2166136261U + port, host), method), path);
	struct want *w;
	size_t i;

	for (i = hash % SLOTS; h->slots[i]; i = (i + 1) % SLOTS) {
		w = &h->wants[h->slots[i] - 1];
		if (w->port == port && streq(w->host, host) && streq(w->method, method) &&
		    streq(w->path, path))
			return w;
	}
	if (h->n == WANTS_MAX)
		return NULL;
	w = &h->wants[h->n];
	w->host = strdup(host);
	w->method = strdup(method);
	w->path = strdup(path);
	w->port = port;
	if (!w->host || !w->method || !w->path) {
		free(w->host);
		free(w->method);
		free(w->path);
		*w = (struct want) { 0 };
		return NULL;
	}
	h->slots[i] = (uint16_t)++h->n;
	return w;
}

static bool is_wanted(const struct audit_record *r)
{
	static const char *const reasons[] = { "default-deny", "private-address",
					       "method-blocked" };
	static const char *const kinds[] = { "tcp", "tls", "http" };
	bool reason = false, kind = false;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(reasons); i++)
		reason |= streq(reasons[i], r->reason);
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		kind |= streq(kinds[i], r->kind);
	return reason && kind && streq(r->event, "decision") && r->port > 0 &&
	       r->port <= UINT16_MAX;
}

/* An HTTP request that only a rule with its method can allow; its path must be one that a rule can say. */
static bool plain_request(const struct audit_record *r, char method[16])
{
	struct err none;

	return net_method_check(r->method, method, 16, &none) == 0 && !strchr(r->path, '*') &&
	       net_path_check(r->path, &none) == 0;
}

static void take(struct hints *h, const struct audit_record *r)
{
	bool http = streq(r->reason, "method-blocked");
	/* a name that led to a private address: the address is what a rule must name */
	bool by_address = streq(r->reason, "private-address") && r->address[0];
	char method[16] = "";
	struct host host;
	struct want *w;
	struct err none;

	if (!streq(r->decision, "deny") || streq(r->kind, "file"))
		return;
	if (r->rule[0] && r->rule[0] != '<') {
		h->denied_by_rule++;
		return;
	}
	if (!is_wanted(r))
		return;
	if (host_parse(&host, by_address ? r->address : r->host,
		       strlen(by_address ? r->address : r->host), &none) < 0 ||
	    (http && !plain_request(r, method))) {
		h->left_out++;
		return;
	}
	w = want_of(h, host.text, (uint16_t)r->port, method, http ? r->path : "");
	if (!w) {
		h->left_out++;
		return;
	}
	w->count += r->count ? r->count : 1;
	(void)snprintf(w->last, sizeof(w->last), "%s", r->time);
}

static int read_log(struct hints *h, int dir, struct err *e)
{
	_free_ struct audit_record *record = calloc(1, sizeof(*record));
	_cleanup_(audit_reader_freep) struct audit_reader *reader = NULL;
	struct audit_place place;
	const char *line;
	size_t n;
	int r = record ? audit_reader_new(dir, &reader) : -ENOMEM;

	while (r >= 0 && (r = audit_reader_next(reader, &line, &n, &place)) > 0)
		if (r == AUDIT_LINE && audit_record_parse(record, line, n) == 0)
			take(h, record);
	return r < 0 ? err_errno(e, r, "cannot read the log of '%s'", h->b.name) : 0;
}

static int read_logs(struct hints *h, struct err *e)
{
	struct receipts_logs logs;
	size_t i;
	int r = receipts_find(&h->c, h->b.id, &logs, e);

	for (i = 0; i < logs.n && r == 0; i++)
		r = read_log(h, logs.v[i].dir, e);
	receipts_done(&logs);
	return r;
}

/* ---- suggesting ---- */
/* What the rules say by now. */
static void reconsider(struct hints *h, struct want *w)
{
	struct host host;
	struct net_request q = { .host = &host, .port = w->port };
	struct net_answer a;
	struct err none;

	if (host_parse(&host, w->host, strlen(w->host), &none) < 0) {
		w->done = true;
		return;
	}
	if (w->method[0]) {
		q.method = w->method;
		q.path = w->path;
	}
	a = net_decide(h->policy, &q);
	w->done = a.verdict != NET_DENY || a.rule;
	h->denied_by_rule += a.verdict == NET_DENY && a.rule;
	if (host.kind != HOST_NAME)
		w->class = host_addr_class(host.addr, host.kind == HOST_V4 ? 4 : 16);
	else if (streq(host.text, "localhost"))
		w->class = "this machine";
	w->done |= streq(w->class, "metadata"); /* credentials of a cloud: never by suggestion */
}

static bool fits_together(const struct want *a, const struct want *b)
{
	return streq(a->host, b->host) && streq(a->method, b->method) && streq(a->path, b->path);
}

/* One resource for all ports of a host that were asked for alike. */
static void suggest_one(struct hints *h, size_t first)
{
	struct suggestion *s = &h->v[h->n_v];
	struct want *w = &h->wants[first];
	char text[NET_RESOURCE_MAX + 1];
	size_t i, n, ports = 0;
	struct err none;

	s->first = w;
	s->last = w->last;
	n = (size_t)snprintf(text, sizeof(text), strchr(w->host, ':') ? "[%s]" : "%s", w->host);
	for (i = first; i < h->n && ports < NET_PORTS_MAX && n + 8 < sizeof(text); i++) {
		struct want *other = &h->wants[i];

		if (other->done || !fits_together(w, other))
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%c%u", ports++ ? ',' : ':',
				      other->port);
		s->count += other->count;
		if (strcmp(other->last, s->last) > 0)
			s->last = other->last;
		other->done = true;
	}
	if (net_resource_check(text, s->resource, sizeof(s->resource), &none) == 0)
		h->n_v++;
}

static int by_count(const void *a, const void *b)
{
	const struct suggestion *x = a, *y = b;

	return x->count != y->count ? (x->count < y->count ? 1 : -1)
				    : strcmp(x->resource, y->resource);
}

static void suggest(struct hints *h)
{
	size_t i;

	for (i = 0; i < h->n; i++)
		reconsider(h, &h->wants[i]);
	for (i = 0; i < h->n; i++)
		if (!h->wants[i].done)
			suggest_one(h, i);
	qsort(h->v, h->n_v, sizeof(h->v[0]), by_count);
}

/* ---- applying ---- */
static int apply(struct hints *h, struct err *e)
{
	struct box_rules rules = { 0 };
	_close_ int lock = -1;
	size_t i;
	int r = rules_lock(h->c.state, &lock, e);

	for (i = 0; i < h->n_v && r == 0; i++) {
		const struct want *w = h->v[i].first;
		struct net_rule rule = { .scope = NET_SANDBOX,
					 .allow = true,
					 .resource = h->v[i].resource,
					 .method = w->method[0] ? w->method : NULL,
					 .path = w->path[0] ? w->path : NULL };

		if (!w->class)
			r = rules_append(&rules, &rule, h->b.id, "added", "", e);
	}
	if (r == 0 && rules.n)
		r = rules_add(h->c.state, &rules, e);
	if (r == 0 && rules.n)
		r = net_push(&h->c, &h->b, e);
	rules_done(&rules);
	return r;
}

/* ---- printing ---- */
static int print_as_json(const struct hints *h, struct err *e)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < h->n_v; i++) {
		const struct suggestion *s = &h->v[i];
		const struct want *w = s->first;
		json_t *j = json_pack("{s:s, s:I, s:s, s:b}", "resource", s->resource, "count",
				      (json_int_t)s->count, "last_seen", s->last, "applied",
				      h->o->apply && !w->class);

		if (j && w->method[0]) {
			(void)json_object_set_new(j, "method", json_string(w->method));
			(void)json_object_set_new(j, "path", json_string(w->path));
		}
		if (j && w->class)
			(void)json_object_set_new(j, "class", json_string(w->class));
		(void)json_array_append_new(list, j);
	}
	return print_json(json_pack("{s:s, s:o, s:I, s:I}", "sandbox", h->b.name, "suggestions",
				    list, "denied_by_rule", (json_int_t)h->denied_by_rule,
				    "left_out", (json_int_t)h->left_out),
			  e);
}

static void print_one(const struct hints *h, const struct suggestion *s)
{
	const struct want *w = s->first;

	if (h->o->apply && !w->class) {
		(void)printf("added allow %s%s%s%s%s (sandbox: %s)\n", s->resource,
			     w->method[0] ? " " : "", w->method, w->path[0] ? " " : "", w->path,
			     h->b.name);
		return;
	}
	(void)printf("# %llu %s, last %.19s%s%s\nbac policy allow network --sandbox "
		     "%s%s%s%s%s%s '%s'\n",
		     (unsigned long long)s->count, s->count == 1 ? "time" : "times", s->last,
		     w->class ? "; look twice: " : "", w->class ? w->class : "", h->b.name,
		     w->method[0] ? " --method " : "", w->method, w->path[0] ? " --path '" : "",
		     w->path, w->path[0] ? "'" : "", s->resource);
}

static int print_text(const struct hints *h, struct err *e)
{
	size_t i, special = 0;

	for (i = 0; i < h->n_v; i++) {
		print_one(h, &h->v[i]);
		special += !!h->v[i].first->class;
	}
	if (!h->n_v)
		say("nothing was refused in '%s' that a rule could allow", h->b.name);
	else if (!h->o->apply)
		say("read them first: the sandbox chose these names. Add them all with 'bac policy "
		    "suggest %s --apply'",
		    h->b.name);
	if (special && h->o->apply)
		say("%zu are left for you to type: only a rule that names such an address opens it",
		    special);
	if (h->denied_by_rule)
		say("%llu were refused by a rule that denies, which beats any that allows: see "
		    "'bac policy log %s'",
		    (unsigned long long)h->denied_by_rule, h->b.name);
	return flush_out(e);
}

int policy_run_suggest(void *opt, struct args *args, struct err *e)
{
	_cleanup_(hints_freep) struct hints *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return err_errno(e, -ENOMEM, "cannot suggest");
	h->o = opt;
	r = ctx_open(&h->c, e);
	if (r == 0)
		r = state_get(h->c.state, args->v[0], &h->b, e);
	if (r == 0)
		r = policy_load(&h->c, h->b.id, &h->policy, e);
	if (r == 0)
		r = read_logs(h, e);
	if (r < 0)
		return r;
	suggest(h);
	r = h->o->apply ? apply(h, e) : 0;
	if (r < 0)
		return r;
	return h->o->json ? print_as_json(h, e) : print_text(h, e);
}
