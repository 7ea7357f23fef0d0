#pragma once
/* One command in a sandbox, seen from the user's terminal: bytes, signals and sizes go in, bytes and
 * the exit come out. */
#include "cli/door.h"
#include "cli/keys.h"

enum { SESSION_STREAM = 1 };

struct session_opts {
	bool input;  /* pass stdin on */
	bool tty;    /* the command has a terminal: raw mode, sizes */
	bool viewer; /* attached to a job: signals detach instead of being passed on */
	bool redraw; /* what runs there is to draw anew, whatever the size */
	const struct keys
		*keys; /* with viewer and tty: what leaves it running; NULL: KEYS_DEFAULT */
	int in_fd;     /* where input comes from (0) */
	int out_fd, err_fd;
};

/* After the opening message (EXEC, ATTACH, COPY_*) was queued on the door: carry everything until EXIT.
 * 0 and *ret (text in *ret_text, at least WIRE_TEXT_MAX + 1 bytes), 1 if the user detached, or
 * -Exxx with a message. */
int session_run(struct door *d, const char *name, const struct session_opts *o,
		struct wire_exit *ret, char *ret_text, struct err *e) _must_check_;
