#pragma once
/* Answers that come later: from a call to a job in another thread, and from its end to the answer. */
#include "workspace/fs-priv.h"

/* Have what->run() called in a thread. what is copied; its handles, and owner, are kept until it has
 * ended; own descriptors are closed then. FS_LATER, or, where there is no thread: what came of it here
 * (!waits), -ENOLCK (waits). */
ssize_t late_run(struct fs *f, struct call *c, const struct job *what, bool waits);
/* A job that has ended: write its answer, let go of what it held. Bytes written. */
size_t late_end(struct fs *f, struct job *j, void **ret_token);
/* Cancel waits on this share (NULL: all), or of this request. */
void late_cancel_share(struct fs *f, const struct share *s);
void late_cancel_unique(struct fs *f, uint64_t unique);
/* Let go of what all jobs hold, unanswered; the threads have stopped. */
void late_drop_all(struct fs *f);
