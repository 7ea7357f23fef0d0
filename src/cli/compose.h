#pragma once
/* The credentials of a sandbox, put together: from the store (which keys there are, never a value), the services that are known, what the
 * sandbox's files declare, and what was approved. */
#include "cli/approve.h"
#include "cli/ctx.h"
#include "kit/declare.h"
#include "policy/service.h"
#include "secrets/store.h"

enum { COMPOSE_FILE_MAX = CRED_FILE_MAX, COMPOSE_NOTES_MAX = 64 * 1024 };

/* What is the same for all sandboxes. */
struct compose_source {
	struct store_entry *entries;
	size_t n;
	struct services services;
	struct approvals approvals;
	char fault
		[ERR_MSG_MAX]; /* why the store or the approvals could not be read: then no secret is given to anybody */
};

/* 0, or -Exxx with a message; a store that cannot be read is no error, but a fault. compose_source_done() in any case. */
int compose_source(struct ctx *c, struct compose_source *ret, struct err *e) _must_check_;
void compose_source_done(struct compose_source *s);

/* The file that keeper and proxy get (policy/cred.h): the text, and the environment behind it. b NULL: what every sandbox gets. starting: it begins
 * anew; else what it has had since it started, and has no more, is in the file as MISSING, since programs inside count on it. notes takes lines for people. *ret_n:
 * 0 if there is nothing for it: no use, no variable. The caller holds cred_lock() unless b is NULL. */
int compose_file(struct ctx *c, const struct compose_source *s, const struct sandbox *b,
		 bool starting, struct buf *ret, struct buf *notes, size_t *ret_n, struct err *e)
	_must_check_;

/* Is there a key for a service, or a login? id as in compose_file() of that sandbox; "": what is there for all. */
bool compose_has_key(const struct compose_source *s, const char *id, const char *service);
bool compose_has_login(const struct compose_source *s, const char *id, const char *service);

/* Open the store that the setting names, and say what is to be said. */
int compose_store(struct ctx *c, struct store **ret, struct err *e) _must_check_;

/* "SCOPE/KIND/NAME". */
const char *compose_key(char ret[STORE_KEY_MAX + 1], const char *scope, const char *kind,
			const char *name);
/* ---- what a sandbox's files declare: credentials.d/NAME in its directory ---- */
struct compose_declared {
	struct declarations *v;
	size_t n;
};
/* 0, or -Exxx with a message that names the file. */
int compose_declared(struct ctx *c, const char *id, struct compose_declared *ret, struct err *e)
	_must_check_;
void compose_declared_done(struct compose_declared *d);
/* Keep a file's text there. */
int compose_keep_file(struct ctx *c, const char *id, const char *name, const char *text, size_t n,
		      struct err *e) _must_check_;

/* ---- the files in which clients keep logins (kit/login-file.h), for a sandbox ---- */
enum { LOGINS_MAX = 32 };

struct logins {
	struct login_text {
		char *path; /* below the home directory */
		struct buf text;
	} v[LOGINS_MAX];
	size_t n;
};
/* Those of services that have a login here, and no key: what bac knows of itself first. 0, or -Exxx with a message. compose_logins_done() in any case; zeros before. */
int compose_logins(struct ctx *c, const struct compose_source *s, const struct sandbox *b,
		   struct logins *ret, struct err *e) _must_check_;
void compose_logins_done(struct logins *l);
