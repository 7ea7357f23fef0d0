#pragma once
/* skopeo, the program that speaks with registries. It is run as it is (1.9 and later), with nobody's configuration but the
 * host's own below /etc/containers, and with no password on a command line: an authfile comes on a descriptor. */
#include "base/buf.h"
#include "base/err.h"

struct image_skopeo {
	const char *home;       /* takes the place of the user's home: an empty directory */
	const char *const *env; /* NAME=value over our environment, NULL-terminated; may be NULL */
	const char *
		certs; /* a directory with authorities to trust besides the host's (*.crt); NULL: none */
	int auth;      /* an authfile; -1: none */
	bool plain;  /* HTTP will do: for a registry on this machine */
	int signals; /* image_signals_hold(); -1: none */
	/* Twice a second while it runs; may be NULL. */
	void (*tick)(void *user);
	/* Each request that it makes: "https://host/path", without the query; may be NULL. */
	void (*request)(void *user, const char *url);
	void *user;
};

/* What a line of skopeo's says: the value of msg=, without its quoting, cut to max with its NUL, into dst. False: it has none. */
bool image_skopeo_message(const char *line, char *dst, size_t max);

/* Run `skopeo ARGS`; args[0] is the command ("copy", "inspect", "list-tags"), the rest its options and operands
 * (NULL-terminated). out takes what it prints; more than its maximum is -EFBIG. 0: it ended well. 1: it did not, and the message
 * is its own. -EINTR: a signal came; -Exxx: it could not be run. */
int image_skopeo(const struct image_skopeo *s, const char *const *args, struct buf *out,
		 struct err *e) _must_check_;
