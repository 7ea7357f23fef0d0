/* The many ways in which schema 1 spoke of one credential, made into a list of services. */
#include <stdio.h>

#include "kit/declare.h"
#include "kit/old.h"
#include "kit/rules.h"
#include "policy/service.h"

struct old_service {
	char name[CRED_NAME_MAX + 1];
	const struct yaml *at;           /* where it was first named; borrowed */
	struct yaml env;                 /* a text, or nothing */
	struct yaml inject;              /* a list, or nothing */
	struct yaml oauth;               /* a map, or nothing */
	bool required, managed, headers; /* headers: it is said how */
};

struct folder {
	struct take *t;
	struct tree *m;
	struct services known;
	struct old_service v[DECLARE_MAX];
	size_t n;
};

/* ---- services ---- */
/* The one of this name, or a new one; NULL: too many, or no name (told). */
static struct old_service *service(struct folder *f, const char *name, const struct yaml *at)
{
	struct old_service *s;
	size_t i;

	for (i = 0; i < f->n; i++)
		if (streq(f->v[i].name, name))
			return &f->v[i];
	if (!*name || strlen(name) > CRED_NAME_MAX || f->n == DECLARE_MAX) {
		TAKE_FAULT(f->t, at,
			   "found '%.60s', expected the name of one of at most %d services", name,
			   DECLARE_MAX);
		return NULL;
	}
	s = &f->v[f->n++];
	*s = (struct old_service) { .at = at };
	(void)snprintf(s->name, sizeof(s->name), "%s", name);
	return s;
}

/* GITHUB_TOKEN: "github"; ACME_API_KEY: "acme". */
static void service_of(const struct folder *f, const char *env, char ret[CRED_NAME_MAX + 1])
{
	static const char *const ends[] = { "_api_key", "_token", "_key", "_secret" };
	size_t i, k, n;

	for (i = 0; i < f->known.n; i++)
		for (k = 0; k < f->known.v[i].n_envs; k++)
			if (streq(f->known.v[i].envs[k], env)) {
				(void)snprintf(ret, CRED_NAME_MAX + 1, "%s", f->known.v[i].name);
				return;
			}
	for (n = 0; n < CRED_NAME_MAX && env[n]; n++)
		ret[n] = (char)(env[n] >= 'A' && env[n] <= 'Z' ? env[n] - 'A' + 'a' : env[n]);
	ret[n] = '\0';
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		k = strlen(ends[i]);
		if (n > k && streq(ret + n - k, ends[i])) {
			ret[n - k] = '\0';
			return;
		}
	}
}

static void set_env(struct folder *f, struct old_service *s, const char *env, const struct yaml *at)
{
	if (s->env.kind == YAML_NONE)
		s->env = tree_text(f->m, env, at);
}

/* {domain, header, format} or {domain, scheme: basic, username} */
static void add_inject(struct folder *f, struct old_service *s, const char *domain,
		       const char *header, const char *format, const char *username,
		       const struct yaml *at)
{
	struct yaml one = tree_new(f->m, YAML_MAP, at), y;

	if (s->inject.kind == YAML_NONE)
		s->inject = tree_new(f->m, YAML_LIST, at);
	y = tree_text(f->m, domain, at);
	tree_put(f->m, &one, "domain", &y);
	if (header) {
		y = tree_text(f->m, header, at);
		tree_put(f->m, &one, "header", &y);
		y = tree_text(f->m, format ? format : "%s", at);
		tree_put(f->m, &one, "format", &y);
		s->headers = true;
	}
	if (username) {
		y = tree_text(f->m, "basic", at);
		tree_put(f->m, &one, "scheme", &y);
		y = tree_text(f->m, username, at);
		tree_put(f->m, &one, "username", &y);
	}
	tree_put(f->m, &s->inject, NULL, &one);
}

/* All that is known of it. */
static void inject_known(struct folder *f, struct old_service *s)
{
	const struct service *k = services_find(&f->known, s->name);
	size_t i;

	if (!k || s->inject.kind != YAML_NONE)
		return;
	for (i = 0; i < k->n_uses; i++)
		add_inject(f, s, k->uses[i].resource, k->uses[i].header, k->uses[i].format,
			   k->uses[i].username, s->at);
}

/* ---- each of the old blocks ---- */
static void fold_secrets(struct folder *f, const struct yaml *list)
{
	char name[CRED_NAME_MAX + 1];
	size_t i;

	old_warn(f->t, list, "'credentials'");
	if (!take_is(f->t, list, YAML_LIST))
		return;
	for (i = 0; i < list->n; i++) {
		const struct yaml *y = &list->v[i];
		const struct service *k =
			y->kind == YAML_TEXT ? services_find(&f->known, y->text) : NULL;
		struct old_service *s;

		if (y->kind != YAML_TEXT || (!k && !rules_is_variable(y->text))) {
			take_wrong(f->t, y, "the name of a service, or of a variable");
			continue;
		}
		if (!k)
			service_of(f, y->text, name);
		s = service(f, k ? k->name : name, y);
		if (!s)
			continue;
		if (s->env.kind != YAML_NONE)
			TAKE_FAULT(f->t, y, "found the service '%s' a second time", s->name);
		set_env(f, s, !k ? y->text : k->n_envs ? k->envs[0] : "", y);
		s->required = s->managed = true;
	}
}

