#pragma once
/* The keys that leave a command running: looked for in what the user types, which otherwise passes on unchanged.
 *
 * A program may have asked the terminal to report keys by CSI sequences (the kitty keyboard protocol: ESC [ 92 ; 5 u for Ctrl-\; xterm's modifyOtherKeys: ESC [ 27 ; 5 ;
 * 92 ~). These count as the keys that they are. */
#include "base/err.h"

enum { KEYS_MAX = 8, KEYS_HELD_MAX = 256 };

#define KEYS_DEFAULT "ctrl-\\"

struct keys {
	uint8_t seq[KEYS_MAX];
	size_t n;  /* 0: nothing leaves */
	size_t at; /* so many of them were typed */
	uint8_t held[KEYS_HELD_MAX];
	size_t n_held; /* bytes of these: they pass on if another key follows */
};

/* "ctrl-p,ctrl-q", "ctrl-\", "a"; "none": no keys. 0 or -EINVAL with a message. */
int keys_parse(const char *text, struct keys *ret, struct err *e) _must_check_;

/* What passes on goes to out, which has room for n + KEYS_HELD_MAX bytes. True: all of the keys were typed; what came after them is dropped. */
bool keys_feed(struct keys *k, const void *in, size_t n, uint8_t *out, size_t *ret_n);
