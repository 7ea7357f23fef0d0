#pragma once
/* What a sandbox may reach: network rules.
 *
 * Life: a builder collects rules, net_freeze() turns them into a policy, and a policy never changes again. Changing a rule
 * means freezing a new one and swapping the pointer. Nothing here makes a system call. A policy of zeros, and NULL, deny.
 *
 * A resource is HOST[:PORTS]:
 *     a.example      exactly that name, any port; not its subdomains
 *     *.x            one label more; **.x any number of labels more; neither is x itself
 *     a*b.x, a.*.x   '*' within a label: any run of bytes but '.', also none
 *     **             everything but the classes of host_addr_class(); '*' alone means the same
 *     192.0.2.7, [2001:db8::1], 192.0.2.0/24, 2001:db8::/32      addresses
 *     :443  :80,443  :8000-8010  :*                              ports; without: any
 * A method and a path may be added to a rule on a name: the rule then speaks of HTTP requests only.
 *     method  GET HEAD POST PUT PATCH DELETE OPTIONS CONNECT TRACE, or ANY; case does not matter, kept in capitals
 *     path    begins with '/'; '*' one segment, '**' any number; default "/" "**"; no query, fragment, '%', dot segment,
 *             repeated or trailing '/'
 *
 * Precedence. Deny beats allow, whatever the scope and however narrow. For one destination:
 *   1. a deny without method that matches -> DENY
 *   2. nothing that allows, with or without method, matches -> DENY
 *   3. rules with method match host and port (allow or deny) -> the connection NEEDS_HTTP: each
 *      request is decided by method and path: a deny that matches -> DENY; else an allow that
 *      matches, or an allow without method -> ALLOW; else DENY
 *   4. an allow without method that matches -> ALLOW
 * Of several that match alike, the answer names the one whose resource is narrowest.
 * A request's path is compared decoded, without a trailing '/'; one that readers may take differently (dot segments,
 * "//", an encoded '/' or '%', '\\') is refused where a rule with a path would have to be asked.
 *
 * A name that is allowed is still dialled only at addresses that net_decide_addr() allows: a deny on
 * an address or CIDR holds for names that resolve there, and an address with a class must be allowed
 * by a rule that names it: an address, a CIDR no wider than the class (host_addr_range()), or
 * "localhost[:PORTS]". Loopback in every form, also 127.0.0.0/8, is kept as "localhost". A deny holds
 * for everything it matches, "**" included, and for the IPv4 address inside an IPv6 one.
 *
 * Cost: a decision is under 2 microseconds for NET_RULES_MAX rules, of which few hang at one suffix (or prefix): those
 * are asked one by one. It allocates nothing and is safe for many threads. */
#include "policy/host.h"

enum {
	NET_RULES_MAX = 10000,
	NET_RESOURCE_MAX = 512,
	NET_PATH_MAX = 1024,
	NET_PORTS_MAX = 32,
	NET_ID_MAX = 63
};

enum net_scope { NET_GLOBAL = 1, NET_SANDBOX, NET_KIT };
enum net_verdict {
	NET_DENY = 0,
	NET_ALLOW,
	NET_NEEDS_HTTP /* only from net_decide() without a method */
};

/* One rule as it is written down. Texts are borrowed. */
struct net_rule {
	const char *id; /* unique; at most NET_ID_MAX bytes of [A-Za-z0-9._:-] */
	uint8_t scope;  /* enum net_scope */
	bool allow;
	const char *resource; /* one resource, not a comma list */
	const char *method;   /* NULL: not an HTTP rule */
	const char *path;     /* NULL: none given */
};

struct net_request {
	const struct host *host;
	uint16_t port;
	const char *method; /* NULL: the connection as such is asked about */
	const char *
		path; /* of the request, without query; at most its first NET_PATH_MAX bytes matter: a longer one is denied
	                       where a path rule would have to be asked */
};

struct net_answer {
	uint8_t verdict;  /* enum net_verdict */
	const char *rule; /* id of the rule that decided; NULL: none. Owned by the policy */
	const char *text; /* its resource; NULL: none */
	const char *
		reason; /* a fixed word: "default-deny", "domain-allowed", "domain-blocked", "address-allowed",
	                       "address-blocked", "method-allowed", "method-blocked", "private-address", "not-a-path",
	                       "no-policy" */
};

