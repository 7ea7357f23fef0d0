#pragma once
/* SHA-256 by OpenSSL, which uses what the processor has for it. */
#include "wire/layer.h"

enum { HASH_SIZE = 32 };

struct hash {
	void *ctx; /* NULL: adding does nothing */
};

/* Before the seal: whatever the library opens, it opens here. 0 or -errno. */
int hash_prepare(void) _must_check_;

int hash_begin(struct hash *h) _must_check_; /* 0 or -ENOMEM */
void hash_add(struct hash *h, const void *p, size_t n);
/* The state is used up. */
void hash_end(struct hash *h, uint8_t ret[HASH_SIZE]);
void hash_end_hex(struct hash *h, char ret[LAYER_HEX + 1]);
void hash_done(struct hash *h);
