/* Who gets what:
 *   - a built-in service with a secret: its uses are ready, its variables say "proxy-managed". Without one: nothing at all, no variable either, so that a login that
 *     the user makes inside is not in its way. A key beats a login (OAuth); a sandbox's own secret beats the one for all.
 *   - hosts that the user added to a secret: as the service's first line does it.
 *   - a custom secret: its variable holds the placeholder, a use for each host.
 *   - a registry for all sandboxes, or for this one: Basic.
 *   - what a file (or kit) declares: ready if it has a secret and is approved; unapproved if it only has a secret: then it is refused, and the variable is set, so that
 *     the refusal is met and read; without a secret nothing, unless it is required.
 *   - variables of --env at creation come before all of these, those of kits behind. */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>

#include "cli/compose-priv.h"
#include "cli/kit-box.h"
#include "policy/net.h"
#include "state/settings.h"

/* What commands get by default (guest/init/spawn.c). */
#define COMPOSE_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum { COMPOSE_PATH_MAX = 32 * 1024 };

static const char managed[] = "proxy-managed";

/* ---- the source ---- */
int compose_store(struct ctx *c, struct store **ret, struct err *e)
{
	_free_ char *choice = NULL, *notice = NULL;
	int r = setting_get(c->state, "secrets.store", &choice, NULL, e);

	if (r == 0)
		r = store_open(c->dirs.config, choice, ret, &notice, e);
	if (r == 0 && notice)
		say("%s", notice);
	return r;
}

static int read_store(struct ctx *c, struct compose_source *s, struct err *e)
{
	_cleanup_(store_closep) struct store *store = NULL;
	_free_ char *choice = NULL, *notice = NULL;
	int r;

	if (!store_is_used(c->dirs.config))
		return 0;
	r = setting_get(c->state, "secrets.store", &choice, NULL, e);
	if (r == 0)
		r = store_open(c->dirs.config, choice, &store, &notice, e);
	return r == 0 ? store_list(store, &s->entries, &s->n, e) : r;
}

int compose_source(struct ctx *c, struct compose_source *ret, struct err *e)
{
	struct err fault = { 0 };
	int r;

	*ret = (struct compose_source) { 0 };
	r = services_load(&ret->services, e);
	if (r < 0)
		return r;
	if (read_store(c, ret, &fault) < 0 ||
	    approve_load(c->dirs.config, &ret->approvals, &fault) < 0)
		(void)snprintf(ret->fault, sizeof(ret->fault), "%s", fault.msg);
	return 0;
}

void compose_source_done(struct compose_source *s)
{
	store_list_done(s->entries, s->n);
	services_done(&s->services);
	approve_done(&s->approvals);
	*s = (struct compose_source) { 0 };
}

const char *compose_key(char ret[STORE_KEY_MAX + 1], const char *scope, const char *kind,
			const char *name)
{
	(void)snprintf(ret, STORE_KEY_MAX + 1, "%s/%s/%s", scope, kind, name);
	return ret;
}

static const struct store_entry *find_key(const struct compose_source *s, const char *key)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (streq(s->entries[i].key, key))
			return &s->entries[i];
	return NULL;
}

const struct store_entry *compose_entry(const struct compose_source *s, const char *id,
					const char *kind, const char *name)
{
	const struct store_entry *entry = NULL;
	char key[STORE_KEY_MAX + 1];

	if (*id)
		entry = find_key(s, compose_key(key, id, kind, name));
	return entry ? entry : find_key(s, compose_key(key, "global", kind, name));
}

bool compose_has_key(const struct compose_source *s, const char *id, const char *service)
{
	return compose_entry(s, id, "service", service);
}

static const struct store_entry *access_entry(const struct compose_source *s, const char *id,
					      const char *service)
{
	char name[CRED_NAME_MAX + 16];

	(void)snprintf(name, sizeof(name), "%.63s.access", service);
	return compose_entry(s, id, "oauth", name);
}

bool compose_has_login(const struct compose_source *s, const char *id, const char *service)
{
	return access_entry(s, id, service);
}

