#pragma once
/* What net.c (the proxy, its minder, the log) and keep.c (the keeper) share. */
#include "supervisor/minder.h"
#include "supervisor/net.h"

/* A conversation that may be replaced by a next one: freed when the loop has let go of it. */
struct link {
	uv_poll_t poll;
	int fd;
	struct sup *sup;
};

/* The policy, or the credentials: what is in force is told to the keeper first and then to the proxy. Numbers are of one sequence; 0: none. */
struct net_text {
	int fd;
	uint32_t number;
	uint32_t at_keeper, kept;   /* that the keeper was told, and has applied */
	uint32_t at_proxy, applied; /* likewise the proxy */
};

struct netdoor {
	pid_t minder;
	int minder_pidfd, minder_fd, words_fd, tap;
	uv_poll_t minder_poll, words_poll;
	struct slog_carry words_carry;
	struct link *proxy, *audit, *keeper;
	struct net_text policy, cred;
	uint32_t generation, last, ping;
	uv_timer_t late;        /* the proxy owes an answer */
	uv_timer_t keeper_late; /* the keeper does */
	bool needed;            /* there is to be a keeper */
	struct buf marks;       /* of the keeper's values, as it said them */
	char *ca;               /* PEM of its authority; NULL: not yet */
	char *cred_bytes;       /* of the credentials' file: env borrows from it */
	struct wire_env env;
	char remark[MINDER_TEXT_MAX];
};

/* net.c */
void net_tell_minder(struct sup *s, enum minder_says what, const char *text);
/* The proxy gets what it does not have and may have. */
void net_tell_texts(struct sup *s);
void net_tell_marks(struct sup *s);
/* Answer those who wait for it, if keeper and proxy have applied it. */
void net_settle(struct sup *s, const struct net_text *t);
bool net_proxy_owes(const struct netdoor *n);
/* The one before is closed; fd is consumed. */
void net_link(struct sup *s, struct link **at, int fd, uv_poll_cb fn);
void net_unlink(struct link **at);
/* A word about the sandbox, onto the chain of receipts. */
void net_note(struct sup *s, const char *reason, const char *note);

/* keep.c */
/* Look into the texts that came with the orders. 0, or -Exxx with a message. */
int keep_begin(struct sup *s, struct err *e) _must_check_;
/* A new keeper: fd is consumed. why: "" for the first. */
void keep_new(struct sup *s, int fd, const char *why);
/* Another text is in force. */
void keep_text(struct sup *s, struct net_text *t);
/* Go on with what keeper and proxy must be told. */
void keep_step(struct sup *s);
/* May the proxy be told? */
bool net_kept(const struct sup *s, const struct net_text *t);
void keep_ask(struct sup *s);
void keep_free(struct netdoor *n);
