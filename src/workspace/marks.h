#pragma once
/* Secrets in what the guest writes: told, or refused. */
#include "workspace/fs-priv.h"

/* Before `len` bytes of the request from `skip` on are written to h. 0: they may be; -EACCES: they hold a secret, and that is to be refused; -ENOMEM likewise (a secret
 * could not be seen). What has been found is told to the hook. */
int marks_write(struct fs *f, const struct call *c, struct handle *h, size_t skip, size_t len);
