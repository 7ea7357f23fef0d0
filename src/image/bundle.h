#pragma once
/* A file with one image of one layer, that is a docker archive and an OCI archive in one: manifest.json and index.json name the same blobs.
 * What loads either (bac template load, docker load, skopeo, podman) loads it.
 *
 * Its files belong to us, and its folders are in it: skopeo unpacks an OCI archive as it is, which only root may otherwise.
 *
 * The layer comes first, and its name is its digest, which is known at its end: so the layer (a tar archive, not compressed) is written from
 * IMAGE_BUNDLE_LAYER_AT on, and image_bundle_finish() puts the rest around it. Formats: ustar with sizes in base 256 where eight
 * GiB are not enough, OCI image layout 1.0, docker's image specification 1.2. */
#include "image/image.h"

enum { IMAGE_BUNDLE_LAYER_AT = 3 * 512 }; /* behind two folders and its own header */

struct image_bundle {
	const char *tag; /* "team/image:1.2", as image_ref_parse() takes it */
	const struct image_config
		*config;            /* what the image says of how it is run; members may be NULL */
	const char *user, *workdir; /* where it does not say */
	const char *comment;        /* for its history */
	int64_t created;            /* seconds since 1970 */
};

/* fd: readable and writable, with the layer in it, to its end. 0, or -Exxx with a message. */
int image_bundle_finish(int fd, const struct image_bundle *w, struct err *e) _must_check_;
