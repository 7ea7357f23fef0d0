#pragma once
/* The files by which programs of the guest trust the sandbox's own certificate authority. */
#include <sys/types.h>

#include "base/err.h"

/* The bundle of all authorities that programs are pointed to, of a root: an absolute path in it. */
const char *trust_bundle_path(int root);

/* Variables that name it to programs that have a bundle of their own, and how many. */
extern const char *const trust_names[];
extern const size_t trust_n_names;

enum { TRUST_BUNDLE_MAX = 4 * 1024 * 1024, TRUST_NAMES_MAX = 16 };

/* The bundle of a root. 0; -ENOENT: it has none, or -errno. The caller frees it. */
int trust_read_bundle(int root, char **ret, size_t *ret_n) _must_check_;

/* What trust_write() was given, in a root. */
#define TRUST_ANCHOR "/usr/local/share/ca-certificates/bac.crt"

/* The keystore that is made anew each time, for a JDK that does not read the system's. */
#define TRUST_KEYSTORE "/etc/bac/trust.jks"

/* Where the certificates lie that came by trust_write(): it is there while any are trusted. */
#define TRUST_ANCHOR "/usr/local/share/ca-certificates/bac.crt"

/* Make the root trust the certificates of pem, and no earlier ones that came by this function; "" for none. What
 * others put there stays. Each file is whole at any time; nothing is written through a mount. 0; -EBADMSG: that is not one or a few certificates, and
 * nothing was done; else the first -errno, with a message, of what could not be written, when the rest has been. */
int trust_write(int root, const char *pem, struct err *e) _must_check_;
