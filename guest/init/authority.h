#pragma once
/* The sandbox's own certificate authority, and what commands are told beside it: TRUST and ENV.
 *
 * A child writes the files, so that PID 1 never hangs on the guest's own, and while it does the boot goes on. Whoever needs them written waits:
 * authority_settle(). */
#include <sys/types.h>

#include "guest/init/env.h"
#include "wire/msg.h"

struct authority {
	int report;        /* of the child that writes; -1: none does */
	char *pem;         /* NULL: there is no authority */
	char *base64;      /* PROXY_CA_CERT_B64=..., with pem */
	const char *path;  /* of the bundle of all that are trusted, with pem */
	struct env *image; /* by IMAGE; NULL: nothing */
	struct env *given; /* by ENV; NULL: nothing */
	struct env *all;   /* what a command gets, borrowed by nobody: see env_hold() */
};

#define AUTHORITY_INIT \
	{ \
		.report = -1 \
	}

/* Dies only for want of memory; what cannot be written is noted. */
void authority_trust(struct authority *a, const char *pem);
/* All that was to be said before the first command was: an authority that the disk has from an earlier run, whose keeper is gone, is trusted no more. */
void authority_begin(struct authority *a);
void authority_env(struct authority *a, const struct wire_env *m);
/* What the image says; anything of ours and of ENV goes before it. */
void authority_image(struct authority *a, const struct wire_env *m);

/* Wait until the files are written, a few seconds at most. */
void authority_settle(struct authority *a);
