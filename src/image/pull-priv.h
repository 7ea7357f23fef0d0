#pragma once
/* Inside image_pull(): the conversation with one registry. */
#include "image/pull.h"
#include "image/run.h"
#include "image/skopeo.h"

struct pull_talk {
	const struct image_pull *p;
	struct image_skopeo s;
	int auth;        /* the authfile, not shown yet; -1: none */
	bool shown;      /* the password was used */
	char realm[512]; /* another host that was asked for a token, "" if none */
};

/* Ask: args as for image_skopeo(). On a registry of this machine it falls back to HTTP; with a password it asks again once
 * the registry wants one. 0, or -Exxx with the message that people get. */
int pull_ask(struct pull_talk *t, const char *const *args, struct buf *out, struct err *e)
	_must_check_;

/* "docker://DOMAIN/PATH" with a digest, or with what the reference says (NULL), on the heap. */
char *pull_name(const struct image_ref *r, const char *digest);

/* An authfile in memory: -1 without a user. */
int pull_auth(const struct image_pull *p, int *ret_fd, struct err *e) _must_check_;

/* Put "registry R: 'PATH:TAG'" in front of what goes on from there. */
int pull_about(const struct image_pull *p, struct err *e);
