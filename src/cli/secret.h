#pragma once
/* What the commands of 'bac secret' share. */
#include "base/opt.h"
#include "cli/compose.h"

/* The options of all of them; each has its own list. */
struct secret_args {
	const char *sandbox, *token, *command, *ref, *refresh, *registry, *username, *endpoint;
	const char *env, *placeholder, *in, *value, *service;
	struct opt_list hosts;
	bool force, oauth, password_stdin, all_sandboxes, all, custom, dry_run, json, quiet, global;
};

#define SECRET_OPT(kind, field, letter, name, arg, help) \
	{ \
		name, letter, kind, offsetof(struct secret_args, field), arg, help \
	}

/* What a command works with. */
struct secret {
	struct ctx c;
	const struct secret_args *o;
	struct sandbox b; /* of --sandbox; else its id is "" */
	struct store *store;
	struct services services;
	struct store_entry *entries; /* all there are */
	size_t n;
};

/* Open all of it; secret_done() in any case. */
int secret_begin(struct secret *s, const struct secret_args *o, struct err *e) _must_check_;
void secret_done(struct secret *s);

/* "global", or the sandbox's id. */
const char *secret_scope(const struct secret *s);
/* " of sandbox 'web'", or "". */
const char *secret_of(const struct secret *s, char *dst, size_t max);

/* The entry of this very scope; NULL: none. */
const struct store_entry *secret_find(const struct secret *s, const char *kind, const char *name);

/* Put it into the store. The sandbox's directory notes that it has secrets of its own. */
int secret_put(struct secret *s, const char *kind, const char *name, struct store_entry *entry,
	       const char *value, size_t n, struct err *e) _must_check_;

/* Running sandboxes are told. */
int secret_tell(struct secret *s, struct err *e) _must_check_;

/* One line about those hosts of a service that no network rule lets through, and what to run. */
void secret_hint(struct secret *s, const char *service);

/* What would be handed to the sandbox now (without --sandbox: what every one gets). */
int secret_uses(struct secret *s, struct cred_set **ret, struct err *e) _must_check_;
/* Would the rules let a connection to this resource through? Of a pattern, one host is tried. */
struct net_policy;
bool secret_reaches(const struct net_policy *p, const char *resource);

/* "55m", "on-demand": seconds. NULL: `standard`. */
int secret_refresh(const char *text, int64_t standard, int64_t *ret, struct err *e) _must_check_;

/* secret-read.c: a value without its last newline; store_value_free() is the caller's. From the terminal, where it is not shown, else stdin. 0, or -Exxx with a
 * message: -ENODATA if there was nothing. */
int secret_read(const char *prompt, char **ret, size_t *ret_n, struct err *e) _must_check_;
/* One of the list by its number, on the terminal. Its index; -ENOTTY without one (with a message that has the list). */
int secret_pick(const char *title, const char *const *list, size_t n, struct err *e) _must_check_;

/* A removed sandbox's own secrets go with it. What cannot be removed is said. */
void secret_forget(struct ctx *c, const struct sandbox *b, bool had);
/* Has it any? Asked before its directory is gone. */
bool secret_has_own(struct ctx *c, const struct sandbox *b);

/* All secrets, of every scope, and all approvals. What cannot be removed is said. */
void secret_forget_all(struct ctx *c);

/* secret-oauth.c */
int secret_set_oauth(struct secret *s, const char *service, struct err *e) _must_check_;

/* secret-set.c, secret-custom.c, secret-ls.c, secret-rm.c, secret-import.c, secret-check.c */
int secret_run_set(void *opt, struct args *args, struct err *e);
int secret_run_custom(void *opt, struct args *args, struct err *e);
int secret_run_ls(void *opt, struct args *args, struct err *e);
int secret_run_services(void *opt, struct args *args, struct err *e);
int secret_run_rm(void *opt, struct args *args, struct err *e);
int secret_run_import(void *opt, struct args *args, struct err *e);
int secret_run_check(void *opt, struct args *args, struct err *e);
