#pragma once
/* Which credentials a kit, or a file of --credentials, wants to use: the `credentials` list of a kit's specification, version 2.
 *
 * What is declared is a wish: each service at each host needs the user's approval (cli/approve.h) before anything is put on a request there. */
#include "kit/login-file.h"
#include "kit/pool.h"
#include "policy/cred.h"

enum { DECLARE_MAX = 64, DECLARE_USES_MAX = 256 };

struct declared {
	const char *service, *description;
	const char *
		env; /* or NULL; set to "proxy-managed" where there is a secret, if it is managed */
	bool managed; /* proxyManaged, as written; env is set to the same either way */
	bool required; /* without a secret requests to its hosts are refused, rather than let through bare */
	struct cred_use *
		v; /* patterns: kind, resource (canonical), header, format, username, placeholders, path, fields */
	size_t n;
	struct login_file file;       /* of its oauth; path NULL: none */
	const char *access, *refresh; /* the sentinels that are in the file */
};

struct declarations {
	char *origin; /* "file:NAME", "kit:NAME" */
	struct declared *v;
	size_t n;
	struct yaml source; /* that structures are in */
	struct pool pool;   /* and all texts */
};

struct take;
/* A list of a tree that the caller puts into source afterwards. Faults and warnings go to the report of t; what could not be read is left out. ret->origin is not set. */
void declare_read(struct take *t, const struct yaml *list, struct declarations *ret);

/* kind and name make the origin: "file", "a.yaml". 0; -EINVAL with line, column and field; -E2BIG; -ENOMEM. Hostile bytes are fine. */
int declare_parse(const char *kind, const char *name, const char *text, size_t n,
		  struct declarations *ret, struct err *e) _must_check_;
void declare_done(struct declarations *d);
