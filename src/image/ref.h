#pragma once
/* Names of images in registries: DOMAIN[:PORT]/PATH[:TAG][@sha256:DIGEST].
 *
 * The grammar is that of the distribution project (reference.go), with two rules of our own: the registry has to be named,
 * since a name that means one thing here and another there is an attack waiting, and a digest is SHA-256. The only
 * shorthand is docker.io/NAME for docker.io/library/NAME; index.docker.io is docker.io. Parses texts only. */
#include "base/err.h"

enum {
	IMAGE_REF_NAME_MAX = 255, /* domain and path */
	IMAGE_REF_TAG_MAX = 128,
	IMAGE_REF_HEX = 64,
	IMAGE_REF_MAX = 2 * IMAGE_REF_NAME_MAX + 1 + IMAGE_REF_TAG_MAX + 8 + IMAGE_REF_HEX,
};

struct image_ref {
	char domain[IMAGE_REF_NAME_MAX + 1]; /* "docker.io", "localhost:5000" */
	char path[IMAGE_REF_NAME_MAX + 1];   /* "library/alpine" */
	char tag[IMAGE_REF_TAG_MAX +
		 1];                    /* "" if only a digest is given; else "latest" if none is */
	char digest[IMAGE_REF_HEX + 1]; /* hex digits, or "" */
};

/* 0; 1 if it could be a name but says no registry (*ret is not set); -EINVAL with a message. */
int image_ref_parse(const char *text, struct image_ref *ret, struct err *e) _must_check_;

/* The one spelling of it, for people and as a tag: with the digest if there is one, else with the tag. Returns dst. */
const char *image_ref_text(const struct image_ref *r, char dst[IMAGE_REF_MAX + 1]);

/* Is its registry on this machine (localhost, 127.x)? */
bool image_ref_loopback(const struct image_ref *r);

/* "sha256:" and 64 hex digits in lower case: the digits, else NULL. */
const char *image_ref_digest(const char *text);
