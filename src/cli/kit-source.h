#pragma once
/* From a kit's reference to its files.
 *
 * Whatever it is (kit/kit-ref.h), its files are checked and copied into cache/kits/DIGEST, under the digest of their content, and used from there: what changes
 * later at the source changes nothing, and two references to the same content are one kit. What lies in the cache is checked again each time.
 * cache/kits/refs/ has, for references that name their content (a commit, a digest), which that is: such a kit needs no network once it was fetched. */
#include "cli/ctx.h"
#include "cli/kit-tree.h"
#include "kit/kit-ref.h"

struct kit_source {
	char *ref; /* "claude"; "/abs/dir"; "git+https://...#ref=COMMIT&dir=DIR"; "oci://docker.io/ns/kit@sha256:HEX" */
	char *dir; /* absolute; has spec.yaml and, unless it has none, files/ */
	struct kit_tree tree;
	bool builtin; /* one of bac's own */
	bool local;   /* from this machine */
};

/* Is there a built-in kit of this name? */
bool kit_source_builtin(const struct ctx *c, const char *name);

/* 0, or -Exxx with a message: -EPERM for a source that the settings do not allow, -ENOENT for what is not there. kit_source_done() on success. */
int kit_source_get(struct ctx *c, const char *ref, struct kit_source *ret, struct err *e)
	_must_check_;
void kit_source_done(struct kit_source *s);
