#pragma once
/* The file in which a client keeps its login, with sentinels in the place of tokens: a client that finds it takes itself to be logged in.
 *
 * It is made of a text (template), or of a map (structure), which becomes JSON. In both {{.NAME}} stands for: AccessToken, RefreshToken (the sentinels),
 * ExpiresAt (milliseconds since 1970), Scopes (separated by spaces), ScopesJSON (a JSON list), IdToken (what stands for the id_token: policy/id-token.h), AccountID (of which
 * account it is), LastRefresh (when the login was stored: 2026-11-30T12:00:00Z). A value of a structure that is nothing but ExpiresAt becomes
 * a number, nothing but Scopes a list; true, false, null and whole numbers are what they look like. */
#include "base/buf.h"
#include "kit/yaml.h"

enum { LOGIN_FILE_MAX = 16 * 1024, LOGIN_PATH_MAX = 255 };

struct login_file {
	const char *
		path; /* below the home directory, as login_file_path() gives it; NULL: there is none */
	const char *template; /* or NULL: */
	const struct yaml *structure;
};

struct login_values {
	const char *access, *refresh; /* sentinels */
	int64_t expires_ms;
	const char *scopes; /* separated by spaces or commas */
	const char *id_token,
		*account; /* as id_token_read() makes them: fit for JSON. NULL: the login does not say */
	int64_t stored; /* seconds since 1970 */
};

/* "~/a/b" or "/home/agent/a/b": "a/b", borrowed. -EINVAL with a message: it is elsewhere, has "." or "..", an empty part, or a control byte. */
int login_file_path(const char *text, const char **ret, struct err *e) _must_check_;
/* Its bytes, at the end of out. 0; -EINVAL: a placeholder that is none, or not UTF-8; -ENODATA: one of what the login does not say; -E2BIG: more than LOGIN_FILE_MAX; -ENOMEM. */
int login_file_make(const struct login_file *f, const struct login_values *v, struct buf *out,
		    struct err *e) _must_check_;
/* Is that the name of a placeholder? */
bool login_file_knows(const char *name, size_t n);
