#pragma once
/* What a pull takes from the user's settings and secrets. */
#include "cli/ctx.h"

enum { REGISTRY_CA_MAX = 64, REGISTRY_ENV_MAX = 8 };

struct registry {
	char *user, *password; /* NULL: none */
	size_t n_password;
	char *endpoint; /* or NULL */
	char *ca_text;  /* what ca borrows from */
	const char *ca[REGISTRY_CA_MAX + 1];
	char *env[REGISTRY_ENV_MAX + 1];
};

/* For a registry ("ghcr.io", "localhost:5000"): the global secret of it, if there is one. registry_done() in any case. */
int registry_get(struct ctx *c, const char *domain, struct registry *ret, struct err *e)
	_must_check_;
/* The same without a secret: whom to trust, and the way out. */
int registry_way(struct ctx *c, struct registry *ret, struct err *e) _must_check_;
void registry_done(struct registry *r);
