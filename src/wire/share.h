#pragma once
/* The conversation between a supervisor and its workspace server (docs/protocol/share.md).
 *
 * One SEQPACKET datagram is one message. The supervisor is trusted and its messages are checked all the
 * same; what the server says is hostile, since the guest may have taken it over. Both are built from
 * the same tree: the format is not kept compatible. */
#include "wire/msg.h"

enum share_from { FROM_SUPERVISOR = 1, FROM_WORKSPACE = 2 };

/* type, number, who may send it, descriptors that come with it */
#define SHARE_TYPES(X) \
	X(ADD, 1, FROM_SUPERVISOR, 1) \
	X(REMOVE, 2, FROM_SUPERVISOR, 0) \
	X(RULES, 3, FROM_SUPERVISOR, 0) \
	X(START, 4, FROM_SUPERVISOR, 0) \
	X(MARKS, 5, FROM_SUPERVISOR, 0) \
	X(ANSWER, 64, FROM_WORKSPACE, 0) \
	X(REFUSED, 65, FROM_WORKSPACE, 0) \
	X(CHANGED, 66, FROM_WORKSPACE, 0)

enum share_type {
#define X(name, num, from, fds) SHARE_##name = (num),
	SHARE_TYPES(X)
#undef X
};

enum { SHARE_RO = 1, SHARE_FILE = 2, SHARE_FLAGS = 3 };

enum share_rule_kind { SHARE_HIDE = 1, SHARE_PROTECT = 2, SHARE_ALLOW = 3 };
/* What a REFUSED may be besides HIDE and PROTECT: a secret was in what the guest wrote. LEAK: it is written, and told. */
enum share_leak_kind { SHARE_LEAK = 4, SHARE_LEAK_REFUSED = 5 };

struct share_rule {
	uint8_t kind; /* enum share_rule_kind */
	const char *pattern;
};

struct share_add {
	uint32_t id;
	uint8_t flags;    /* of SHARE_FLAGS */
	const char *path; /* absolute, as the guest sees it; for messages only */
};

struct share_rules {
	uint32_t n;
	struct share_rule v[SHARE_RULES_MAX];
};

struct share_marks {
	bool refuse; /* a write that holds a secret: EACCES, else it is only told */
	uint32_t n;
	const uint8_t *p; /* a leak_set (base/leak.h) */
};

struct share_answer {
	int32_t code;     /* 0 or -errno */
	const char *text; /* what went wrong, may be empty */
};

struct share_refused {
	uint8_t kind;     /* SHARE_HIDE, SHARE_PROTECT, SHARE_LEAK, SHARE_LEAK_REFUSED */
	uint32_t share;   /* its id */
	uint32_t dropped; /* refusals since the last message that were not told */
	const char *path; /* relative to the share */
	const char *rule; /* the pattern that decided; LEAK: the name of the secret */
	const char *op;   /* what the guest wanted, one word */
};

/* A message of any type. The texts are borrowed from the bytes that were parsed. */
struct share_msg {
	uint8_t type; /* enum share_type */
	uint32_t seq; /* chosen by the supervisor; an ANSWER repeats it; 0 in REFUSED and CHANGED */
	union {
		struct share_add add;
		uint32_t remove; /* id */
		struct share_rules rules;
		struct share_marks marks;
		struct share_answer answer;
		struct share_refused refused;
		struct wire_changed changed; /* as it goes on to the guest */
	};
};

/* Write one datagram into p, at most max bytes. Its length, or -ENOBUFS: too long for max, or for what the
 * parser takes. Texts of ANSWER and REFUSED are for people: they are cut rather than refused. */
ssize_t share_put(const struct share_msg *m, void *p, size_t max) _must_check_;

/* One whole datagram that came from `from` with n_fds descriptors. WIRE_OK or WIRE_E_*; *ret is set on
 * WIRE_OK only. */
int share_parse(struct share_msg *ret, enum share_from from, const void *p, size_t n, size_t n_fds);