static void fold_source(struct folder *f, const struct yaml *y)
{
	static const struct take_field keys[] = { { "env", NULL, 0 },
						  { "file", NULL, 0 },
						  { "priority", NULL, 0 },
						  { "required", take_bool,
						    offsetof(struct old_service, required) } };
	struct old_service *s = service(f, y->key, y);
	const struct yaml *env = take_get(y, "env");

	if (!s)
		return;
	take_map(f->t, y, keys, ARRAY_SIZE(keys), s);
	if (take_get(y, "file"))
		TAKE_WARN(f->t, take_get(y, "file"),
			  "an old field, not applied: store it with 'bac secret set %s'", s->name);
	if (!env || !take_is(f->t, env, YAML_LIST) || !env->n)
		return;
	if (env->v[0].kind == YAML_TEXT)
		set_env(f, s, env->v[0].text, &env->v[0]);
	else
		take_wrong(f->t, &env->v[0], "the name of a variable");
}

static void fold_sources(struct folder *f, const struct yaml *credentials)
{
	static const struct take_field keys[] = { { "sources", NULL, 0 } };
	const struct yaml *sources = take_get(credentials, "sources");
	size_t i;

	take_map(f->t, credentials, keys, ARRAY_SIZE(keys), NULL);
	if (!sources || !take_is(f->t, sources, YAML_MAP))
		return;
	old_warn(f->t, sources, "'credentials[].apiKey'");
	for (i = 0; i < sources->n; i++)
		fold_source(f, &sources->v[i]);
}

/* headerName and valueFormat of a service, if it has them. */
struct old_auth {
	char *header, *format;
};

static struct old_auth auth_of(struct folder *f, const struct yaml *all, const char *name)
{
	static const struct take_field keys[] = {
		{ "headerName", take_text, offsetof(struct old_auth, header) },
		{ "valueFormat", take_text, offsetof(struct old_auth, format) },
	};
	const struct yaml *y = all ? take_get(all, name) : NULL;
	struct old_auth a = { 0 };

	if (y)
		take_map(f->t, y, keys, ARRAY_SIZE(keys), &a);
	return a;
}

static void fold_domains(struct folder *f, const struct yaml *map, const struct yaml *auth)
{
	size_t i;

	if (!take_is(f->t, map, YAML_MAP))
		return;
	for (i = 0; i < map->n; i++) {
		const struct yaml *y = &map->v[i];
		struct old_service *s = NULL;
		struct old_auth a;

		if (y->kind == YAML_TEXT && !yaml_is_null(y))
			s = service(f, y->text, y);
		else
			take_wrong(f->t, y, "the name of a service");
		if (!s)
			continue;
		a = auth_of(f, auth, y->text);
		add_inject(f, s, y->key, a.header, a.format, NULL, y);
	}
}

static void fold_egress(struct folder *f, const struct yaml *map, const struct yaml *domains,
			const struct yaml *auth)
{
	size_t i;

	old_warn(f->t, map, "'credentials[].apiKey.inject'");
	for (i = 0; map->kind == YAML_MAP && i < map->n; i++)
		if (domains && yaml_get(domains, map->v[i].key))
			TAKE_FAULT(f->t, &map->v[i],
				   "found it in 'network.serviceDomains' too, expected it once");
	fold_domains(f, map, auth);
}

static void fold_managed(struct folder *f, const struct yaml *list)
{
	char name[CRED_NAME_MAX + 1];
	struct old_service *s;
	size_t i, k;

	old_warn(f->t, list, "'credentials[].apiKey.name'");
	if (!take_is(f->t, list, YAML_LIST))
		return;
	for (i = 0; i < list->n; i++) {
		const struct yaml *y = &list->v[i];

		if (y->kind != YAML_TEXT || !rules_is_variable(y->text)) {
			take_wrong(f->t, y, "the name of a variable");
			continue;
		}
		for (k = 0; k < f->n; k++)
			if (f->v[k].env.text && streq(f->v[k].env.text, y->text))
				break;
		service_of(f, y->text, name);
		s = k < f->n ? &f->v[k] : service(f, name, y);
		if (!s)
			continue;
		set_env(f, s, y->text, y);
		s->managed = true;
	}
}

/* Domains without a header, of a service that has a login and no key: its resources. */
static void route(struct folder *f, struct old_service *s)
{
	const struct yaml *endpoint = take_get(&s->oauth, "tokenEndpoint");
	const struct yaml *host = endpoint ? take_get(endpoint, "host") : NULL;
	struct yaml list = tree_new(f->m, YAML_LIST, s->at);
	size_t i;

	for (i = 0; i < s->inject.n; i++) {
		struct yaml *one = (struct yaml *)yaml_get(&s->inject.v[i], "domain"), copy;

		if (!one || (host && streq(host->text, one->text)))
			continue;
		copy = tree_text(f->m, one->text, one);
		tree_put(f->m, &list, NULL, &copy);
	}
	yaml_done(&s->inject);
	tree_put(f->m, &s->oauth, "resourceHosts", &list);
}

