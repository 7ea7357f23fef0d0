#pragma once
/* What a build starts from: suite, mirrors, the recipe's files, and what this host's configuration says
 * about the way out. */
#include "image/digest.h"

enum { IMAGE_SOURCES_MAX = 3, IMAGE_ENV_MAX = 12 };

struct image_recipe {
	char *suite;
	char *dir;                        /* data/template */
	char *sources[IMAGE_SOURCES_MAX]; /* lines of a sources.list; none: mmdebstrap's own */
	size_t n_sources;
	char *include; /* the packages, with commas */
	char inputs[IMAGE_DIGEST_MAX + 1];
	char *env[IMAGE_ENV_MAX + 1]; /* for the programs of the build; image_recipe_env() */
	size_t n_env;
};
void image_recipe_done(struct image_recipe *r);

/* Suite and mirrors only: what a kernel is built from. */
int image_recipe_sources(const struct image_build *b, struct image_recipe *ret, struct err *e)
	_must_check_;

/* All of a template's. Reads files, runs nothing. */
int image_recipe_template(const struct image_build *b, struct image_recipe *ret, struct err *e)
	_must_check_;

/* Fill env: a PATH with sbin, the C locale, TMPDIR, apt's proxy for all, npm's registry if npm is
 * wanted. Asks apt-config and npm, which takes a second. */
int image_recipe_env(struct image_recipe *r, const char *tmpdir, bool npm, struct err *e)
	_must_check_;
