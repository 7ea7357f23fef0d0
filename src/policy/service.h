#pragma once
/* What bac knows of services without being told: data/services, compiled in. */
#include "policy/cred.h"

enum { SERVICE_ENVS_MAX = 4, SERVICE_USES_MAX = 16 };

struct service {
	const char *name;
	const char *envs[SERVICE_ENVS_MAX]; /* set to "proxy-managed" */
	size_t n_envs;
	const char *oauth_env; /* NULL: none */
	const char *file, *file_scopes,
		*file_text; /* where its client keeps a login (kit/login-file.h); NULL: none */
	/* patterns: kind, resource, header, format, username, placeholders, path, fields; nothing else is set */
	struct cred_use uses
		[SERVICE_USES_MAX]; /* HEADER, BASIC; the first is what the key is for, and says how it is done at hosts that are added */
	size_t n_uses;
	struct cred_use oauth[SERVICE_USES_MAX]; /* OAUTH, TOKEN */
	size_t n_oauth;
};

struct services {
	struct service *
		v; /* in the order of the data: where two speak of one host, the first comes first */
	size_t n;
	char *text; /* that all of it points into */
};

/* 0, -ENOMEM, or -EINVAL with line: the data is not as it should be. services_done() in any case. */
int services_load(struct services *ret, struct err *e) _must_check_;
/* The same of another text, for tests. */
int services_parse(struct services *ret, const char *text, struct err *e) _must_check_;
void services_done(struct services *s);

/* NULL: none of that name. */
const struct service *services_find(const struct services *s, const char *name);
