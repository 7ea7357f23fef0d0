#include "layer/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

int hash_prepare(void)
{
	struct hash h = { 0 };
	uint8_t none[HASH_SIZE];
	int r;

	(void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	r = hash_begin(&h);
	if (r == 0)
		hash_end(&h, none);
	return r;
}

int hash_begin(struct hash *h)
{
	h->ctx = EVP_MD_CTX_new();
	if (h->ctx && EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL) == 1)
		return 0;
	hash_done(h);
	return -ENOMEM;
}

void hash_add(struct hash *h, const void *p, size_t n)
{
	if (h->ctx)
		(void)EVP_DigestUpdate(h->ctx, p, n);
}

void hash_end(struct hash *h, uint8_t ret[HASH_SIZE])
{
	memset(ret, 0, HASH_SIZE);
	if (h->ctx)
		(void)EVP_DigestFinal_ex(h->ctx, ret, NULL);
	hash_done(h);
}

void hash_end_hex(struct hash *h, char ret[LAYER_HEX + 1])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t raw[HASH_SIZE];

	hash_end(h, raw);
	for (size_t i = 0; i < sizeof(raw); i++) {
		ret[2 * i] = digits[raw[i] >> 4];
		ret[2 * i + 1] = digits[raw[i] & 15];
	}
	ret[LAYER_HEX] = '\0';
}

void hash_done(struct hash *h)
{
	EVP_MD_CTX_free(h->ctx);
	h->ctx = NULL;
}
