/* bac policy check: what the proxy would decide, by the same library, the same settings and the host's own resolver. */
#include <arpa/inet.h>
#include <jansson.h>
#include <netdb.h>
#include <stdio.h>

#include "cli/cmds.h"
#include "cli/policy.h"
#include "cli/upstream.h"
#include "policy/no-proxy.h"
#include "wire/proxy.h"

enum { ADDRESSES_MAX = 64, VIA_MAX = 256 };

struct address {
	char text[INET6_ADDRSTRLEN];
	const char *class;
	struct net_answer answer;
};

struct question {
	const struct policy_args *o;
	struct host host;
	uint16_t port;
	const char *scheme; /* of an URL, or NULL */
	char path[NET_PATH_MAX + 2];
	const char *method;
	char sandbox[STATE_ID_MAX + 1];

	struct net_answer answer;
	bool proxy_itself;     /* the proxy's own address inside */
	char sent_to[VIA_MAX]; /* by net.connectTo, or the upstream proxy; "" */
	char note[200];
	struct address addresses[ADDRESSES_MAX];
	size_t n_addresses;
};

/* ---- the target ---- */
static const struct {
	const char *name;
	uint16_t port;
} schemes[] = { { "http", 80 }, { "https", 443 }, { "ws", 80 }, { "wss", 443 } };

static int parse_url(struct question *q, const char *text, const char *colon, struct err *e)
{
	const char *where = colon + 3, *at;
	size_t n = strcspn(where, "/?#"), i;
	int r;

	for (i = 0; i < ARRAY_SIZE(schemes); i++)
		if (strlen(schemes[i].name) == (size_t)(colon - text) &&
		    !strncasecmp(schemes[i].name, text, (size_t)(colon - text)))
			break;
	if (i < ARRAY_SIZE(schemes))
		q->scheme = schemes[i].name;
	at = memrchr(where, '@', n);
	if (at) {
		n -= (size_t)(at + 1 - where);
		where = at + 1;
	}
	r = host_port_parse(&q->host, &q->port, where, n, e);
	if (r < 0)
		return err_ctx(e, "'%.100s'", text);
	if (!q->port && !q->scheme)
		return err_set(e, -EINVAL, "'%.100s' needs a port: the scheme does not say it",
			       text);
	q->port = q->port ? q->port : schemes[i].port;
	where += n;
	n = strcspn(where, "?#");
	if (n > NET_PATH_MAX + 1)
		n = NET_PATH_MAX + 1;
	memcpy(q->path, n ? where : "/", n ? n : 1);
	return 0;
}

static int parse_target(struct question *q, const char *text, struct err *e)
{
	const char *colon = strstr(text, "://");
	int r;

	if (colon)
		return parse_url(q, text, colon, e);
	r = host_port_parse(&q->host, &q->port, text, strlen(text), e);
	if (r < 0)
		return err_ctx(e, "'%.100s'", text);
	q->port = q->port ? q->port : 443;
	return 0;
}

static int take_request(struct question *q, struct err *e)
{
	static char method[16];
	int r;

	if (q->o->protocol && !streq(q->o->protocol, "tcp") && !streq(q->o->protocol, "udp"))
		return err_set(e, -EINVAL, "--protocol: '%.40s' is neither tcp nor udp",
			       q->o->protocol);
	if (q->o->path && !q->o->method)
		return err_set(e, -EINVAL, "--path needs a --method");
	if (!q->o->method)
		return 0;
	r = net_method_check(q->o->method, method, sizeof(method), e);
	if (r < 0)
		return err_ctx(e, "--method");
	q->method = method;
	if (q->o->path)
		(void)snprintf(q->path, sizeof(q->path), "%s", q->o->path);
	else if (!q->path[0])
		(void)snprintf(q->path, sizeof(q->path), "/");
	return 0;
}

