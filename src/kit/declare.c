#include "kit/declare.h"

#include <stdio.h>
#include <strings.h>

#include "kit/rules.h"
#include "kit/take.h"
#include "policy/net.h"
#include "policy/service.h"

/* What an item is read with: t, and where it goes. */
struct item {
	struct declarations *d;
	struct declared *one;
	const struct services *known; /* how a key is put on a request, where it is not said */
};

void declare_done(struct declarations *d)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		free(d->v[i].v);
	free(d->v);
	free(d->origin);
	pool_done(&d->pool);
	yaml_done(&d->source);
	*d = (struct declarations) { 0 };
}

/* Whole now: the same check as that of the text that keeper and proxy read. */
static int check_use(const struct item *m, const struct cred_use *pattern, struct err *e)
{
	struct cred_use u = *pattern;
	struct buf out = BUF_INIT(CRED_TEXT_MAX);
	int k;

	u.id = "x";
	u.state = CRED_READY;
	u.origin = "kit:x";
	u.service = m->one->service;
	u.key = "global/service/x";
	k = cred_text_use(&out, &u, e);
	buf_done(&out);
	return k;
}

static void add_use(struct take *t, const struct item *m, const struct yaml *at, const char *domain,
		    struct cred_use *u)
{
	char resource[NET_RESOURCE_MAX + 1];
	struct declared *one = m->one;
	struct cred_use *v;
	struct err e;

	if (one->n == DECLARE_USES_MAX) {
		TAKE_FAULT(t, at, "found more than %d hosts of a service", DECLARE_USES_MAX);
		return;
	}
	if (net_resource_check(domain, resource, sizeof(resource), &e) < 0) {
		TAKE_FAULT(t, at, "found '%.60s', expected HOST or HOST:PORT: %s", domain, e.msg);
		return;
	}
	u->resource = pool_text(t->pool, resource, strlen(resource));
	v = u->resource ? reallocarray(one->v, one->n + 1, sizeof(*v)) : NULL;
	if (!v) {
		t->pool->failed = true;
		return;
	}
	one->v = v;
	v[one->n++] = *u;
	if (one->service && check_use(m, u, &e) < 0)
		TAKE_FAULT(t, at, "%s", e.msg);
}

static const char *lower(struct take *t, const char *text)
{
	char *copy = pool_text(t->pool, text, strlen(text));
	size_t i;

	for (i = 0; copy && copy[i]; i++)
		if (copy[i] >= 'A' && copy[i] <= 'Z')
			copy[i] = (char)(copy[i] - 'A' + 'a');
	return copy;
}

/* ---- apiKey ---- */
struct inject {
	const char *domain, *header, *format, *scheme, *username;
};

/* As it is done for this service, where nothing is said. */
static bool known_way(struct take *t, const struct item *m, struct cred_use *u)
{
	const struct service *s = m->one->service ? services_find(m->known, m->one->service) : NULL;
	const struct cred_use *first = s && s->n_uses ? &s->uses[0] : NULL;

	if (!first)
		return false;
	*u = (struct cred_use) { .kind = first->kind };
	if (first->header)
		u->header = pool_text(t->pool, first->header, strlen(first->header));
	if (first->format)
		u->format = pool_text(t->pool, first->format, strlen(first->format));
	if (first->username)
		u->username = pool_text(t->pool, first->username, strlen(first->username));
	return true;
}

/* A user's name says enough, and says the same beside what Basic looks like. */
static bool is_basic(const struct inject *i)
{
	return i->username && (!i->header || !strcasecmp(i->header, "authorization")) &&
	       (!i->format || streq(i->format, "Basic %s") || streq(i->format, "%s"));
}