/* ---- the file ---- */
#define FNV_START 14695981039346656037ULL

static uint64_t mix(uint64_t h, const char *s)
{
	for (; s && *s; s++)
		h = (h ^ (uint8_t)*s) * 1099511628211ULL;
	return (h ^ 0xff) * 1099511628211ULL;
}

/* Of all that a use says but its state: an id that means another use in the next text would let the proxy ask for what was never meant. */
static void make_id(const struct cred_use *u, char ret[CRED_ID_MAX + 1])
{
	const char *parts[] = { u->origin, u->service, u->key,          u->resource,
				u->header, u->format,  u->username,     u->placeholder,
				u->path,   u->fields,  u->placeholder2, NULL };
	const char numbers[] = { (char)('0' + u->kind), (char)('0' + u->where), '\0' };
	uint64_t h = mix(FNV_START, numbers);
	size_t i;

	for (i = 0; i + 1 < ARRAY_SIZE(parts); i++)
		h = mix(h, parts[i]);
	(void)snprintf(ret, CRED_ID_MAX + 1, "%.40s:%016llx", u->service, (unsigned long long)h);
}

/* Is this the beginning of a line that is there? */
static bool has_line(const struct buf *text, const char *start)
{
	size_t n = strlen(start);
	const char *p = (const char *)buf_data(text), *end = p + text->n;

	while (p && p < end) {
		if ((size_t)(end - p) >= n && !memcmp(p, start, n))
			return true;
		p = memchr(p, '\n', (size_t)(end - p));
		p = p ? p + 1 : NULL;
	}
	return false;
}

int compose_use(struct composer *m, const struct cred_use *pattern, const char *origin,
		const char *service, const char *key, enum cred_state state)
{
	char id[CRED_ID_MAX + 1], line[CRED_ID_MAX + 3];
	struct cred_use u = *pattern;
	int r;

	u.origin = origin;
	u.service = service;
	u.key = key;
	u.state = (uint8_t)state;
	make_id(&u, id);
	u.id = id;
	(void)snprintf(line, sizeof(line), "%s\t", id);
	if (has_line(m->out, line))
		return 0;
	if (m->n == CRED_USES_MAX)
		return err_set(m->e, -E2BIG, "a sandbox has %d uses of credentials at most",
			       CRED_USES_MAX);
	r = cred_text_use(m->out, &u, m->e);
	m->n += r == 0;
	return r < 0 ? err_ctx(m->e, "the credential '%s'", service) : 0;
}

/* The first that sets a variable wins. */
static int add_env(struct composer *m, const char *name, const char *value)
{
	char line[256];
	int r;

	(void)snprintf(line, sizeof(line), "env %.200s=", name);
	if (has_line(&m->envs, line))
		return 0;
	r = buf_printf(&m->envs, "%s%s\n", line, value);
	return r < 0 ? err_errno(m->e, r, "cannot compose the environment") : 0;
}

/* ---- services ---- */
static const char *scope_of(const struct store_entry *entry, char ret[64])
{
	(void)snprintf(ret, 64, "%.*s", (int)MIN(strcspn(entry->key, "/"), (size_t)63), entry->key);
	return ret;
}

/* Hosts that were given with the secret. */
static int add_hosts(struct composer *m, const struct cred_use *how, const char *service,
		     const struct store_entry *entry)
{
	json_t *meta = json_loads(entry->meta, 0, NULL), *host;
	struct cred_use u = *how;
	size_t i;
	int r = 0;

	json_array_foreach(json_object_get(meta, "hosts"), i, host)
	{
		u.resource = json_string_value(host);
		if (r == 0 && u.resource)
			r = compose_use(m, &u, "user", service, entry->key, CRED_READY);
	}
	json_decref(meta);
	return r;
}

static int add_service(struct composer *m, const struct service *s, const struct store_entry *entry)
{
	size_t i;
	int r = 0;

	for (i = 0; i < s->n_uses && r == 0; i++)
		r = compose_use(m, &s->uses[i], "builtin", s->name, entry->key, CRED_READY);
	if (r == 0)
		r = add_hosts(m, &s->uses[0], s->name, entry);
	for (i = 0; i < s->n_envs && r == 0; i++)
		r = add_env(m, s->envs[i], managed);
	return r;
}

