#include "kit/declare.h"

#include <stdio.h>

#include "policy/net.h"

/* An item while it is read. */
struct reader {
	struct declarations *d;
	struct declared *one;
	struct err *e;
};

#define FAULT(r, y, ...) \
	(err_set((r)->e, -EINVAL, __VA_ARGS__), err_ctx((r)->e, "line %u", (y)->line))

void declare_done(struct declarations *d)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		free(d->v[i].v);
	for (i = 0; i < d->n_texts; i++)
		free(d->texts[i]);
	free(d->texts);
	free(d->v);
	free(d->origin);
	yaml_done(&d->source);
	*d = (struct declarations) { 0 };
}

/* A copy that lives as long as the declarations; NULL on lack of memory. */
static const char *keep(struct declarations *d, const char *text)
{
	char **texts = reallocarray(d->texts, d->n_texts + 1, sizeof(*texts));

	if (!texts)
		return NULL;
	d->texts = texts;
	texts[d->n_texts] = strdup(text);
	return texts[d->n_texts] ? texts[d->n_texts++] : NULL;
}

/* Whole now: the same check as that of the text that keeper and proxy read. */
static int check_use(const struct reader *r, const struct yaml *at, const struct cred_use *pattern)
{
	struct cred_use u = *pattern;
	struct buf out = BUF_INIT(CRED_TEXT_MAX);
	int k;

	u.id = "x";
	u.state = CRED_READY;
	u.origin = r->d->origin;
	u.service = r->one->service;
	u.key = "global/service/x";
	k = cred_text_use(&out, &u, r->e);
	buf_done(&out);
	return k < 0 ? err_ctx(r->e, "line %u", at->line) : 0;
}

static int add_use(const struct reader *r, const struct yaml *at, const char *domain,
		   struct cred_use *u)
{
	char resource[NET_RESOURCE_MAX + 1];
	struct declared *one = r->one;
	struct cred_use *v;

	if (one->n == DECLARE_USES_MAX)
		return FAULT(r, at, "a service is used at %d hosts at most", DECLARE_USES_MAX);
	if (net_resource_check(domain, resource, sizeof(resource), r->e) < 0)
		return err_ctx(r->e, "line %u: '%.100s'", at->line, domain);
	u->resource = keep(r->d, resource);
	v = u->resource ? reallocarray(one->v, one->n + 1, sizeof(*v)) : NULL;
	if (!v)
		return err_set(r->e, -ENOMEM, "out of memory");
	one->v = v;
	v[one->n++] = *u;
	return check_use(r, at, u);
}

/* A text that must be there. */
static int need(const struct reader *r, const struct yaml *map, const char *key, const char *of,
		const char **ret)
{
	int k = yaml_text(map, key, ret, r->e);

	if (k == 0 && (!*ret || !**ret))
		return FAULT(r, map, "%s needs '%s'", of, key);
	return k;
}

