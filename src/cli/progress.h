#pragma once
/* How a build shows itself on stderr: on a terminal one line that is written over, with the seconds; else a
 * line for each step. */
#include "image/image.h"

struct progress {
	struct image_progress p; /* for struct image_build */
	uint64_t began;
	char step[160];        /* what is shown */
	bool tty, quiet, open; /* open: a line on the terminal waits for its end */
};

/* Also: SIGINT, SIGTERM and SIGHUP no longer end us by themselves, so that a build can clean up. */
void progress_begin(struct progress *p, bool quiet);

/* Leave the terminal with a fresh line. */
void progress_end(struct progress *p);

/* The status to exit with when a signal ended the build; 0 without one. */
int progress_signal(void);