/* The addresses inside that stand for something else. */
static void translate(struct question *q)
{
	struct err none;

	if (streq(q->host.text, NET_HOST_TEXT) &&
	    host_parse(&q->host, "localhost", strlen("localhost"), &none) < 0)
		return;
	q->proxy_itself = streq(q->host.text, NET_GATEWAY_TEXT) ||
			  streq(q->host.text, "gateway.docker.internal");
}

/* ---- the answer ---- */
static void judge(struct question *q, const struct net_policy *p, const uint8_t *addr, size_t n)
{
	struct address *a;

	if (q->n_addresses == ADDRESSES_MAX)
		return;
	a = &q->addresses[q->n_addresses++];
	(void)inet_ntop(n == 4 ? AF_INET : AF_INET6, addr, a->text, sizeof(a->text));
	a->class = host_addr_class(addr, n);
	a->answer = net_decide_addr(p, addr, n, q->port);
}

static void resolve(struct question *q, const struct net_policy *p)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list, *a;
	int r = getaddrinfo(q->host.text, NULL, &hints, &list);

	if (r != 0) {
		(void)snprintf(q->note, sizeof(q->note), "the name has no address here now: %s",
			       gai_strerror(r));
		return;
	}
	for (a = list; a; a = a->ai_next) {
		if (a->ai_family == AF_INET)
			judge(q, p,
			      (const uint8_t *)&((struct sockaddr_in *)(void *)a->ai_addr)
				      ->sin_addr,
			      4);
		else if (a->ai_family == AF_INET6)
			judge(q, p,
			      (const uint8_t *)&((struct sockaddr_in6 *)(void *)a->ai_addr)
				      ->sin6_addr,
			      16);
	}
	freeaddrinfo(list);
}

/* One entry of net.connectTo: is it for this host and port? */
static bool is_detour(const struct question *q, const char *entry)
{
	const char *equal = strchr(entry, '=');
	struct host h;
	uint16_t port;
	struct err none;

	return equal && host_port_parse(&h, &port, entry, (size_t)(equal - entry), &none) == 0 &&
	       port == q->port && host_same(&h, &q->host);
}

static int find_way(struct question *q, struct ctx *c, struct err *e)
{
	_free_ char *connect = NULL, *upstream = NULL, *no_proxy = NULL;
	char *entry, *rest = NULL;
	int r = setting_get(c->state, "net.connectTo", &connect, NULL, e);

	if (r == 0)
		r = upstream_get(c, &upstream, &no_proxy, e);
	if (r < 0)
		return r;
	for (entry = strtok_r(connect, ", ", &rest); entry; entry = strtok_r(NULL, ", ", &rest))
		if (is_detour(q, entry)) {
			(void)snprintf(q->sent_to, sizeof(q->sent_to), "%.200s (net.connectTo)",
				       strchr(entry, '=') + 1);
			return 0;
		}
	if (upstream && upstream[0] && !streq(q->host.text, "localhost") &&
	    !no_proxy_has(no_proxy, &q->host))
		(void)snprintf(q->sent_to, sizeof(q->sent_to),
			       "the upstream proxy of this machine, which looks the name up");
	return 0;
}

/* The name is allowed; it is dialled only at an address that is allowed as well. */
static void settle_addresses(struct question *q)
{
	size_t i;

	for (i = 0; i < q->n_addresses; i++)
		if (q->addresses[i].answer.verdict == NET_ALLOW)
			return;
	if (q->n_addresses)
		q->answer = q->addresses[0].answer;
}