struct net_builder;
struct net_policy;

int net_builder_new(struct net_builder **ret) _must_check_; /* 0 or -ENOMEM */
struct net_builder *net_builder_free(struct net_builder *b);
DEFINE_FREEP(struct net_builder, net_builder_free)

/* Texts are copied. 0; -EINVAL (message names the column and what to write instead); -EEXIST (the id is there); -E2BIG; -ENOMEM.
 * After an error the builder is as before. */
int net_builder_add(struct net_builder *b, const struct net_rule *r, struct err *e) _must_check_;
int net_freeze(struct net_builder *b, struct net_policy **ret)
	_must_check_; /* 0 or -ENOMEM; b stays the caller's */
struct net_policy *net_policy_free(struct net_policy *p);
DEFINE_FREEP(struct net_policy, net_policy_free)

/* Cannot fail. For an address literal this is the whole decision, class included. */
struct net_answer net_decide(const struct net_policy *p, const struct net_request *q);

/* An address that an allowed name was resolved to: may it be dialled for this port? n is 4 or 16. Not asked about "localhost", as
 * net_decide() says all about it: a rule with a method opens no address for other names. */
struct net_answer net_decide_addr(const struct net_policy *p, const uint8_t *addr, size_t n,
				  uint16_t port);

/* Is there any port at which a rule would allow this host? False: its name must not be looked up. */
bool net_may_look_up(const struct net_policy *p, const struct host *h);

/* Check one resource, and write it as it is kept (lower case, IDNA, ports sorted and joined). ret_max is at least
 * NET_RESOURCE_MAX + 1. 0 or -EINVAL with a message. */
int net_resource_check(const char *text, char *ret, size_t ret_max, struct err *e) _must_check_;
int net_method_check(const char *text, char *ret, size_t ret_max, struct err *e) _must_check_;
int net_path_check(const char *text, struct err *e) _must_check_;

/* ---- what a certificate may be made for ---- */

/* The smallest set of hosts that X.509's name constraints (RFC 5280 4.2.1.10) can say and that has all that a resource matches. */
struct net_span {
	bool all;       /* every name, and no address */
	uint8_t n_addr; /* 4 or 16: the addresses of a prefix; 0: names */
	uint8_t bits;
	uint8_t addr[16];
	char name[HOST_NAME_MAX_LEN + 1]; /* it and all below it */
};
/* 0, or -EINVAL: it is no resource. */
int net_resource_span(const char *resource, struct net_span *ret) _must_check_;

/* The resources of the rules with a method, allow and deny: *at is 0 before the first call. NULL: no more. Owned by the policy. */
const char *net_http_resource(const struct net_policy *p, size_t *at);

/* ---- a whole policy as text: what a command writes and the proxy reads. First line "bac-net-policy 1", then a rule a
 * line, fields separated by one tab: id, global|sandbox|kit, allow|deny, method or -, path or -, resource; the last line is
 * "end N" with the number of rules: a text that was cut is refused. At most NET_TEXT_MAX bytes. ---- */
enum { NET_TEXT_MAX = 8 * 1024 * 1024 };
struct buf;
int net_text_begin(struct buf *out) _must_check_;
int net_text_rule(struct buf *out, const struct net_rule *r)
	_must_check_; /* 0, -ENOBUFS, -EINVAL */
int net_text_end(struct buf *out, size_t n_rules) _must_check_;
/* 0; -EINVAL with line and column; -E2BIG; -ENOMEM. The text is foreign to it: hostile bytes are fine. */
int net_text_parse(const char *text, size_t n, struct net_policy **ret, struct err *e) _must_check_;

/* ---- the presets: data/policy/net/allow-all, balanced, deny-all; lines "GROUP RESOURCE", '#' comments. "GROUP +**.x" stands
 * for x and for **.x. Parsed by this; resources come as they are kept. What each() returns below 0 ends it. ---- */
/* The text of a preset, or NULL. */
const char *net_preset_find(const char *name);
int net_preset_parse(const char *text, size_t n,
		     int (*each)(void *arg, const char *group, const char *resource, struct err *e),
		     void *arg, struct err *e) _must_check_;