/* The keys of a login's tokens, in one scope. False: it has none. */
static bool find_login(struct composer *m, const char *service, char access[STORE_KEY_MAX + 1],
		       char refresh[STORE_KEY_MAX + 1])
{
	const struct store_entry *entry = access_entry(m->s, m->id, service);
	char name[CRED_NAME_MAX + 16], scope[64];

	if (!entry)
		return false;
	(void)snprintf(access, STORE_KEY_MAX + 1, "%s", entry->key);
	(void)snprintf(name, sizeof(name), "%.63s.refresh", service);
	(void)compose_key(refresh, scope_of(entry, scope), "oauth", name);
	return true;
}

static int add_login(struct composer *m, const struct service *s)
{
	char access[STORE_KEY_MAX + 1], refresh[STORE_KEY_MAX + 1];
	bool renews;
	size_t i;
	int r = 0;

	if (!s->n_oauth || !find_login(m, s->name, access, refresh))
		return 0;
	renews = find_key(m->s, refresh);
	for (i = 0; i < s->n_oauth && r == 0; i++) {
		bool token = s->oauth[i].kind == CRED_TOKEN;

		r = compose_use(m, &s->oauth[i], "builtin", s->name, token ? refresh : access,
				token && !renews ? CRED_MISSING : CRED_READY);
	}
	if (r == 0 && s->oauth_env)
		r = add_env(m, s->oauth_env, s->oauth[0].placeholder);
	return r;
}

static int add_services(struct composer *m)
{
	size_t i;
	int r = 0;

	for (i = 0; i < m->s->services.n && r == 0; i++) {
		const struct service *s = &m->s->services.v[i];
		const struct store_entry *entry = compose_entry(m->s, m->id, "service", s->name);

		r = entry ? add_service(m, s, entry) : add_login(m, s);
	}
	return r;
}

/* ---- custom secrets and registries ---- */
/* Walk the entries of a kind that hold for this sandbox: its own, and those for all that it has no own of. */
static const struct store_entry *next_entry(struct composer *m, const char *kind, size_t *at,
					    const char **ret_name)
{
	for (; *at < m->s->n; (*at)++) {
		const struct store_entry *entry = &m->s->entries[*at];
		const char *slash = strchr(entry->key, '/');
		size_t n = strlen(kind);

		if (strncmp(slash + 1, kind, n) != 0 || slash[1 + n] != '/')
			continue;
		*ret_name = slash + n + 2;
		if (compose_entry(m->s, m->id, kind, *ret_name) != entry)
			continue;
		(*at)++;
		return entry;
	}
	return NULL;
}

static uint8_t where_of(const json_t *meta)
{
	const char *text = json_string_value(json_object_get(meta, "in"));
	uint8_t where = 0;

	if (!text)
		return CRED_IN_HEADERS | CRED_IN_BASIC | CRED_IN_QUERY;
	where |= strstr(text, "headers") ? CRED_IN_HEADERS : 0;
	where |= strstr(text, "basic") ? CRED_IN_BASIC : 0;
	where |= strstr(text, "query") ? CRED_IN_QUERY : 0;
	where |= strstr(text, "body") ? CRED_IN_BODY : 0;
	return where;
}

static int add_custom(struct composer *m, const struct store_entry *entry, const char *variable,
		      const json_t *meta)
{
	const char *pattern = json_string_value(json_object_get(meta, "placeholder"));
	struct cred_use u = { .kind = CRED_CUSTOM, .where = where_of(meta) };
	_free_ char *placeholder = NULL;
	json_t *host;
	size_t i;
	int r;

	if (!pattern)
		return 0;
	r = compose_placeholder(m, variable, pattern, &placeholder);
	if (r < 0)
		return r;
	u.placeholder = placeholder;
	json_array_foreach(json_object_get(meta, "hosts"), i, host)
	{
		u.resource = json_string_value(host);
		if (r == 0 && u.resource)
			r = compose_use(m, &u, "user", variable, entry->key, CRED_READY);
	}
	return r == 0 ? add_env(m, variable, placeholder) : r;
}