static void fold_oauth(struct folder *f, struct yaml *oauth)
{
	struct yaml name = { 0 }, through;
	struct old_service *s = NULL;

	old_warn(f->t, oauth, "'credentials[].oauth'");
	if (!take_is(f->t, oauth, YAML_MAP))
		return;
	if (!tree_take(oauth, "service", &name))
		take_missing(f->t, oauth, "service", "its name");
	else if (name.kind != YAML_TEXT)
		take_wrong(f->t, &name, "the name of a service");
	else
		s = service(f, name.text, oauth);
	yaml_done(&name);
	if (tree_take(oauth, "passthroughResponse", &through))
		tree_put(f->m, oauth, "passthrough", &through);
	if (!s)
		return;
	yaml_done(&s->oauth);
	s->oauth = *oauth;
	*oauth = (struct yaml) { 0 };
	s->at = &s->oauth;
	if (s->env.kind == YAML_NONE && !s->headers && s->inject.n)
		route(f, s);
}

/* ---- the list ---- */
static void write_service(struct folder *f, struct old_service *s, struct yaml *list)
{
	struct yaml one = tree_new(f->m, YAML_MAP, s->at), key, y;

	y = tree_text(f->m, s->name, s->at);
	tree_put(f->m, &one, "service", &y);
	if (s->required) {
		y = tree_text(f->m, "true", s->at);
		tree_put(f->m, &one, "required", &y);
	}
	if (s->env.kind != YAML_NONE)
		inject_known(f, s);
	if (s->env.kind != YAML_NONE || s->inject.kind != YAML_NONE) {
		key = tree_new(f->m, YAML_MAP, s->at);
		if (s->env.text && *s->env.text)
			tree_put(f->m, &key, "name", &s->env);
		if (s->managed) {
			y = tree_text(f->m, "true", s->at);
			tree_put(f->m, &key, "proxyManaged", &y);
		}
		if (s->inject.kind != YAML_NONE)
			tree_put(f->m, &key, "inject", &s->inject);
		tree_put(f->m, &one, "apiKey", &key);
	}
	if (s->oauth.kind != YAML_NONE)
		tree_put(f->m, &one, "oauth", &s->oauth);
	tree_put(f->m, list, NULL, &one);
	yaml_done(&s->env);
	yaml_done(&s->inject);
}

/* Everything is folded: into the list, behind what is in it already. */
static void write_list(struct folder *f, struct yaml *tree)
{
	struct yaml *list;
	size_t i;

	for (i = 0; i < f->n; i++) {
		list = tree_at(f->m, tree, "credentials", YAML_LIST, f->v[i].at);
		if (list && list->kind == YAML_LIST)
			write_service(f, &f->v[i], list);
		yaml_done(&f->v[i].env);
		yaml_done(&f->v[i].inject);
		yaml_done(&f->v[i].oauth);
	}
}

void old_credentials(struct take *t, struct tree *m, struct yaml *tree, struct yaml *network)
{
	struct yaml secrets = { 0 }, egress = { 0 }, sources = { 0 }, managed = { 0 },
		    oauth = { 0 };
	const struct yaml *domains = take_get(network, "serviceDomains");
	const struct yaml *auth = take_get(network, "serviceAuth");
	const struct yaml *there = take_get(tree, "credentials");
	struct folder *f = calloc(1, sizeof(*f));
	struct yaml *environment;
	struct err e;

	if (!f || services_load(&f->known, &e) < 0) {
		m->failed = true;
		free(f);
		return;
	}
	f->t = t;
	f->m = m;
	if (there && there->kind == YAML_MAP && tree_take(tree, "credentials", &sources))
		fold_sources(f, &sources);
	if (tree_take(tree, "secrets", &secrets))
		fold_secrets(f, &secrets);
	if (domains) {
		old_warn(t, domains, "'credentials[].apiKey.inject'");
		fold_domains(f, domains, auth);
	}
	if (auth)
		old_warn(t, auth, "'credentials[].apiKey.inject'");
	if (tree_take(tree, "egress", &egress))
		fold_egress(f, &egress, domains, auth);
	environment = (struct yaml *)take_get(tree, "environment"); /* where it is now */
	if (environment && tree_take(environment, "proxyManaged", &managed))
		fold_managed(f, &managed);
	if (tree_take(tree, "oauth", &oauth))
		fold_oauth(f, &oauth);
	write_list(f, tree);
	yaml_done(&secrets);
	yaml_done(&egress);
	yaml_done(&sources);
	yaml_done(&managed);
	yaml_done(&oauth);
	services_done(&f->known);
	free(f);
}
