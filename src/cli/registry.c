/* What a pull takes from the user's settings and secrets. */
#include "cli/registry.h"

#include <jansson.h>
#include <stdio.h>

#include "cli/compose.h"
#include "cli/upstream.h"
#include "policy/net.h"

enum { RESOLVE_MS = 60 * 1000 };

/* ---- the password ---- */

/* 0, or 1: there is none of this name. */
static int take_secret(struct store *store, const char *name, struct registry *ret, struct err *e)
{
	char key[STORE_KEY_MAX + 1], resource[NET_RESOURCE_MAX + 1];
	struct store_entry entry = { 0 };
	struct err none = { 0 };
	int64_t refresh;
	char *value = NULL;
	json_t *meta;
	size_t n = 0;
	int r;

	if (net_resource_check(name, resource, sizeof(resource), &none) < 0 ||
	    !store_key_is(compose_key(key, "global", "registry", resource)))
		return 1;
	r = store_get(store, key, &entry, &value, &n, e);
	value = store_value_free(value, n);
	if (r < 0)
		return r == -ENOENT ? 1 : r;
	meta = json_loads(entry.meta, 0, NULL);
	if (json_string_value(json_object_get(meta, "username")))
		ret->user = strdup(json_string_value(json_object_get(meta, "username")));
	if (json_string_value(json_object_get(meta, "endpoint")))
		ret->endpoint = strdup(json_string_value(json_object_get(meta, "endpoint")));
	json_decref(meta);
	store_entry_done(&entry);
	if (!ret->user)
		return 1;
	return store_resolve(store, key, RESOLVE_MS, &ret->password, &ret->n_password, &refresh, e);
}

static int get_secret(struct ctx *c, const char *domain, struct registry *ret, struct err *e)
{
	static const char *const docker[] = { "docker.io", "index.docker.io",
					      "registry-1.docker.io" };
	_cleanup_(store_closep) struct store *store = NULL;
	size_t i;
	int r;

	if (!store_is_used(c->dirs.config))
		return 0;
	r = compose_store(c, &store, e);
	if (r < 0)
		return r;
	if (!streq(domain, docker[0])) {
		r = take_secret(store, domain, ret, e);
		return MIN(r, 0);
	}
	for (i = 0, r = 1; r == 1 && i < ARRAY_SIZE(docker); i++)
		r = take_secret(store, docker[i], ret, e);
	return MIN(r, 0);
}

/* ---- the rest ---- */

static int get_ca(struct ctx *c, struct registry *ret, struct err *e)
{
	char *word, *rest = NULL;
	size_t n = 0;
	int r = setting_get(c->state, "tls.extraCa", &ret->ca_text, NULL, e);

	if (r < 0)
		return r;
	for (word = strtok_r(ret->ca_text, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest)) {
		if (n == REGISTRY_CA_MAX)
			return err_set(e, -E2BIG, "tls.extraCa: more than %d files",
				       REGISTRY_CA_MAX);
		ret->ca[n++] = word;
	}
	return 0;
}

/* The way out that other parts of bac take, by the names that Go's programs read. */
static int get_env(struct ctx *c, struct registry *ret, struct err *e)
{
	static const char *const proxies[] = { "HTTPS_PROXY", "https_proxy", "HTTP_PROXY",
					       "http_proxy" };
	static const char *const nos[] = { "NO_PROXY", "no_proxy" };
	_free_ char *proxy = NULL, *no = NULL;
	size_t n = 0, i;
	int r = upstream_get(c, &proxy, &no, e);

	if (r < 0 || !*proxy)
		return r;
	for (i = 0; i < ARRAY_SIZE(proxies); i++)
		if (asprintf(&ret->env[n++], "%s=%s", proxies[i], proxy) < 0)
			return err_errno(e, -ENOMEM, "cannot pull");
	for (i = 0; i < ARRAY_SIZE(nos); i++)
		if (asprintf(&ret->env[n++], "%s=%s", nos[i], no) < 0)
			return err_errno(e, -ENOMEM, "cannot pull");
	return 0;
}

int registry_way(struct ctx *c, struct registry *ret, struct err *e)
{
	int r;

	*ret = (struct registry) { .user = NULL };
	r = get_ca(c, ret, e);
	return r == 0 ? get_env(c, ret, e) : r;
}

int registry_get(struct ctx *c, const char *domain, struct registry *ret, struct err *e)
{
	int r = registry_way(c, ret, e);

	if (r == 0)
		r = get_secret(c, domain, ret, e);
	return r < 0 ? err_ctx(e, "registry %.100s", domain) : 0;
}

void registry_done(struct registry *r)
{
	size_t i;

	r->password = store_value_free(r->password, r->n_password);
	free(r->user);
	free(r->endpoint);
	free(r->ca_text);
	for (i = 0; i < ARRAY_SIZE(r->env); i++)
		free(r->env[i]);
	*r = (struct registry) { .user = NULL };
}
