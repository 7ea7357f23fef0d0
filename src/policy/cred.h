#pragma once
/* Which credential may be put on which request: uses. Holds no value, and names none: a use says under which key the store has it.
 *
 * Life: as net.h. A command composes the text (cred_text_*), keeper and proxy each parse their own copy and never change it; keeper
 * decides by its own. Nothing here makes a system call. A set of zeros, and NULL, has no use in it.
 *
 * The text: first line "bac-credentials 1", then a line for each use, fields separated by one tab, in the order of struct cred_use
 * ("-" for what is not there), the last line "end N". At most CRED_TEXT_MAX bytes. */
#include "base/buf.h"
#include "policy/host.h"

enum {
	CRED_USES_MAX = 1024,
	CRED_TEXT_MAX = 1024 * 1024,
	CRED_FILE_MAX = CRED_TEXT_MAX + 256 * 1024,
	CRED_ENVS_MAX = 256,
	CRED_ID_MAX = 63, /* [A-Za-z0-9._:-] */
	CRED_ORIGIN_MAX = 127,
	CRED_NAME_MAX = 63, /* services */
	CRED_USERNAME_MAX = 255,
	CRED_KEY_MAX = 255,    /* keys of the store: secrets/store.h */
	CRED_HEADER_MAX = 63,  /* a field's name, lower case */
	CRED_FORMAT_MAX = 255, /* exactly one %s, no control byte */
	CRED_PLACEHOLDER_MIN = 12,
	CRED_PLACEHOLDER_MAX = 255,
	CRED_PATH_MAX = 255,
};

/* kind, as written */
#define CRED_KINDS(X) \
	X(HEADER, \
	  "header") /* field `header` becomes `format` with the value; what the client sent in it goes */ \
	X(BASIC, \
	  "basic") /* Authorization: Basic of `username` and the value; what the client sent goes */ \
	X(CUSTOM, "custom") /* `placeholder` becomes the value, at the places of `where` */ \
	X(OAUTH, \
	  "oauth") /* a resource of an OAuth service: `placeholder` (the access sentinel) becomes the access token, in Authorization */ \
	X(TOKEN, "token") /* its token endpoint, `path`: `placeholder` (the refresh sentinel) in the request's body becomes the refresh token; \
	                       tokens of the answer go into the store, and sentinels to the client */
enum cred_kind {
	CRED_KIND_NONE = 0,
#define X(n, s) CRED_##n,
	CRED_KINDS(X)
#undef X
		CRED_KIND_N
};

#define CRED_STATES(X) \
	X(READY, "ready") \
	X(MISSING, \
	  "missing") /* the store has no value: requests are refused, and told what to run */ \
	X(UNAPPROVED, "unapproved") /* nobody has approved this use: likewise */
enum cred_state {
	CRED_STATE_NONE = 0,
#define X(n, s) CRED_##n,
	CRED_STATES(X)
#undef X
		CRED_STATE_N
};

enum {
	CRED_IN_HEADERS = 1,
	CRED_IN_BASIC = 2,
	CRED_IN_QUERY = 4,
	CRED_IN_BODY = 8,
	CRED_IN_ALL = 15
};

struct cred_use {
	const char *id; /* unique */
	uint8_t kind, state;
	const char *origin;  /* "builtin", "user", "kit:NAME", "file:NAME" */
	const char *service; /* "anthropic"; a custom secret: its variable */
	const char
		*key; /* of the store (secrets/store.h); what the proxy may ask for by this use */
	const char *resource; /* HOST[:PORTS] as net.h writes it; without ports: 443 */
	const char *header, *format, *username;
	const char *placeholder;  /* CUSTOM, OAUTH, TOKEN */
	const char *placeholder2; /* TOKEN: the access sentinel */
	uint8_t where;            /* CUSTOM: CRED_IN_... */
	const char *path;         /* TOKEN: absolute, compared with the request's path */
	const char *
		fields; /* TOKEN: "access,refresh,expires,scope": names of members of the answer's JSON object */
};

struct cred_set;

/* The text. Writers: nothing is kept of what they are given. */
int cred_text_begin(struct buf *out) _must_check_;
/* Checks it whole. 0; -EINVAL with a message; -ENOBUFS; -ENOMEM. */
int cred_text_use(struct buf *out, const struct cred_use *u, struct err *e) _must_check_;
int cred_text_end(struct buf *out, size_t n_uses) _must_check_;

/* 0; -EINVAL with line and column; -E2BIG; -ENOMEM. Hostile bytes are fine. One placeholder of two keys is refused. */
int cred_text_parse(const char *text, size_t n, struct cred_set **ret, struct err *e) _must_check_;
struct cred_set *cred_set_free(struct cred_set *s);
DEFINE_FREEP(struct cred_set, cred_set_free)

/* The file that a command hands to a supervisor: such a text, and behind it lines "env NAME=value", defaults for the environment of every command
 * inside (at most CRED_ENVS_MAX; no NUL). How many bytes the text has; the lines behind it are checked. 0 or -EINVAL; the text itself is not looked into. Hostile bytes are fine. */
int cred_file_split(const char *p, size_t n, size_t *ret_text_n) _must_check_;

/* The uses of a destination, in the order of the text: *at is 0 before the first call. NULL: no more. Owned by the set. */
const struct cred_use *cred_next(const struct cred_set *s, const struct host *h, uint16_t port,
				 size_t *at);
/* By id. */
const struct cred_use *cred_find(const struct cred_set *s, const char *id);
/* Must the TLS of this destination be opened? True if it has a use in any state. */
bool cred_opens(const struct cred_set *s, const struct host *h, uint16_t port);
/* All of them, in order; NULL beyond the last. */
const struct cred_use *cred_at(const struct cred_set *s, size_t i);
/* Does this use speak of this destination? */
bool cred_matches(const struct cred_use *u, const struct host *h, uint16_t port);
