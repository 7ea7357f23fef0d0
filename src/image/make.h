#pragma once
/* A template out of layers that are in the cache. */
#include "image/oci.h"
#include "image/work.h"

struct image_source {
	const char *config_digest;       /* hex, of the configuration as it came */
	const struct oci_config *config; /* its diff ids are the layers */
	const char *reference;           /* or NULL */
	const char *manifest;            /* "sha256:...", or NULL */
	const char *const *tags;         /* plain; NULL-terminated */
};

/* w: begun and started, for templates. One that is there already gets the tags only. *ret is the template. */
int image_image_make(struct image_work *w, const struct image_source *s, struct image_template *ret,
		     struct err *e) _must_check_;

/* Give a tag (plain) to a template, and take it from whoever had it. The caller holds the lock; dir is that of the
 * templates. */
int image_tag_give(const char *cache, int dir, const char *digest, const char *tag, struct err *e)
	_must_check_;
