#pragma once
/* A build under way: the lock, the directory it works in, the log, and what the user is told. Whatever
 * happens, image_work_end() leaves nothing half made. */
#include "image/recipe.h"
#include "image/run.h"
#include "image/store.h"

struct image_work {
	const struct image_build *b;
	const char *kind; /* IMAGE_TEMPLATES, IMAGE_KERNELS or IMAGE_LAYERS */
	struct image_signals signals;
	int dir;  /* cache/kind */
	int lock; /* held */
	int log;
	char *log_path;
	char tmp[IMAGE_TMP_MAX]; /* below dir; "" until it is made */
	char *tmp_path;
	char *tmpdir;    /* TMPDIR of what we run */
	char cause[256]; /* the likely reason, seen in what a program said */
	int cause_code;
	unsigned lines; /* of output since the last step */
	const char *step;
};

/* Take the lock (waiting for another build, which is said), clear what killed builds left, and hold the
 * signals. image_work_end() also after a failure. */
int image_work_begin(struct image_work *w, const struct image_build *b, const char *kind,
		     struct err *e) _must_check_;
void image_work_end(struct image_work *w);

/* Make the directory to work in and the log. need: bytes of disk space. */
int image_work_start(struct image_work *w, uint64_t need, struct err *e) _must_check_;

void image_work_say(struct image_work *w, const char *step);

/* Run a program of the build; what it says goes to the log. On failure the message has the likeliest
 * reason and names the log. step is said first; line may be NULL. */
int image_work_run(struct image_work *w, const char *step, const char *const *argv,
		   const char *const *env, struct err *e) _must_check_;

/* tmp_path/name on the heap, or NULL. */
char *image_work_path(const struct image_work *w, const char *name);

/* 0, or -EINTR once a signal is pending. */
int image_work_check(const struct image_work *w, struct err *e) _must_check_;

/* Are these programs there (a NULL-terminated list)? All that are missing are named in one line. */
int image_work_programs(const char *const *names, struct err *e) _must_check_;
