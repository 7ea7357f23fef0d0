#pragma once
/* Which modes of a terminal a program has switched on, as far as a terminal that joins later, or is left, must be told. */
#include "base/buf.h"

enum { TERM_MODES = 16, TERM_PARAMS_MAX = 32, TERM_TEXT_MAX = 512 };

/* Zeros: a terminal as it is when it is new. */
struct term {
	uint8_t state;  /* of the parser */
	uint8_t mark;   /* '?', '>', '<', '=' or 0 */
	uint8_t n;      /* bytes in params */
	uint16_t on;    /* one bit for each mode of the table */
	uint8_t kitty;  /* how often the kitty keyboard protocol was pushed */
	uint16_t flags; /* and with what, last */
	bool modify;    /* xterm's modifyOtherKeys */
	char params[TERM_PARAMS_MAX + 1];
};

/* What the program wrote, in any pieces. Hostile bytes are fine. */
void term_see(struct term *t, const void *p, size_t n);

/* It draws on a screen of its own accord: a change of the size is enough for it to draw all of it anew. */
bool term_draws(const struct term *t);

/* What brings another terminal into these modes, or back to none of them. 0 or -ENOBUFS, -ENOMEM; at most TERM_TEXT_MAX bytes. */
int term_put(const struct term *t, struct buf *out) _must_check_;
int term_undo(const struct term *t, struct buf *out) _must_check_;