static const char *lower(struct declarations *d, const char *text)
{
	char name[CRED_HEADER_MAX + 2];
	size_t i;

	for (i = 0; i < sizeof(name) - 1 && text[i]; i++)
		name[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
	name[i] = '\0';
	return keep(d, name);
}

/* scheme, header, format, username: which of them go together. */
static int read_how(const struct reader *r, const struct yaml *y, struct cred_use *u)
{
	const char *scheme = NULL, *header = NULL, *format = NULL, *username = NULL;
	int k = yaml_text(y, "scheme", &scheme, r->e);

	if (k == 0)
		k = yaml_text(y, "header", &header, r->e);
	if (k == 0)
		k = yaml_text(y, "format", &format, r->e);
	if (k == 0)
		k = yaml_text(y, "username", &username, r->e);
	if (k < 0)
		return k;
	if (scheme && !streq(scheme, "bearer") && !streq(scheme, "basic"))
		return FAULT(r, y, "scheme is bearer or basic");
	if (scheme && format)
		return FAULT(r, y, "scheme and format exclude each other");
	if (streq(scheme, "basic")) {
		if (!username || header)
			return FAULT(r, y, "scheme basic has a username, and no header");
		*u = (struct cred_use) { .kind = CRED_BASIC, .username = username };
		return 0;
	}
	if (username)
		return FAULT(r, y, "a username goes with scheme basic");
	if (!scheme && !header)
		return FAULT(r, y, "say how: header, or scheme");
	*u = (struct cred_use) { .kind = CRED_HEADER,
				 .header = lower(r->d, header ? header : "authorization"),
				 .format = scheme   ? "Bearer %s"
					   : format ? format
						    : "%s" };
	return u->header ? 0 : err_set(r->e, -ENOMEM, "out of memory");
}

static int read_inject(const struct reader *r, const struct yaml *list)
{
	static const char *const keys[] = {
		"domain", "header", "format", "scheme", "username", NULL
	};
	struct cred_use u = { 0 };
	const char *domain = NULL;
	size_t i;
	int k = yaml_want(list, YAML_LIST, "inject", r->e);

	for (i = 0; i < list->n && k == 0; i++) {
		const struct yaml *y = &list->v[i];

		k = yaml_keys(y, keys, "inject", r->e);
		if (k == 0)
			k = need(r, y, "domain", "inject", &domain);
		if (k == 0)
			k = read_how(r, y, &u);
		if (k == 0)
			k = add_use(r, y, domain, &u);
	}
	return k;
}

static bool is_variable(const char *s)
{
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	return *s && !s[n] && n < 128 && !(*s >= '0' && *s <= '9');
}

static int read_api_key(const struct reader *r, const struct yaml *y)
{
	static const char *const keys[] = { "name", "inject", "proxyManaged", NULL };
	const struct yaml *inject;
	bool managed = true;
	int k = yaml_keys(y, keys, "apiKey", r->e);

	if (k == 0)
		k = yaml_text(y, "name", &r->one->env, r->e);
	if (k == 0)
		k = yaml_bool(y, "proxyManaged", &managed, r->e);
	if (k < 0)
		return k;
	if (r->one->env && !is_variable(r->one->env))
		return FAULT(r, y, "'%.60s' is not the name of a variable", r->one->env);
	inject = yaml_get(y, "inject");
	return inject ? read_inject(r, inject) : 0;
}

/* ---- oauth ---- */
static int read_hosts(const struct reader *r, const struct yaml *list, const char *access)
{
	struct cred_use u = { .kind = CRED_OAUTH, .placeholder = access };
	size_t i;
	int k = yaml_want(list, YAML_LIST, "resourceHosts", r->e);

	for (i = 0; i < list->n && k == 0; i++) {
		k = yaml_want(&list->v[i], YAML_TEXT, "one of resourceHosts", r->e);
		if (k == 0)
			k = add_use(r, &list->v[i], list->v[i].text, &u);
	}
	return k;
}

/* The names of an answer's members; those of RFC 6749 unless they are said. */
static int read_fields(const struct reader *r, const struct yaml *y, const char **ret)
{
	static const char *const keys[] = { "accessToken", "refreshToken", "expiresIn", "scope",
					    NULL };
	const char *names[] = { "access_token", "refresh_token", "expires_in", "scope" };
	char all[CRED_PATH_MAX + 2];
	size_t i;
	int k = y ? yaml_keys(y, keys, "responseFields", r->e) : 0;

	for (i = 0; i < ARRAY_SIZE(names) && k == 0; i++) {
		const char *s = NULL;

		k = yaml_text(y, keys[i], &s, r->e);
		names[i] = s ? s : names[i];
	}
	if (k < 0)
		return k;
	(void)snprintf(all, sizeof(all), "%s,%s,%s,%s", names[0], names[1], names[2], names[3]);
	*ret = keep(r->d, all);
	return *ret ? 0 : err_set(r->e, -ENOMEM, "out of memory");
}

static int read_endpoint(const struct reader *r, const struct yaml *y, struct cred_use *u)
{
	static const char *const keys[] = { "host", "path", NULL };
	const char *host = NULL;
	int k = yaml_keys(y, keys, "tokenEndpoint", r->e);

	if (k == 0)
		k = need(r, y, "host", "tokenEndpoint", &host);
	if (k == 0)
		k = need(r, y, "path", "tokenEndpoint", &u->path);
	return k < 0 ? k : add_use(r, y, host, u);
}

/* Made once, so that what cannot be made is refused here. */
static int read_file(const struct reader *r, const struct yaml *y, const struct cred_use *u)
{
	static const char *const keys[] = { "path", "structure", "template", NULL };
	const struct login_values v = { .access = u->placeholder2,
					.refresh = u->placeholder,
					.scopes = "" };
	struct buf out = BUF_INIT(LOGIN_FILE_MAX);
	struct login_file f = { 0 };
	const char *path = NULL;
	int k = yaml_keys(y, keys, "credentialFile", r->e);

	if (k == 0)
		k = need(r, y, "path", "credentialFile", &path);
	if (k == 0)
		k = yaml_text(y, "template", &f.template, r->e);
	f.structure = yaml_get(y, "structure");
	if (k == 0 && !f.template == !f.structure)
		return FAULT(r, y, "credentialFile has 'structure' or 'template'");
	if (k == 0 && f.structure)
		k = yaml_want(f.structure, YAML_MAP, "structure", r->e);
	if (k < 0)
		return k;
	k = login_file_path(path, &f.path, r->e);
	if (k == 0)
		k = login_file_make(&f, &v, &out, r->e);
	buf_done(&out);
	if (k < 0)
		return err_ctx(r->e, "line %u", y->line);
	r->one->file = f;
	r->one->access = u->placeholder2;
	r->one->refresh = u->placeholder;
	return 0;
}

static int read_oauth(const struct reader *r, const struct yaml *y)
{
	static const char *const keys[] = { "tokenEndpoint",  "resourceHosts",
					    "sentinels",      "credentialFile",
					    "responseFields", "skipIfEnv",
					    "passthrough",    NULL };
	static const char *const sentinel_keys[] = { "accessToken", "refreshToken", NULL };
	struct cred_use u = { .kind = CRED_TOKEN };
	const struct yaml *sentinels, *endpoint, *hosts, *file;
	bool through = false;
	int k = yaml_keys(y, keys, "oauth", r->e);

	if (k == 0)
		k = yaml_bool(y, "passthrough", &through, r->e);
	if (k < 0)
		return k;
	sentinels = yaml_get(y, "sentinels");
	endpoint = yaml_get(y, "tokenEndpoint");
	hosts = yaml_get(y, "resourceHosts");
	file = yaml_get(y, "credentialFile");
	if (through)
		return FAULT(r, y, "passthrough: real tokens do not enter a sandbox");
	if (!sentinels || !endpoint)
		return FAULT(r, y, "oauth needs 'tokenEndpoint' and 'sentinels'");
	k = yaml_keys(sentinels, sentinel_keys, "sentinels", r->e);
	if (k == 0)
		k = need(r, sentinels, "accessToken", "sentinels", &u.placeholder2);
	if (k == 0)
		k = need(r, sentinels, "refreshToken", "sentinels", &u.placeholder);
	if (k == 0)
		k = read_fields(r, yaml_get(y, "responseFields"), &u.fields);
	if (k == 0)
		k = read_endpoint(r, endpoint, &u);
	if (k == 0 && file)
		k = read_file(r, file, &u);
	return k == 0 && hosts ? read_hosts(r, hosts, u.placeholder2) : k;
}

/* ---- the list ---- */
static int read_item(struct reader *r, const struct yaml *y)
{
	static const char *const keys[] = { "service", "description", "required", "provider",
					    "apiKey",  "oauth",       NULL };
	const struct yaml *part;
	int k = yaml_keys(y, keys, "a credential", r->e);

	if (k == 0)
		k = need(r, y, "service", "a credential", &r->one->service);
	if (k == 0)
		k = yaml_bool(y, "required", &r->one->required, r->e);
	part = yaml_get(y, "apiKey");
	if (k == 0 && part)
		k = read_api_key(r, part);
	part = yaml_get(y, "oauth");
	if (k == 0 && part)
		k = read_oauth(r, part);
	if (k == 0 && !yaml_get(y, "apiKey") && !part)
		k = FAULT(r, y, "a credential has apiKey or oauth");
	return k;
}

static int read_list(struct reader *r, const struct yaml *list)
{
	struct declarations *d = r->d;
	size_t i;
	int k = yaml_want(list, YAML_LIST, "credentials", r->e);

	if (k == 0 && list->n > DECLARE_MAX)
		k = FAULT(r, list, "%d credentials at most", DECLARE_MAX);
	if (k < 0)
		return k;
	d->v = calloc(list->n + 1, sizeof(*d->v));
	if (!d->v)
		return err_set(r->e, -ENOMEM, "out of memory");
	for (i = 0; i < list->n && k == 0; i++) {
		r->one = &d->v[d->n++];
		k = read_item(r, &list->v[i]);
	}
	return k;
}

int declare_parse(const char *kind, const char *name, const char *text, size_t n,
		  struct declarations *ret, struct err *e)
{
	static const char *const keys[] = { "credentials", NULL };
	struct declarations d = { 0 };
	struct reader r = { .d = &d, .e = e };
	const struct yaml *list;
	int k = asprintf(&d.origin, "%s:%s", kind, name) < 0 ? err_set(e, -ENOMEM, "out of memory")
							     : 0;

	if (k == 0)
		k = yaml_parse(text, n, &d.source, e);
	if (k == 0)
		k = yaml_keys(&d.source, keys, "the file", e);
	list = yaml_get(&d.source, "credentials");
	if (k == 0 && !list)
		k = err_set(e, -EINVAL, "line 1: it has no 'credentials'");
	if (k == 0)
		k = read_list(&r, list);
	if (k < 0)
		declare_done(&d);
	else
		*ret = d;
	return k;
}
