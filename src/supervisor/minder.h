#pragma once
/* The minder: a child of the supervisor that is not sealed, and so can do what the supervisor no longer can: start
 * programs. It never reads a byte that the guest, the proxy, the keeper or bac-audit wrote.
 *
 * Conversation: SEQPACKET, a datagram is a byte that says what, and a text; some bring a descriptor. The minder is trusted. */
#include "base/err.h"
#include "wire/order.h"

#define MINDER_SAYS(X) \
	X(TAP, 'T') /* descriptor: QEMU's end of the wire; once, first */ \
	X(AUDIT, \
	  'A') /* descriptor: the supervisor's socket to bac-audit; a later one takes the place of an earlier */ \
	X(PROXY, \
	  'P') /* descriptor: control of a proxy that has just been started; text: why, "" for the first */ \
	X(KEEPER, \
	  'C') /* descriptor: control of a keeper that has just been started; text: why, "" for the first */ \
	X(ASK, 'Q')            /* something waits for the proxy: does it answer? */ \
	X(SAY, 'S')            /* a line for the sandbox's log */ \
	X(FAIL, 'F')           /* it cannot start; nothing more will come */ \
	X(REPLACE, 'K')        /* from the supervisor: another proxy. Text: what this one did */ \
	X(REPLACE_KEEPER, 'R') /* likewise: another keeper */ \
	X(SLOW, \
	  'L') /* from the supervisor, about once a second: the proxy owes an answer (stuck.h) */ \
	X(SLOW_KEEPER, 'Z') /* likewise: the keeper */ \
	X(NEED, 'N')        /* from the supervisor: a keeper is needed from now on */

enum minder_says {
#define X(name, c) MINDER_##name = (c),
	MINDER_SAYS(X)
#undef X
};

enum { MINDER_TEXT_MAX = 512 };

/* For the child, right after the fork; never returns. sock is its end of the conversation, words takes what its programs
 * write to stderr; every other descriptor is closed. It ends when sock does, and dies with parent. */
_noreturn_ void minder_main(const struct wire_order *o, bool needs_keeper, int sock, int words,
			    pid_t parent);
