#pragma once
/* A first spec.yaml for a repository, from the files that say how it is built: languages, package managers and their hosts, CI steps, ports, examples of environments.
 *
 * The files are hostile: each is looked at once, in bounds, nothing of it is run, and nothing of it gets into the draft but names, numbers and plain values that were checked; what
 * may be worth knowing beyond that is quoted in comments. Without system calls. */
#include "base/buf.h"
#include "base/err.h"

enum {
	DRAFT_FILE_MAX = 256 * 1024, /* bytes of a file that are looked at */
	DRAFT_SET_MAX = 64,          /* of each sort of thing */
	DRAFT_TEXT_MAX = 200,
};

struct draft_set {
	char **v;
	size_t n;
};

struct draft {
	struct draft_set languages, apt, npm, hosts, ports, vars, secrets, hints;
	bool failed; /* no memory: asked at the end */
};

/* The files that are worth a look, below the repository's top; ends with NULL. Beside them those of draft_folder. */
extern const char *const draft_names[];
extern const char draft_folder[]; /* every *.yml and *.yaml in it */

/* What one of them says. path: as in draft_names, or in draft_folder. */
void draft_add(struct draft *d, const char *path, const char *text, size_t n);
/* The specification, of a mixin of this name (a kit's name). 0, -ENOBUFS or -ENOMEM. */
int draft_write(const struct draft *d, const char *name, struct buf *out) _must_check_;
void draft_done(struct draft *d);
