#include "keeper/vault.h"

#include <openssl/crypto.h>

enum { SMALLEST = 64, BEFORE = 16 };

int vault_open(void)
{
	/* 2: it could not be locked (RLIMIT_MEMLOCK), all the rest holds */
	return CRYPTO_secure_malloc_init(VAULT_BYTES, SMALLEST) > 0 ? 0 : -ENOMEM;
}

/* The length stands before the bytes, for ordinary memory, which would not know it. */
static void *new (size_t n)
{
	uint8_t *p = n < VAULT_BYTES ? OPENSSL_secure_malloc(n + BEFORE) : NULL;

	if (!p)
		return NULL;
	memcpy(p, &n, sizeof(n));
	return p + BEFORE;
}

void *vault_free(void *p)
{
	uint8_t *whole;
	size_t n;

	if (!p)
		return NULL;
	whole = (uint8_t *)p - BEFORE;
	memcpy(&n, whole, sizeof(n));
	OPENSSL_secure_clear_free(whole, n + BEFORE);
	return NULL;
}

void *vault_copy(const void *p, size_t n)
{
	void *to = new (n);

	if (to && n)
		memcpy(to, p, n);
	return to;
}