/* scheme, header, format, username: which of them go together. False: it is told. */
static bool read_how(struct take *t, const struct item *m, const struct yaml *y,
		     const struct inject *i, struct cred_use *u)
{
	bool basic = streq(i->scheme, "basic") || (!i->scheme && is_basic(i));

	if (i->scheme && !streq(i->scheme, "bearer") && !streq(i->scheme, "basic"))
		take_wrong(t, yaml_get(y, "scheme"), "bearer or basic");
	else if (i->scheme && i->format)
		TAKE_FAULT(t, y, "found both 'scheme' and 'format', expected one of them");
	else if (basic && (!i->username || (i->header && !is_basic(i))))
		TAKE_FAULT(t, y, "found %s, expected 'username' alone with scheme basic",
			   i->header ? "'header'" : "no 'username'");
	else if (i->username && !basic)
		TAKE_FAULT(t, y, "found 'username', expected it with scheme basic only");
	else if (basic)
		*u = (struct cred_use) { .kind = CRED_BASIC, .username = i->username };
	else if (i->scheme || i->header)
		*u = (struct cred_use) { .kind = CRED_HEADER,
					 .header =
						 lower(t, i->header ? i->header : "authorization"),
					 .format = i->scheme   ? "Bearer %s"
						   : i->format ? i->format
							       : "%s" };
	else if (i->format || !known_way(t, m, u))
		TAKE_FAULT(t, y, "found no 'header', expected it, or 'scheme'");
	return u->kind != CRED_KIND_NONE;
}

static void read_one_inject(struct take *t, const struct item *m, const struct yaml *y)
{
	static const struct take_field f[] = {
		{ "domain", take_text, offsetof(struct inject, domain) },
		{ "header", take_text, offsetof(struct inject, header) },
		{ "format", take_text, offsetof(struct inject, format) },
		{ "scheme", take_text, offsetof(struct inject, scheme) },
		{ "username", take_text, offsetof(struct inject, username) },
	};
	struct inject i = { 0 };
	struct cred_use u = { 0 };
	size_t before = t->rep->n;

	take_map(t, y, f, ARRAY_SIZE(f), &i);
	if (t->rep->n > before || y->kind != YAML_MAP)
		return;
	if (!i.domain)
		take_missing(t, y, "domain", "the host");
	else if (read_how(t, m, y, &i, &u))
		add_use(t, m, y, i.domain, &u);
}

static void read_api_key(struct take *t, const struct item *m, const struct yaml *y)
{
	static const struct take_field f[] = {
		{ "name", take_any, offsetof(struct declared, env) },
		{ "proxyManaged", take_bool, offsetof(struct declared, managed) },
		{ "inject", NULL, 0 },
	};
	const struct yaml *inject = take_get(y, "inject"), *name = take_get(y, "name");
	size_t i;

	m->one->managed = !t->kit; /* a file of --credentials need not say it */
	take_map(t, y, f, ARRAY_SIZE(f), m->one);
	if (m->one->env && !*m->one->env)
		m->one->env = NULL; /* said to have none */
	if (m->one->env && !rules_is_variable(m->one->env))
		take_wrong(t, name, "the name of a variable");
	if (y->kind == YAML_MAP && !inject && (!name || (name->text && !*name->text)))
		take_missing(t, y, "name", "the variable, or 'inject'");
	if (!inject || !take_is(t, inject, YAML_LIST))
		return;
	for (i = 0; i < inject->n; i++)
		read_one_inject(t, m, &inject->v[i]);
}

/* ---- oauth ---- */
struct oauth {
	bool passthrough;
	const char *host, *path, *access, *refresh, *file, *template;
	const char *fields[4];
};

static void url_path(struct take *t, const struct yaml *y, void *into)
{
	if (y->kind != YAML_TEXT || *y->text != '/' || strpbrk(y->text, "?# "))
		take_wrong(t, y, "a path as '/oauth/token'");
	else
		take_text(t, y, into);
}

static void endpoint(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "host", take_text, offsetof(struct oauth, host) },
		{ "path", url_path, offsetof(struct oauth, path) },
	};

	take_map(t, y, f, ARRAY_SIZE(f), into);
	if (y->kind == YAML_MAP && !take_get(y, "host"))
		take_missing(t, y, "host", "where tokens are had");
	if (y->kind == YAML_MAP && !take_get(y, "path"))
		take_missing(t, y, "path", "where tokens are had");
}

