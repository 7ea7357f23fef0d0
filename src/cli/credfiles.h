#pragma once
/* Declarations that are given to a new sandbox, and the approval of what they want. */
#include "base/opt.h"
#include "cli/compose.h"

struct cred_file {
	char *name; /* as it is kept: of letters, digits, '.', '_', '-' */
	char *text;
	size_t n;
};

struct cred_files {
	struct cred_file *v;
	size_t n;
	struct compose_declared declared; /* one for each file */
};

/* The files of --credentials, read and checked. cred_files_done() in any case. */
int cred_files_read(const struct opt_list *paths, struct cred_files *ret, struct err *e)
	_must_check_;
void cred_files_done(struct cred_files *f);
/* Append what a kit declares, under the name "kit:NAME". */
int cred_files_kit(struct cred_files *f, const char *name, const char *text, size_t n,
		   struct err *e) _must_check_;
/* Keep them in a sandbox's directory. */
int cred_files_keep(struct ctx *c, const char *id, const struct cred_files *f, struct err *e)
	_must_check_;

/* For whom it is. */
struct cred_who {
	const char *id; /* the sandbox; "": there is none yet */
	bool works;     /* its agent is to start, and not only the machine */
};

/* Approve what --approve names (SERVICE=HOST, of what is declared: else it is an error), and ask about the rest on a terminal; without one it stays
 * unapproved. Then an error names what is declared as required and cannot be used: not approved, or, for an agent that is to start, not stored. A sandbox that is
 * there is entered from a terminal all the same. */
int cred_files_approve(struct ctx *c, const struct compose_declared *d,
		       const struct opt_list *approve, const struct cred_who *who, struct err *e)
	_must_check_;
