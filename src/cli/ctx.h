#pragma once
/* What a command works with: the directories and the state. */
#include "cli/say.h"
#include "state/settings.h"
#include "state/state.h"
#include "sys/dirs.h"

struct ctx {
	struct dirs dirs;
	struct state *state;
};

/* Opens both, and tells the user on stderr what was repaired. ctx_done() in any case. */
int ctx_open(struct ctx *c, struct err *e) _must_check_;
void ctx_done(struct ctx *c);

/* run/<id> on the heap: where the sandbox's socket is. */
char *ctx_run_dir(const struct ctx *c, const char *id);

/* Ask on the terminal; true for yes. Without a terminal: -ENOTTY with "use --force". */
int ask(const char *question, struct err *e);

/* Write a JSON value to stdout and free it. 0 or -Exxx. */
struct json_t;
int print_json(struct json_t *j, struct err *e);

/* "2026-11-29T16:00:00Z" into dst (at least 24). */
const char *utc(char *dst, size_t max, int64_t seconds);

/* What the last run of a sandbox left: run.json. */
struct last_run {
	bool known;   /* the file is there and whole */
	bool running; /* it says "running": without a lock holder, that run was cut off */
	bool clean;
	int64_t at;
	char reason[256];
};
void last_run_read(const struct ctx *c, const char *id, struct last_run *ret);

/* If the last run was cut off, say so once and note it as ended. The caller holds the lock. */
void last_run_settle(const struct ctx *c, const struct sandbox *b);