static void sentinel(struct take *t, const struct yaml *y, void *into)
{
	const char *s = y->kind == YAML_TEXT ? y->text : "";
	size_t n = strlen(s), i;

	for (i = 0; i < n && s[i] > ' ' && s[i] < 0x7f; i++)
		;
	if (i < n || n < CRED_PLACEHOLDER_MIN || n > CRED_PLACEHOLDER_MAX)
		take_wrong(t, y, "12 to 255 characters without a space");
	else
		take_text(t, y, into);
}

static void sentinels(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "accessToken", sentinel, offsetof(struct oauth, access) },
		{ "refreshToken", sentinel, offsetof(struct oauth, refresh) },
	};

	take_map(t, y, f, ARRAY_SIZE(f), into);
	if (y->kind == YAML_MAP && !take_get(y, "accessToken"))
		take_missing(t, y, "accessToken", "what stands for it");
	if (y->kind == YAML_MAP && !take_get(y, "refreshToken"))
		take_missing(t, y, "refreshToken", "what stands for it");
}

static void fields(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "accessToken", take_text, offsetof(struct oauth, fields[0]) },
		{ "refreshToken", take_text, offsetof(struct oauth, fields[1]) },
		{ "expiresIn", take_text, offsetof(struct oauth, fields[2]) },
		{ "scope", take_text, offsetof(struct oauth, fields[3]) },
	};

	take_map(t, y, f, ARRAY_SIZE(f), into);
}

static void login_file(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "path", take_text, offsetof(struct oauth, file) },
		{ "structure", NULL, 0 },
		{ "template", take_text, offsetof(struct oauth, template) },
	};
	const struct yaml *structure = take_get(y, "structure");

	take_map(t, y, f, ARRAY_SIZE(f), into);
	if (y->kind != YAML_MAP)
		return;
	if (!take_get(y, "path"))
		take_missing(t, y, "path", "a file below ~/");
	if (structure)
		(void)take_is(t, structure, YAML_MAP);
	else if (!take_get(y, "template"))
		take_missing(t, y, "structure", "a map, or 'template'");
	if (structure && take_get(y, "template"))
		TAKE_WARN(t, take_get(y, "template"), "not used, since there is 'structure'");
}

static void skip_if(struct take *t, const struct yaml *y, void *into)
{
	(void)into;
	if (take_is(t, y, YAML_LIST) && y->n)
		TAKE_WARN(t, y, "not used: a key wins over a login where there is one");
}

/* "{{if .NAME}}A{{else}}B{{end}}" becomes A for what there is a value of, B for anything else. One of them at p, into out; what is behind it, or NULL: it is none that is understood. */
static const char *put_choice(struct take *t, const struct yaml *y, const char *p, struct buf *out)
{
	const char *name = p + strlen("{{if ."), *yes, *no, *end;
	size_t n = strcspn(name, "} ");
	bool is;

	if (strncmp(name + n, "}}", 2) != 0)
		return NULL;
	yes = name + n + 2;
	end = strstr(yes, "{{end}}");
	no = strstr(yes, "{{else}}");
	if (!end || (strstr(yes, "{{if ") && strstr(yes, "{{if ") < end))
		return NULL;
	no = no && no < end ? no : NULL;
	is = login_file_knows(name, n);
	if (is && buf_add(out, yes, (size_t)((no ? no : end) - yes)) < 0)
		t->pool->failed = true;
	if (!is && no && buf_add(out, no + 8, (size_t)(end - no - 8)) < 0)
		t->pool->failed = true;
	if (!is)
		TAKE_WARN(t, y, "'%.*s' is never so", (int)MIN(n + 8, 60U), p);
	return end + strlen("{{end}}");
}

static const char *plain_template(struct take *t, const struct yaml *y, const char *text)
{
	struct buf out = BUF_INIT(YAML_MAX);
	const char *p, *behind, *made = text;

	while ((p = strstr(text, "{{if .")) != NULL) {
		if (buf_add(&out, text, (size_t)(p - text)) < 0)
			t->pool->failed = true;
		behind = put_choice(t, y, p, &out);
		if (!behind)
			break;
		text = behind;
	}
	if (text != made && buf_add(&out, text, strlen(text)) == 0 && buf_str(&out))
		made = pool_text(t->pool, buf_str(&out), out.n);
	buf_done(&out);
	return made;
}

