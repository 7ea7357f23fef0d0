#pragma once
/* The JSON of images: docker's manifest.json, and index, manifest and configuration of the OCI image format (1.1) and of docker's schema 2.
 *
 * Hostile: who makes an image writes these. Each text is parsed once into a struct whose every member is checked; what is not of
 * the form, or too much of it, is refused with a message that says where. Pure: no system calls. What is allocated follows what is there (jansson reads the
 * text, which is bounded), never a number in it.
 * Sources: OCI image-spec (image-index.md, manifest.md, config.md, descriptor.md), docker's image/spec/v1.2.md. */
#include "image/image.h"

enum {
	OCI_TEXT_MAX = 4 * 1024 * 1024, /* bytes of one text */
	OCI_DEPTH_MAX = 24,             /* arrays and objects in each other */
	OCI_IMAGES_MAX = 256,           /* of one archive, or entries of one index */
	OCI_TAGS_MAX = 64,              /* of one image */
	OCI_LAYERS_MAX = 127,           /* as docker has it */
	OCI_ENV_MAX = 240,              /* variables; labels likewise */
	OCI_ENV_BYTES_MAX = 16 * 1024,  /* of all variables */
	OCI_ARGS_MAX = 256,             /* of ENTRYPOINT or CMD */
	OCI_STRING_MAX = 16 * 1024,     /* bytes of one string */
	OCI_NAME_MAX = 255,             /* of a reference, a path in an archive, a media type */
	OCI_NESTED_MAX = 4,             /* indexes in each other */
};

/* What a text says of another object. */
struct oci_desc {
	char *type; /* media type, or "" */
	char digest[IMAGE_DIGEST_MAX + 1];
	uint64_t size;
	/* of an index's entry: */
	char *os, *arch;  /* or "" */
	char *name;       /* what it is called: an annotation of the archive's; or "" */
	bool attestation; /* what buildkit puts beside images */
};

struct oci_index {
	struct oci_desc *v;
	size_t n;
};
void oci_index_done(struct oci_index *x);

struct oci_manifest {
	struct oci_desc config;
	struct oci_desc *layers; /* lowest first */
	size_t n;
};
void oci_manifest_done(struct oci_manifest *m);

/* An index or a manifest list. */
int oci_index_parse(const char *text, size_t n, struct oci_index *ret, struct err *e) _must_check_;

/* 1: that is an index, of which one entry is meant. 0: a manifest. -EINVAL with a message: neither (an artifact is named by its
 * type, and so is a manifest of docker's schema 1). type: what the descriptor called it, or "". */
int oci_kind(const char *text, size_t n, const char *type, struct err *e) _must_check_;

/* Layers that may not be passed on (foreign, non-distributable) or that nobody knows are refused by name. */
int oci_manifest_parse(const char *text, size_t n, struct oci_manifest *ret, struct err *e)
	_must_check_;

/* The configuration: what is in a template, and the layers' diff ids (hex), lowest first. For another system than linux, or
 * another machine than arch ("amd64"), -ENOEXEC with a message. */
struct oci_config {
	struct image_config config;
	char (*diffs)[IMAGE_DIGEST_MAX + 1];
	size_t n;
};
void oci_config_done(struct oci_config *c);
int oci_config_parse(const char *text, size_t n, const char *arch, struct oci_config *ret,
		     struct err *e) _must_check_;

/* docker's manifest.json: the images of an archive. Names of members are relative, without "..". */
struct oci_docker {
	char *config;
	char **tags, **layers; /* NULL-terminated */
};
int oci_docker_parse(const char *text, size_t n, struct oci_docker **ret, size_t *ret_n,
		     struct err *e) _must_check_;
void oci_docker_done(struct oci_docker *v, size_t n);

/* "sha256:" and 64 hex digits: the digits into hex. */
bool oci_digest(const char *s, char hex[IMAGE_DIGEST_MAX + 1]);

/* The machine that images must be for. */
const char *oci_arch(void);
