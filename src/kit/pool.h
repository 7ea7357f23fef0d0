#pragma once
/* Memory that lives as long as a kit, and is freed in one stroke. */
#include "base/base.h"

struct pool {
	void **v;
	size_t n, cap;
	bool failed; /* once there was no memory: asked at the end */
};

/* n elements of zeros (at least one); NULL on lack of memory. */
void *pool_zero(struct pool *p, size_t n, size_t size) _must_check_;
/* n bytes and a NUL. */
char *pool_text(struct pool *p, const char *s, size_t n) _must_check_;
void pool_done(struct pool *p);
