#pragma once
/* The files by which programs of the guest trust the sandbox's own certificate authority. */
#include "base/err.h"

/* The bundle of all authorities that programs are pointed to, of a root: an absolute path in it. */
const char *trust_bundle_path(int root);

/* The keystore that is made anew each time, for a JDK that does not read the system's. */
#define TRUST_KEYSTORE "/etc/bac/trust.jks"

/* Make the root trust the certificates of pem, and no earlier ones that came by this function; "" for none. What
 * others put there stays. Each file is whole at any time; nothing is written through a mount. 0; -EBADMSG: that is not one or a few certificates, and
 * nothing was done; else the first -errno, with a message, of what could not be written, when the rest has been. */
int trust_write(int root, const char *pem, struct err *e) _must_check_;
