#pragma once
/* What the files net*.c share: a pattern, a frozen rule, and the index. */
#include "policy/net.h"

enum net_pattern_kind {
	PAT_ALL,   /* "**" */
	PAT_NAME,  /* a name without '*'; also "localhost" */
	PAT_ONE,   /* "*.x" */
	PAT_MANY,  /* "**.x" */
	PAT_GLOB,  /* anything else with '*' */
	PAT_RANGE, /* an address or CIDR */
};

struct net_ports {
	uint16_t lo, hi;
};

/* One resource, taken apart. */
struct net_pattern {
	uint8_t kind;    /* enum net_pattern_kind */
	uint8_t n_addr;  /* PAT_RANGE: 4 or 16 */
	uint8_t bits;    /* PAT_RANGE: length of the prefix */
	bool cidr;       /* PAT_RANGE: it was written with a '/' */
	bool ported;     /* ports were written, if only ":*" */
	uint8_t n_ports; /* 0: any */
	uint16_t
		suffix; /* names: where the labels without '*' at its end begin in host; its length if there are none */
	uint8_t addr[16];
	struct net_ports ports[NET_PORTS_MAX];
	char host[HOST_NAME_MAX_LEN + 1]; /* names: canonical */
};

/* 0 or -EINVAL with a message. */
int net_pattern_parse(struct net_pattern *ret, const char *text, struct err *e) _must_check_;

/* Does a pattern speak of this host, at any port? "**" speaks of no address that has a class (host_addr_class()), nor of localhost. */
bool net_pattern_match(const struct net_pattern *p, const struct host *h);

/* Does the part of a pattern in front of its suffix match these labels? Both are without the dot that follows. */
bool net_glob_match(const char *glob, size_t n_glob, const char *labels, size_t n);

/* ---- HTTP ---- */
enum { NET_METHOD_ANY = 1 << 15 };

/* The bit of a method, or 0 if it has none. */
uint16_t net_method_bit(const char *method, size_t n);

/* A path of a request as it is compared: decoded, without a trailing '/'. False: it cannot be compared. */
bool net_path_clean(const char *path, char ret[NET_PATH_MAX + 1]);
bool net_path_match(const char *pattern, const char *path);

/* ---- rules ---- */
struct net_built {
	struct net_pattern pattern;
	uint16_t method; /* bits; 0: not an HTTP rule */
	uint8_t scope;
	bool allow;
	const char *text, *path; /* the resource, canonical; the path: NULL is any */
	char id[];               /* and behind it what they point to */
};

struct net_builder {
	struct net_built **rules;
	size_t n, cap;
	uint32_t *ids; /* open addressing: 1 + the index of a rule, by its id; twice cap slots */
};

/* What is left of a rule in a policy. */
struct net_frozen {
	const char *id, *text, *path;
	const char *glob; /* of PAT_GLOB: what stands before the suffix */
	uint16_t n_glob;
	uint16_t method;
};

/* What a decision looks at: one rule, at its node. */
struct net_item {
	uint32_t rule;
	uint32_t ports; /* the first of n_ports ranges */
	uint8_t n_ports;
	uint8_t kind; /* enum net_pattern_kind */
	uint8_t bits; /* PAT_RANGE */
	bool allow, http;
};

/* A suffix of names, or a prefix of addresses, with the rules that hang there. */
struct net_node {
	const char *key; /* the suffix, or the address */
	uint32_t hash;
	uint32_t first, n; /* items */
	uint16_t len;      /* of the key in bytes */
	uint8_t family;    /* 0: a suffix; else the bytes of an address */
	uint8_t bits;
};

struct net_policy {
	bool ready; /* zeros deny */
	size_t n_rules, n_nodes, n_ports, mask;
	struct net_frozen *rules;
	struct net_item *items; /* of each node in a row */
	struct net_ports *ports;
	struct net_node *nodes; /* node 0: what has no suffix */
	uint32_t *table;        /* open addressing: 1 + node */
	char *texts;
	uint64_t lens4, lens6[3]; /* which lengths of prefixes there are */
};

#define NET_HASH_INIT 2166136261U

static inline uint32_t net_hash_byte(uint32_t h, uint8_t c)
{
	return (h ^ c) * 16777619U;
}

static inline uint32_t net_hash_end(uint32_t h)
{
	h ^= h >> 16;
	h *= 0x7feb352dU;
	return h ^ h >> 15;
}

/* Keep only the first bits of an address. */
void net_addr_mask(uint8_t *addr, size_t n, unsigned bits);
uint32_t net_addr_hash(const uint8_t *masked, size_t n, unsigned bits);

/* The node of a suffix (family 0; h of its bytes from right to left) or of a masked address; 0 if there is none. */
uint32_t net_node_find(const struct net_policy *p, const struct net_node *key);
