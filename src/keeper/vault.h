#pragma once
/* Memory for values: locked where the system allows it, in no core file, between guard pages, wiped when given back (libcrypto's
 * secure heap). Where the heap was not opened, as in tests, it is ordinary memory that is wiped. */
#include "base/base.h"

enum { VAULT_BYTES = 1024 * 1024 };

/* Before the seal. 0, -ENOMEM. */
int vault_open(void) _must_check_;
/* NULL: it is full. */
void *vault_copy(const void *p, size_t n);
/* NULL is fine. Returns NULL. */
void *vault_free(void *p);