/* Made once, so that what cannot be made is refused here. */
static void keep_file(struct take *t, const struct item *m, const struct yaml *y,
		      const struct oauth *o)
{
	const struct login_values v = { .access = o->access,
					.refresh = o->refresh,
					.scopes = "",
					.id_token = "",
					.account = "" };
	struct login_file f = { .structure = take_get(y, "structure") };
	struct buf out = BUF_INIT(LOGIN_FILE_MAX);
	struct err e;
	int k = login_file_path(o->file, &f.path, &e);

	if (!f.structure)
		f.template = plain_template(t, take_get(y, "template"), o->template);
	if (k == 0)
		k = login_file_make(&f, &v, &out, &e);
	buf_done(&out);
	if (k < 0) {
		TAKE_FAULT(t, y, "%s", e.msg);
		return;
	}
	m->one->file = f;
	m->one->access = o->access;
	m->one->refresh = o->refresh;
}

/* The names of an answer's members; those of RFC 6749 unless they are said. */
static const char *names_of(struct take *t, const struct oauth *o)
{
	static const char *const usual[] = { "access_token", "refresh_token", "expires_in",
					     "scope" };
	struct buf out = BUF_INIT(4096);
	const char *all = NULL;
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < ARRAY_SIZE(usual); i++)
		r = buf_printf(&out, "%s%.255s", i ? "," : "",
			       o->fields[i] ? o->fields[i] : usual[i]);
	if (r == 0 && buf_str(&out))
		all = pool_text(t->pool, buf_str(&out), out.n);
	else
		t->pool->failed = true;
	buf_done(&out);
	return all;
}

static void add_oauth(struct take *t, const struct item *m, const struct yaml *y,
		      const struct oauth *o)
{
	const struct yaml *hosts = take_get(y, "resourceHosts"),
			  *file = take_get(y, "credentialFile");
	struct cred_use u = { .kind = CRED_TOKEN,
			      .path = o->path,
			      .placeholder = o->refresh,
			      .placeholder2 = o->access,
			      .fields = names_of(t, o) };
	struct cred_use use = { .kind = CRED_OAUTH, .placeholder = o->access };
	size_t i;

	if (!u.fields)
		return;
	add_use(t, m, take_get(y, "tokenEndpoint"), o->host, &u);
	if (file)
		keep_file(t, m, file, o);
	for (i = 0; hosts && take_is(t, hosts, YAML_LIST) && i < hosts->n; i++)
		if (hosts->v[i].kind != YAML_TEXT || yaml_is_null(&hosts->v[i]))
			take_wrong(t, &hosts->v[i], "HOST or HOST:PORT");
		else
			add_use(t, m, &hosts->v[i], hosts->v[i].text, &use);
}

static void read_oauth(struct take *t, const struct item *m, const struct yaml *y)
{
	static const struct take_field f[] = {
		{ "tokenEndpoint", endpoint, 0 },
		{ "resourceHosts", NULL, 0 },
		{ "sentinels", sentinels, 0 },
		{ "credentialFile", login_file, 0 },
		{ "responseFields", fields, 0 },
		{ "skipIfEnv", skip_if, 0 },
		{ "passthrough", take_bool, offsetof(struct oauth, passthrough) },
	};
	struct oauth o = { 0 };
	size_t before = t->rep->n;

	take_map(t, y, f, ARRAY_SIZE(f), &o);
	if (y->kind != YAML_MAP)
		return;
	if (o.passthrough)
		TAKE_FAULT(t, yaml_get(y, "passthrough"),
			   "found true, expected false: real tokens do not enter a sandbox");
	if (!take_get(y, "tokenEndpoint"))
		take_missing(t, y, "tokenEndpoint", "a map with 'host' and 'path'");
	if (!take_get(y, "sentinels") && !o.passthrough)
		take_missing(t, y, "sentinels", "a map with 'accessToken' and 'refreshToken'");
	if (t->rep->n == before)
		add_oauth(t, m, y, &o);
}

/* ---- the list ---- */
static void provider(struct take *t, const struct yaml *y, void *into)
{
	const char *s;

	(void)into;
	take_text(t, y, &s);
	TAKE_WARN(t, y, "not used");
}

