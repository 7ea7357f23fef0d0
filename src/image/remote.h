#pragma once
/* What a registry says about an image: an index of platforms, a manifest, a configuration.
 *
 * Format: the OCI image specification 1.1 (image-index, manifest, config), and Docker's image manifest version 2, schema 2,
 * which says the same by other names. All of it is hostile text; what is taken is bounded, and digests are SHA-256. */
#include "base/err.h"

enum {
	IMAGE_MANIFEST_MAX = 4 << 20, /* bytes of an index or manifest */
	IMAGE_CONFIG_MAX = 8 << 20,
	IMAGE_REMOTE_LAYERS_MAX = 127,
	IMAGE_HEX = 64,
};

struct image_platform {
	char os[16], arch[16], variant[16]; /* variant "": any */
};

/* "linux/amd64[/v2]"; NULL: this machine's. 0 or -EINVAL with a message. */
int image_platform_parse(const char *text, struct image_platform *ret, struct err *e) _must_check_;

struct image_blob {
	char digest[IMAGE_HEX + 1];
	uint64_t size;
};

struct image_remote {
	struct image_blob config;
	struct image_blob layers[IMAGE_REMOTE_LAYERS_MAX]; /* lowest first */
	size_t n;
	char diffs[IMAGE_REMOTE_LAYERS_MAX][IMAGE_HEX + 1]; /* image_remote_config() */
	char type[100];                                     /* media type of the manifest */
};

/* n bytes are a manifest: 0 and *ret; or an index: 1 and the manifest for this platform in *ret_child. -ENOENT: none for it,
 * with a message that lists what there is; -EMEDIUMTYPE: it is no image (an artifact, a format that is too old); -EBADMSG: it is
 * damaged. All with a message that goes on after the image's name. */
int image_remote_manifest(const void *p, size_t n, const struct image_platform *want,
			  struct image_remote *ret, struct image_blob *ret_child, struct err *e)
	_must_check_;

/* Its configuration: diff ids into *m. Errors as above. */
int image_remote_config(const void *p, size_t n, const struct image_platform *want,
			struct image_remote *m, struct err *e) _must_check_;
