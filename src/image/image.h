#pragma once
/* Templates (root file systems), their layers, and kernels, content-addressed under $XDG_CACHE_HOME/bac.
 *
 * cache/templates/<digest>/{root.erofs,template.json}, cache/kernels/<digest>/{vmlinux,modules.cpio,
 * initrd-*,kernel.json}; cache/layers: layer.h. A directory appears under its digest only when it is whole (made as .tmp-*,
 * synced, renamed). The digest of a template names its inputs (recipe, suite, mirror, version of
 * bac's builder), so that a second build with the same inputs finds it and does nothing; a fresh
 * build of the same inputs gets a digest of its own, since sandboxes stand on the old one. The
 * digest of a kernel names its content.
 *
 * A template of an image has layers: its root.erofs is what the image's files are called, and their bytes are in
 * the layers' blobs, which templates share. Its digest is that of the image's configuration and layers, so that an image that is loaded
 * again is the same template.
 *
 * A template that was built has one tag, which belongs to the newest that has it; one that was loaded has any number, and a tag that is
 * given to it is taken from whoever had it. An older one is reached by digest. */
#include "base/err.h"

enum { IMAGE_DIGEST_MAX = 64 }; /* hex digits, without "sha256:" */

/* What an image says of how it is run. Lists are NULL-terminated. */
struct image_config {
	char **env; /* NAME=value */
	char **entrypoint, **cmd;
	char **labels; /* name=value */
	char *user;    /* "name", "uid:gid", ...; "" */
	char *workdir; /* absolute, or "" */
	char *arch;    /* "amd64" */
};
void image_config_done(struct image_config *c);

struct image_template {
	char digest[IMAGE_DIGEST_MAX + 1];
	char inputs[IMAGE_DIGEST_MAX + 1]; /* what it was made from */
	char *tag;                         /* the first of tags, or "" */
	char **tags;     /* all of them, NULL-terminated, as image_tag_plain() writes them */
	char **layers;   /* diff ids, lowest first, NULL-terminated; NULL: it has none */
	char **blobs;    /* their files, in this order; NULL: none */
	char *reference; /* "docker.io/library/alpine:3" where it was pulled, or NULL */
	char *manifest;  /* "sha256:..." of its manifest, or NULL */
	struct image_config config; /* with layers; else all NULL */
	int64_t used; /* last use: made, or a sandbox created or started from it; seconds since 1970 */
	char *root;      /* path of root.erofs */
	char *kernel;    /* digest of the kernel that was made with it; "": any */
	char *source;    /* "debian trixie" */
	char *user;      /* "agent" */
	char *workdir;   /* "/home/agent/workspace" */
	uint64_t size;   /* bytes on disk, with all its layers */
	int64_t created; /* seconds since 1970 */
};
void image_template_done(struct image_template *t);

struct image_kernel {
	char digest[IMAGE_DIGEST_MAX + 1];
	char inputs[IMAGE_DIGEST_MAX + 1]; /* "" for a kernel that came with a template */
	char *vmlinux;                     /* path */
	char *initrd;                      /* path; NULL from image_kernel_ls() */
	char *release;                     /* "6.12.118+deb13-cloud-amd64" */
	char *kind; /* "debian", "minimal", or "outdated": minimal, by an older bac */
	uint64_t size;
	int64_t created;
};
void image_kernel_done(struct image_kernel *k);

/* Called with one short line for each step, and for progress within one (percent 0 to 100, or -1). */
struct image_progress {
	void (*say)(void *user, const char *line, int percent);
	void *user;
};

struct layer_limits;
struct image_build {
	const char *cache; /* cache directory (".../bac") */
	const char *data;  /* data files: template/ and kernel/ (struct dirs) */
	const char *init;  /* path of the guest's init program */
	const char *layer; /* path of the program bac-layer; NULL: the one beside bac */
	const struct layer_limits *limits; /* of a layer (wire/layer.h); NULL: the usual ones */
	const char *
		mirror; /* NULL or "": from the host's apt configuration, else mmdebstrap's own default */
	const char *suite; /* NULL or "": "trixie" */
	bool fresh;        /* build even if it is there */
	const struct image_progress *progress;
};