static int decide(struct question *q, struct ctx *c, const struct net_policy *p, struct err *e)
{
	struct net_request rq = { .host = &q->host, .port = q->port };
	int r;

	if (q->proxy_itself) {
		q->answer = (struct net_answer) { .verdict = q->port == NET_FORWARD_PORT ||
							     q->port == 53,
						  .reason = "the-proxy-itself" };
		return 0;
	}
	if (q->o->protocol && streq(q->o->protocol, "udp")) {
		q->answer =
			(struct net_answer) { .verdict = NET_DENY, .reason = "protocol-blocked" };
		return 0;
	}
	q->answer = net_decide(p, &rq);
	if (q->answer.verdict == NET_NEEDS_HTTP && q->method) {
		rq.method = q->method;
		rq.path = q->path;
		q->answer = net_decide(p, &rq);
	}
	if (q->answer.verdict == NET_DENY || q->host.kind != HOST_NAME)
		return 0;
	r = find_way(q, c, e);
	if (r < 0 || q->sent_to[0] || streq(q->host.text, "localhost"))
		return r;
	resolve(q, p);
	settle_addresses(q);
	return 0;
}

/* ---- printing ---- */
static const char *const verdicts[] = {
	[NET_DENY] = "Denied", [NET_ALLOW] = "Allowed", [NET_NEEDS_HTTP] = "Depends on the request"
};
static const char *const words[] = {
	[NET_DENY] = "deny", [NET_ALLOW] = "allow", [NET_NEEDS_HTTP] = "needs-http"
};

static const char *where(const struct question *q, char dst[HOST_NAME_MAX_LEN + 16])
{
	(void)snprintf(dst, HOST_NAME_MAX_LEN + 16, q->host.kind == HOST_V6 ? "[%s]:%u" : "%s:%u",
		       q->host.text, q->port);
	return dst;
}

static const char *explain(const struct net_answer *a)
{
	static const struct {
		const char *reason, *text;
	} table[] = {
		{ "default-deny", "no rule allows it" },
		{ "private-address", "an address that only a rule can open that names it" },
		{ "not-a-path", "the path can be read in more than one way" },
		{ "method-blocked", "no rule allows this method and path" },
		{ "protocol-blocked", "all UDP is refused" },
		{ "the-proxy-itself", "the sandbox's own resolver and forward proxy" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table) && !a->rule; i++)
		if (streq(table[i].reason, a->reason))
			return table[i].text;
	return NULL;
}

static void print_reason(const struct net_answer *a)
{
	const char *text = explain(a);

	if (a->verdict == NET_NEEDS_HTTP)
		(void)printf("Reason: each request is decided");
	else
		(void)printf("Reason: %s", a->reason);
	if (a->rule)
		(void)printf(", by the rule '%s' (%s)", a->text, a->rule);
	else if (text)
		(void)printf(": %s", text);
	(void)printf("\n");
}

static int print_text(const struct question *q, struct err *e)
{
	char at[HOST_NAME_MAX_LEN + 16];
	bool some = q->o->verbose;
	size_t i;

	(void)printf("%s: %s%s%s%s%s\n", verdicts[q->answer.verdict], where(q, at),
		     q->method ? " " : "", q->method ? q->method : "", q->method ? " " : "",
		     q->method ? q->path : "");
	print_reason(&q->answer);
	if (q->answer.verdict == NET_NEEDS_HTTP)
		(void)printf("Ask again with --method and --path; TLS is opened there, and what "
			     "is not HTTP is refused.\n");
	if (q->sent_to[0])
		(void)printf("Sent to: %s\n", q->sent_to);
	for (i = 0; i < q->n_addresses; i++)
		some |= q->addresses[i].answer.verdict == NET_DENY;
	for (i = 0; i < q->n_addresses && some; i++) {
		const struct address *a = &q->addresses[i];

		(void)printf("Address: %s %s (%s%s%s)\n", a->text, words[a->answer.verdict],
			     a->answer.reason, a->class ? ": " : "", a->class ? a->class : "");
	}
	if (q->note[0])
		(void)printf("Note: %s\n", q->note);
	return flush_out(e);
}

static void set_rule(json_t *j, const struct net_answer *a)
{
	(void)json_object_set_new(j, "reason", json_string(a->reason));
	if (a->rule)
		(void)json_object_set_new(
			j, "rule", json_pack("{s:s, s:s}", "id", a->rule, "resource", a->text));
}

