#pragma once
/* bac batch: one task, many fresh sandboxes. What its files share: batch.c the command and what is kept in OUT/batch.json, batch-run.c the steps of one
 * run, batch-loop.c how many go at once, batch-report.c what came of it.
 *
 * Every step of a run is a program, mostly bac itself: so a run is what its user could have typed, and each is in its run's log.txt. A run is done
 * when its result.json is there, which is written last and whole: whatever ends us, the next call begins those that have none anew. */
#include <jansson.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/opt.h"
#include "cli/batch-agent.h"

enum {
	BATCH_RUNS_MAX = 999,
	BATCH_PROMPT_MAX = 128 * 1024,
	BATCH_NAME_MAX = 64,
	BATCH_PATH_MAX = 4096
};

struct batch_args {
	uint32_t n, jobs, cpus;
	uint64_t timeout_ms, memory;
	const char *prompt, *out, *tmpl;
	bool clone, json, keep;
	struct opt_list kits, kit_arg, kit_args_file, env, env_file, allow_network, deny_network,
		credentials, approve;
};

/* What holds for all runs. */
struct batch {
	const struct batch_args *o;
	char out[BATCH_PATH_MAX];
	char bac[BATCH_PATH_MAX]; /* the program */
	char id[16];
	char head[80]; /* the commit that runs begin with; "" without a repository */
	char *prompt;
	const struct batch_agent *agent; /* NULL: extra says it all */
	char **extra;                    /* what came after "--" */
	size_t n_extra;
	json_t *spec; /* as in batch.json */
};

struct batch_run {
	uint32_t number;
	char dir[BATCH_PATH_MAX];
	char name[BATCH_NAME_MAX];
	unsigned step;
	pid_t pid; /* of the step; 0: none */
	int pidfd;
	uint64_t since, step_since, deadline; /* fd_now_ns() */
	bool failed, timed_out, cut;
	json_t *result;
};

/* ---- batch-run.c ---- */
/* Begin, in a folder that is made anew. 0, or -Exxx with a message. */
int batch_run_begin(const struct batch *b, struct batch_run *r, uint32_t number, struct err *e)
	_must_check_;
/* Its program has ended, or its time is over: the next step. 1: it goes on; 0: it is done, and result.json is there. */
int batch_run_next(const struct batch *b, struct batch_run *r, struct err *e) _must_check_;
/* End it, and remove its sandbox: it has no result and is done anew the next time. */
void batch_run_cut(const struct batch *b, struct batch_run *r);
/* OUT/run-NNN. */
void batch_run_dir(const char *out, uint32_t number, char ret[BATCH_PATH_MAX]);

/* ---- batch-loop.c ---- */
/* All runs that have no result. 0; a signal's number if one came; -Exxx with a message. */
int batch_loop(const struct batch *b, struct err *e) _must_check_;

/* ---- batch-report.c ---- */
/* A run's result; NULL if it has none. The caller's. */
json_t *batch_result(const char *out, uint32_t number);
/* Print the table, or with json the whole, and write OUT/report.json; *ret_failed: how many runs have ended and are not ok.
 * 0, or -Exxx with a message. */
int batch_report(const char *out, bool json, size_t *ret_failed, struct err *e) _must_check_;
