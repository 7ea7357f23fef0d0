#pragma once
/* What the files of bac-proxy share: one proxy, for one sandbox. */
#include "base/leak.h"
#include "policy/cred.h"
#include "policy/net.h"
#include "proxy/loop.h"
#include "proxy/names.h"
#include "proxy/receipts.h"
#include "proxy/relay.h"
#include "wire/proxy.h"

struct keeper;
struct pool;
struct resolver;
struct tls;
struct flow;
struct dropped;
struct dns_server;

/* Where a name is sent instead, as the user's setting says. */
struct detour {
	struct host host;
	uint16_t port;
	uint8_t addr[16], addr_len;
	uint16_t to_port;
};

/* A receipt of a question that was made lately. */
struct dns_fold {
	uint64_t key, until_s;
	uint32_t count;
};

enum { DNS_FOLDS_MAX = 512 };

/* The host's own way out. */
struct upstream {
	enum { UPSTREAM_NONE = 0, UPSTREAM_HTTP, UPSTREAM_SOCKS5 } kind;
	struct host host;
	uint16_t port;
	char user[256], pass[256]; /* "": none */
	char basic[700];           /* the value of Proxy-Authorization, "" */
	char no_proxy[PROXY_LIST_MAX + 1];
};

enum { FD_SUPERVISOR = 3, FD_MINDER, FD_AUDIT, FD_TCP, FD_DNS_TCP, FD_DNS_UDP, FD_PACKET };

struct proxy {
	struct loop loop;
	char sandbox[WIRE_NAME_MAX + 1];
	uint32_t generation;
	struct detour detours[PROXY_CONNECT_MAX];
	size_t n_detours;
	struct upstream upstream;
	struct net_policy *policy; /* NULL: denies */
	bool have_config, have_policy;
	struct cred_set *creds; /* NULL: none */
	struct leak_set *marks; /* NULL: none */
	struct keeper *keeper;
	struct pool *pool;
	struct tls *tls; /* NULL: nothing was opened yet */
	int trust_fd;    /* -1: none */
	struct names *names;
	struct receipts *receipts;
	struct resolver *resolver;
	struct dns_server *dns;
	struct dropped *dropped;
	struct watch supervisor, minder, listener;
	struct flow *flows; /* all that there are */
	unsigned n_flows, max_flows;
	bool accept_paused, full_said, fds_said;
	struct relay relay;
	struct dns_fold folds[DNS_FOLDS_MAX];
	uint8_t message[PROXY_MSG_MAX + 1]; /* the one that is being read */
};

static inline uint64_t proxy_now_s(struct proxy *p)
{
	return loop_now(&p->loop) / 1000;
}