/* A name that keys of the store, and messages, can have. */
static void service(struct take *t, const struct yaml *y, void *into)
{
	static const char chars[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	if (y->kind != YAML_TEXT || !*y->text || y->text[strspn(y->text, chars)] ||
	    strlen(y->text) > CRED_NAME_MAX)
		take_wrong(t, y, "the name of a service, of letters, digits, '-', '_' and '.'");
	else
		take_text(t, y, into);
}

static void read_item(struct take *t, const struct item *m, const struct yaml *y)
{
	static const struct take_field f[] = {
		{ "service", service, offsetof(struct declared, service) },
		{ "description", take_any, offsetof(struct declared, description) },
		{ "required", take_bool, offsetof(struct declared, required) },
		{ "provider", provider, 0 },
		{ "apiKey", NULL, 0 },
		{ "oauth", NULL, 0 },
	};
	const struct yaml *key = take_get(y, "apiKey"), *oauth = take_get(y, "oauth");
	size_t i;

	take_map(t, y, f, ARRAY_SIZE(f), m->one);
	if (y->kind != YAML_MAP)
		return;
	if (!take_get(y, "service"))
		take_missing(t, y, "service", "its name");
	if (!key && !oauth)
		take_missing(t, y, "apiKey", "it, or 'oauth'");
	for (i = 0; i + 1 < m->d->n; i++)
		if (m->one->service && streq(m->d->v[i].service, m->one->service))
			TAKE_FAULT(t, y, "found the service '%s' a second time", m->one->service);
	if (key)
		read_api_key(t, m, key);
	if (oauth)
		read_oauth(t, m, oauth);
}

void declare_read(struct take *t, const struct yaml *list, struct declarations *ret)
{
	struct services known = { 0 };
	struct pool *before = t->pool;
	struct item m = { .d = ret, .known = &known };
	struct err e;
	size_t i;

	if (list->kind != YAML_LIST) {
		take_wrong(t, list,
			   list->kind == YAML_MAP && yaml_get(list, "sources")
				   ? "a list of services (a map with 'sources' is of schema 1)"
				   : "a list");
		return;
	}
	if (list->n > DECLARE_MAX) {
		TAKE_FAULT(t, list, "found %zu credentials, expected %d at most", list->n,
			   DECLARE_MAX);
		return;
	}
	ret->v = calloc(list->n + 1, sizeof(*ret->v));
	if (!ret->v || services_load(&known, &e) < 0)
		before->failed = true;
	t->pool = &ret->pool;
	for (i = 0; !before->failed && i < list->n; i++) {
		m.one = &ret->v[ret->n++];
		read_item(t, &m, &list->v[i]);
	}
	t->pool = before;
	before->failed |= ret->pool.failed;
	services_done(&known);
}

static void whole(struct take *t, const struct yaml *tree, struct declarations *d)
{
	static const struct take_field f[] = { { "credentials", NULL, 0 } };
	const struct yaml *list = take_get(tree, "credentials");

	take_map(t, tree, f, ARRAY_SIZE(f), NULL);
	if (list)
		declare_read(t, list, d);
	else if (tree->kind == YAML_MAP)
		take_missing(t, tree, "credentials", "a list");
}

int declare_parse(const char *kind, const char *name, const char *text, size_t n,
		  struct declarations *ret, struct err *e)
{
	struct kit_report rep = { 0 };
	struct declarations d = { 0 };
	struct pool none = { 0 };
	struct take t = { .rep = &rep, .pool = &none };
	int k = asprintf(&d.origin, "%s:%s", kind, name) < 0 ? err_set(e, -ENOMEM, "out of memory")
							     : 0;

	if (k == 0)
		k = yaml_parse(text, n, &d.source, e);
	if (k == 0)
		whole(&t, &d.source, &d);
	if (k == 0)
		k = none.failed ? err_set(e, -ENOMEM, "out of memory") : report_result(&rep, e);
	report_done(&rep);
	pool_done(&none);
	if (k < 0)
		declare_done(&d);
	else
		*ret = d;
	return k;
}