/* The default template, and with it the Debian kernel. 0, or -Exxx with a message; answers in *ret
 * (image_template_done()), *ret_made tells whether anything was built. Another build is waited for.
 * SIGINT, SIGTERM and SIGHUP end it with -EINTR when nothing half made is left; the signal itself is
 * delivered on return. */
int image_template_build(const struct image_build *b, struct image_template *ret, bool *ret_made,
			 struct err *e) _must_check_;

/* An archive of docker or OCI (a file; compressed as it may be), or an OCI layout (a directory): all its images for this machine. tag:
 * a name for the one image that is in it, beside those it brings; NULL: none. A heap array: done each, then free. As image_template_build(); -EINVAL and the
 * like leave what was loaded before the fault. */
int image_load(const struct image_build *b, const char *path, const char *tag,
	       struct image_template **ret, size_t *ret_n, struct err *e) _must_check_;

/* One image of an OCI layout (a directory): which is its name there, "sha256:..." of its manifest, or NULL if there is one only. Layers that
 * are in the cache need not be in the layout. reference: where it came from, or NULL. */
int image_load_layout(const struct image_build *b, const char *path, const char *which,
		      const char *tag, const char *reference, struct image_template *ret,
		      struct err *e) _must_check_;

/* A tag in the form that is kept: "docker.io/library/alpine:3" is "alpine:3", "x:latest" is "x". 0, or -EINVAL with a message. */
enum { IMAGE_TAG_MAX = 255 };
int image_tag_plain(const char *tag, char dst[IMAGE_TAG_MAX + 1], struct err *e) _must_check_;

/* Take a tag from a template. */
int image_tag_remove(const char *cache, const char *digest, const char *tag, struct err *e)
	_must_check_;

/* A sandbox was made or started from it: noted for `prune`. */
void image_template_use(const char *cache, const char *digest);

/* The template that bac built which goes with a kernel (its modules), or else any, as what an image gets modules and certificates from: the path of its root, on the
 * heap. 1: there is none. */
int image_template_base(const char *cache, const char *kernel, char **ret, struct err *e)
	_must_check_;

/* Bytes of the whole store: templates and layers, each once. */
uint64_t image_store_size(const char *cache);

/* Remove layers that no template has (what an interrupted load left). *ret_freed: bytes. */
int image_template_prune_layers(const char *cache, uint64_t *ret_freed, struct err *e) _must_check_;

/* By tag, or by digest (or an unambiguous prefix of 6 digits or more). -ENOENT with a message that
 * says what to run if there is none. */
int image_template_find(const char *cache, const char *ref, struct image_template *ret,
			struct err *e) _must_check_;

/* All, newest first; *ret is a heap array: done each, then free. */
int image_template_ls(const char *cache, struct image_template **ret, size_t *ret_n, struct err *e)
	_must_check_;

/* Remove it, and Debian kernels that came with no template that is left. -EBUSY (with a message)
 * while a process holds its lock: whoever uses a template keeps a shared flock() on root.erofs. */
int image_template_rm(const char *cache, const char *digest, struct err *e) _must_check_;

/* A minimal kernel from Debian's linux-source with a configuration of ours (a file). As
 * image_template_build(). */
int image_kernel_build(const struct image_build *b, const char *config, struct image_kernel *ret,
		       bool *ret_made, struct err *e) _must_check_;

/* The kernel to use. want is a digest (or prefix), a kind or a release; NULL: the minimal one if there
 * is one that is not outdated, else the one that came with the template whose kernel's digest paired is (NULL: unknown),
 * else the newest. The initrd is made if init has changed since; safe for many processes at once. */
int image_kernel_find(const char *cache, const char *init, const char *want, const char *paired,
		      struct image_kernel *ret, struct err *e) _must_check_;
int image_kernel_ls(const char *cache, struct image_kernel **ret, size_t *ret_n, struct err *e)
	_must_check_;

/* Remove what builds that were killed left behind, if no build is under way. Silent: what resists is
 * tried again the next time. */
void image_sweep(const char *cache);