static int print_as_json(const struct question *q, const char *target, struct err *e)
{
	json_t *j = json_pack("{s:s, s:s, s:i, s:s, s:b}", "target", target, "host", q->host.text,
			      "port", (int)q->port, "decision", words[q->answer.verdict], "allowed",
			      q->answer.verdict == NET_ALLOW);
	json_t *list = json_array();
	size_t i;

	set_rule(j, &q->answer);
	for (i = 0; i < q->n_addresses; i++) {
		const struct address *a = &q->addresses[i];
		json_t *one = json_pack("{s:s, s:s}", "address", a->text, "decision",
					words[a->answer.verdict]);

		set_rule(one, &a->answer);
		if (a->class)
			(void)json_object_set_new(one, "class", json_string(a->class));
		(void)json_array_append_new(list, one);
	}
	(void)json_object_set_new(j, "addresses", list);
	if (q->method) {
		(void)json_object_set_new(j, "method", json_string(q->method));
		(void)json_object_set_new(j, "path", json_string(q->path));
	}
	if (q->sent_to[0])
		(void)json_object_set_new(j, "sent_to", json_string(q->sent_to));
	if (q->note[0])
		(void)json_object_set_new(j, "note", json_string(q->note));
	return print_json(j, e);
}

static int check_target(struct question *q, const char *target, struct err *e)
{
	_cleanup_(net_policy_freep) struct net_policy *p = NULL;
	struct ctx c;
	int r = parse_target(q, target, e);

	if (r == 0)
		r = take_request(q, e);
	if (r < 0)
		return r;
	translate(q);
	r = ctx_open(&c, e);
	if (r == 0)
		r = policy_scope(&c, q->o->sandbox, q->sandbox, e);
	if (r == 0)
		r = policy_load(&c, q->sandbox, &p, e);
	if (r == 0)
		r = decide(q, &c, p, e);
	if (r == 0)
		r = q->o->json ? print_as_json(q, target, e) : print_text(q, e);
	ctx_done(&c);
	return r < 0 ? r : q->answer.verdict == NET_DENY ? STATUS_FAILED : 0;
}

static int run_check(void *opt, struct args *args, struct err *e)
{
	_free_ struct question *q = calloc(1, sizeof(*q));

	if (!q)
		return err_errno(e, -ENOMEM, "cannot check");
	q->o = opt;
	return check_target(q, args->v[0], e);
}

#define O POLICY_OPT
static const struct opt opts[] = {
	O(OPT_STR, sandbox, 0, "sandbox", "SANDBOX", "with the rules of this sandbox too"),
	O(OPT_STR, protocol, 0, "protocol", "tcp|udp", "default: tcp"),
	O(OPT_STR, method, 0, "method", "METHOD", "an HTTP request with this method"),
	O(OPT_STR, path, 0, "path", "PATH", "and this path (default: the URL's, else /)"),
	O(OPT_FLAG, verbose, 'v', "verbose", NULL, "show also addresses that are allowed"),
	O(OPT_FLAG, json, 0, "json", NULL, "print JSON"),
};

const struct cmd policy_check_subs[] = {
	{ .name = "network",
	  .usage = "[OPTIONS] TARGET",
	  .brief = "say whether a host and port would be reached",
	  .text = "TARGET is a host, HOST:PORT, an address, or an URL; without a port it is 443. "
		  "The answer is the\n"
		  "proxy's: a name that is allowed is looked up, and its addresses are judged. The "
		  "status is 0 if it\n"
		  "is allowed or depends on the request, 1 if it is denied.",
	  .opts = opts,
	  .n_opts = ARRAY_SIZE(opts),
	  .min_args = 1,
	  .max_args = 1,
	  .size = sizeof(struct policy_args),
	  .run = run_check },
	{ .name = NULL },
};