static int add_customs(struct composer *m)
{
	const struct store_entry *entry;
	const char *variable;
	size_t at = 0;
	int r = 0;

	while (r == 0 && (entry = next_entry(m, "custom", &at, &variable))) {
		json_t *meta = json_loads(entry->meta, 0, NULL);

		r = add_custom(m, entry, variable, meta);
		json_decref(meta);
	}
	return r;
}

static int add_registries(struct composer *m)
{
	const struct store_entry *entry;
	const char *host;
	size_t at = 0;
	int r = 0;

	while (r == 0 && (entry = next_entry(m, "registry", &at, &host))) {
		json_t *meta = json_loads(entry->meta, 0, NULL);
		struct cred_use u = { .kind = CRED_BASIC, .resource = host };

		u.username = json_string_value(json_object_get(meta, "username"));
		if (u.username && (!starts_with(entry->key, "global/") ||
				   json_is_true(json_object_get(meta, "all"))))
			r = compose_use(m, &u, "user", "registry", entry->key, CRED_READY);
		json_decref(meta);
	}
	return r;
}

/* ---- declarations ---- */
static void note(struct composer *m, const char *fmt, ...) _printf_(2, 3);

static void note(struct composer *m, const char *fmt, ...)
{
	char line[ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (m->notes && buf_printf(m->notes, "%s\n", line) < 0)
		return; /* there are enough lines */
}

/* Under which key is the secret of a declared use? NULL: there is none. */
static const char *key_of(struct composer *m, const struct declared *d, const struct cred_use *u,
			  char access[STORE_KEY_MAX + 1], char refresh[STORE_KEY_MAX + 1])
{
	const struct store_entry *entry = compose_entry(m->s, m->id, "service", d->service);

	if (u->kind == CRED_HEADER || u->kind == CRED_BASIC)
		return entry ? entry->key : NULL;
	if (entry || !find_login(m, d->service, access, refresh))
		return NULL; /* a key beats a login */
	return u->kind == CRED_TOKEN ? refresh : access;
}

static int add_declared_use(struct composer *m, const struct declarations *d,
			    const struct declared *one, const struct cred_use *u, bool *ret_has)
{
	char access[STORE_KEY_MAX + 1], refresh[STORE_KEY_MAX + 1], bare[STORE_KEY_MAX + 1];
	bool oauth = u->kind == CRED_OAUTH || u->kind == CRED_TOKEN, approved;
	const char *key = key_of(m, one, u, access, refresh);

	if (!key && !one->required)
		return 0;
	if (!key)
		return oauth ? 0
			     : compose_use(m, u, d->origin, one->service,
					   compose_key(bare, "global", "service", one->service),
					   CRED_MISSING);
	*ret_has = true;
	approved = approve_has(&m->s->approvals, one->service, oauth, u->resource);
	if (!approved)
		note(m,
		     "%s may not use the secret '%s' at %s: nobody has approved it (bac run --name "
		     "%s --approve %s=%s)",
		     d->origin, one->service, u->resource, m->name, one->service, u->resource);
	return compose_use(m, u, d->origin, one->service, key,
			   approved ? CRED_READY : CRED_UNAPPROVED);
}

static int add_declared(struct composer *m, const struct declarations *d,
			const struct declared *one)
{
	bool has = compose_entry(m->s, m->id, "service", one->service);
	size_t i;
	int r = 0;

	for (i = 0; i < one->n && r == 0; i++)
		r = add_declared_use(m, d, one, &one->v[i], &has);
	if (r == 0 && has && one->env && one->managed)
		r = add_env(m, one->env, managed);
	if (!has)
		note(m, "%s uses the secret '%s', and there is none (bac secret set %s)%s",
		     d->origin, one->service, one->service,
		     one->required ? ": requests that need it are refused" : "");
	return r;
}

static int add_all_declared(struct composer *m)
{
	struct compose_declared d = { 0 };
	size_t i, k;
	int r;

	if (!*m->id)
		return 0;
	r = compose_declared(m->c, m->id, &d, m->e);
	for (i = 0; i < d.n && r == 0; i++)
		for (k = 0; k < d.v[i].n && r == 0; k++)
			r = add_declared(m, &d.v[i], &d.v[i].v[k]);
	compose_declared_done(&d);
	return r;
}

/* ---- variables ---- */
static int add_entry(struct composer *m, const char *entry)
{
	size_t n = strcspn(entry, "=");
	_free_ char *name = strndup(entry, n);

	return name ? add_env(m, name, entry[n] ? entry + n + 1 : "")
		    : err_errno(m->e, -ENOMEM, "cannot compose the environment");
}

static int add_kit_var(struct composer *m, const struct kit_var *v)
{
	struct buf path = BUF_INIT(COMPOSE_PATH_MAX);
	int r = 0;

	if (!streq(v->name, "PATH"))
		return add_env(m, v->name, v->value);
	r = kit_path(v->value, COMPOSE_PATH, &path);
	r = r < 0 ? err_errno(m->e, r, "PATH") : add_env(m, v->name, buf_str(&path));
	buf_done(&path);
	return r;
}

/* What the user gave at creation; and what kits say, once all else has been said. */
static int add_given(struct composer *m, const struct kit_box *k)
{
	int r = 0;

	for (size_t i = 0; i < k->env.n && r == 0; i++)
		r = add_entry(m, k->env.v[i]);
	return r;
}

static int add_kits(struct composer *m, const struct kit_box *k)
{
	int r = 0;

	for (size_t i = 0; i < k->kit.n_vars && r == 0; i++)
		r = add_kit_var(m, &k->kit.vars[i]);
	return r;
}

/* ---- all ---- */
static int add_secrets(struct composer *m)
{
	int r = add_services(m);

	if (r == 0)
		r = add_customs(m);
	if (r == 0)
		r = add_registries(m);
	return r == 0 ? add_all_declared(m) : r;
}

static int add_all(struct composer *m)
{
	struct kit_box k = { 0 };
	int r = *m->id ? kit_box_load(m->c, m->id, &k, m->e) : 0;

	if (r >= 0)
		r = add_given(m, &k);
	if (r == 0 && m->s->fault[0])
		note(m, "'%s' gets no secrets: %s", m->name, m->s->fault);
	else if (r == 0)
		r = add_secrets(m);
	if (r == 0)
		r = add_kits(m, &k);
	kit_box_done(&k);
	return r;
}

static int add_end(struct composer *m, bool starting)
{
	/* of one that is stopped, nothing counts on what it had */
	bool runs = *m->id && !starting && state_is_locked(m->c->state, m->id) > 0;
	int r = runs ? compose_given_gone(m) : 0;

	if (r == 0) {
		r = cred_text_end(m->out, m->n);
		r = r < 0 ? err_errno(m->e, r, "cannot compose the credentials") : 0;
	}
	if (r == 0 && *m->id && (starting || runs))
		r = compose_given_keep(m);
	if (r == 0 && m->envs.n) {
		r = buf_add(m->out, buf_data(&m->envs), m->envs.n);
		r = r < 0 ? err_errno(m->e, r, "cannot compose the credentials") : 0;
	}
	return r;
}

int compose_file(struct ctx *c, const struct compose_source *s, const struct sandbox *b,
		 bool starting, struct buf *ret, struct buf *notes, size_t *ret_n, struct err *e)
{
	struct composer m = { .c = c,
			      .s = s,
			      .id = b ? b->id : "",
			      .name = b ? b->name : "",
			      .out = ret,
			      .notes = notes,
			      .envs = BUF_INIT(CRED_FILE_MAX - CRED_TEXT_MAX),
			      .e = e };
	int r = cred_text_begin(ret);

	r = r < 0 ? err_errno(e, r, "cannot compose the credentials") : add_all(&m);
	if (r == 0)
		r = add_end(&m, starting);
	*ret_n = m.n + (m.envs.n > 0);
	buf_done(&m.envs);
	return r;
}
