#pragma once
/* An image out of a registry, as an OCI layout in the cache.
 *
 * cache/pulls/<digest of the image's manifest>/ is the layout while it is made: what is fetched whole stays there, so that a pull
 * that was cut off goes on where it was. A layer that the store of layers has already is not fetched: an empty file of
 * its size takes its place, which whoever reads the layout must know (image/layer.h does: a layer that is there is not read).
 * Such a directory is locked (flock()) while somebody works in it; what nobody works in, image_pull_sweep() removes.
 *
 * The manifest is asked for first, checked, and then fetched by its digest, so that what was checked is what comes. Passwords
 * are shown to a registry only after it has asked for them, and to the host that gives out tokens for it only if that is the same
 * one, or the one that the user named. */
#include "image/image.h"
#include "image/ref.h"
#include "image/remote.h"

struct image_pull {
	const struct image_ref *ref;
	const struct image_platform *platform;
	const char *user, *password; /* NULL: none */
	const char *endpoint; /* where tokens may be asked for with them; NULL: the registry only */
	const char *const *ca;  /* files of authorities; NULL-terminated */
	const char *const *env; /* of the way out (proxy); NULL-terminated */
	const struct image_progress *progress;
};

struct image_pulled {
	char *layout;                      /* the directory */
	char digest[IMAGE_DIGEST_MAX + 1]; /* what the reference meant: an index or a manifest */
	bool plain;                        /* it came without TLS, from this machine */
	bool reused;                       /* nothing was fetched */
	int lock;
};

/* 0 and *ret (image_pulled_done()), or -Exxx with a message that names the registry, and the user if one was used: -EACCES,
 * -ENOENT, -EBADMSG (damaged), -EMEDIUMTYPE (no image), -ENOSPC, -EHOSTUNREACH, ... -EINTR: a signal came, which is delivered on
 * return. */
int image_pull(const char *cache, const struct image_pull *p, struct image_pulled *ret,
	       struct err *e) _must_check_;

/* keep: it may be needed again soon; else it is removed. */
void image_pulled_done(struct image_pulled *p, bool keep);

/* Remove what is older than so many seconds and nobody works in. Silent. */
void image_pull_sweep(const char *cache, unsigned age_s);

enum { IMAGE_PULL_AGE_S = 7 * 24 * 3600 };
