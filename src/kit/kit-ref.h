#pragma once
/* What a kit is called: a built-in agent, a folder, a ZIP, a git repository, or an artifact in a registry.
 *
 *     claude                                              built in
 *     ./dir  ../dir  /dir                                 a folder
 *     x.zip                                               a ZIP
 *     git+https://host/path[#ref=REF&dir=DIR]             also git+ssh://[user@]host/path, git+file:///path
 *     oci://REF  registry/repo:tag  registry/repo@sha256:HEX  ns/kit:tag (of docker.io)
 *
 * A reference is checked once, here, so that nothing in it can be taken for an option, another URL or a way out by the programs that fetch it. */
#include "base/err.h"

enum kit_ref_kind {
	KIT_REF_NAME = 1,
	KIT_REF_DIR,
	KIT_REF_ZIP,
	KIT_REF_GIT,
	KIT_REF_OCI,
};

enum { KIT_REF_MAX = 1024, KIT_DIGEST_DIGITS = 64 };

struct kit_ref {
	uint8_t kind;
	bool local; /* DIR, ZIP, git+file: what kit.allowLocalKits is about */
	char *text; /* canonical, for messages and approvals */
	char *where; /* NAME: it; DIR, ZIP: the path; GIT: the URL without "git+"; OCI: "docker.io/ns/kit" */
	char *rev; /* GIT: branch, tag or commit, or NULL; OCI: the tag, or NULL where there is a digest */
	char *dir;    /* GIT: folder in the repository, or NULL for its top */
	char *digest; /* OCI: 64 hex digits, or NULL */
	bool commit;  /* GIT: rev is a full commit id */
};

/* 0; -EINVAL with what would be right. Hostile bytes are fine. kit_ref_done() on success. */
int kit_ref_parse(const char *text, struct kit_ref *ret, struct err *e) _must_check_;
void kit_ref_done(struct kit_ref *r);

/* Is its source in the list (entries in commas or as a JSON array; "*": any)? An entry is the beginning of a source, up to the end of one of its parts:
 * "docker.io/" and "docker.io/ns" have "docker.io/ns/kit"; "docker.io/n" has not. A git repository is "github.com/a/b", "https://github.com/a/b" or
 * "git+https://github.com/a/b". Only for GIT and OCI. */
bool kit_ref_allowed(const struct kit_ref *r, const char *list);

/* A relative path of plain parts, that needs no quoting and leads nowhere else. */
bool kit_path_plain(const char *path);
