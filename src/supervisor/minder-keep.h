#pragma once
/* The minder's second pair: bac-keeper and bac-fetch. Started when somebody needs them, and from then on kept up: the keeper dies and takes
 * bac-fetch with it; bac-fetch dies alone. The minder calls these; each function that is told of something acts at once, or sets a deadline. */
#include "supervisor/minder.h"
#include "supervisor/stuck.h"

struct keep {
	const struct wire_order *o;
	int null, words;     /* borrowed */
	pid_t keeper, fetch; /* 0: none */
	int fd;              /* to the keeper, or -1 */
	struct stuck slow;   /* the keeper, when it did not answer */
	bool wanted;
	unsigned falls, fetch_falls;
	char why[160];                           /* the keeper went down */
	uint64_t start_at, fetch_at, stopped_at; /* deadlines; MINDER_NEVER if not set */
	uint64_t up_since, fetch_since;
};

void keep_init(struct keep *k, const struct wire_order *o, int null, int words);
/* From now on there is to be a keeper. 0, or -Exxx with a message: it is tried again. Nothing if it was wanted before. */
int keep_want(struct keep *k, struct err *e) _must_check_;
/* A child ended. True: it was one of these. */
bool keep_gone(struct keep *k, pid_t pid, int status);
/* One was stopped by somebody, or goes on. True: it was one of these. */
bool keep_stopped(struct keep *k, pid_t pid, bool stopped);
/* The keeper is to be ended, and another to be started; why goes behind "the keeper of credentials". */
void keep_replace(struct keep *k, const char *why);
/* The keeper owes an answer: told about each second. It is replaced if it is stuck. */
void keep_slow(struct keep *k);
/* Until then nothing is to be done. */
uint64_t keep_deadline(const struct keep *k);
/* True: a keeper was started, and waits for keep_link(). */
bool keep_on_time(struct keep *k);
/* Keeper and proxy get a conversation, where there are both; proxy is the minder's socket to it, or -1. */
void keep_link(struct keep *k, int proxy);
/* What the proxy is to trust, where there is a keeper. */
void keep_trust(struct keep *k, int proxy);

/* minder.c, for these */
extern const uint64_t MINDER_NEVER;
int minder_say(enum minder_says what, int fd, const char *text);
int minder_pair(int *ret_a, int *ret_b) _must_check_;
uint64_t minder_again(unsigned falls); /* when to start what has fallen so often before */
bool minder_well(uint64_t up_since);   /* it was up for so long that the next fall is a first one */
