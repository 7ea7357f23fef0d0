#include "policy/cred-priv.h"

#define X(n, s) [CRED_##n] = (s),
const char *const cred_kind_words[CRED_KIND_N] = { CRED_KINDS(X) };
const char *const cred_state_words[CRED_STATE_N] = { CRED_STATES(X) };
#undef X

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

static bool of(const char *s, const char *may)
{
	return *s && !s[strspn(s, may)];
}

static bool is_id(const char *s)
{
	return of(s, LETTERS DIGITS "._:-");
}

static bool is_name(const char *s)
{
	return of(s, LETTERS DIGITS "._-");
}

/* "builtin", "user", "kit:NAME" */
static bool is_origin(const char *s)
{
	const char *colon = strchr(s, ':');

	if (!colon)
		return streq(s, "builtin") || streq(s, "user");
	return colon > s && is_name(colon + 1) &&
	       (size_t)(colon - s) == strspn(s, "abcdefghijklmnopqrstuvwxyz");
}

/* SCOPE/KIND/NAME */
static bool is_key(const char *s)
{
	const char *kind = strchr(s, '/'), *name = kind ? strchr(kind + 1, '/') : NULL;

	return name && kind > s && name > kind + 1 && is_id(name + 1) &&
	       of(s, LETTERS DIGITS "._:-/") && !strchr(name + 1, '/');
}

static bool is_visible(const char *s, char from)
{
	for (; *s; s++)
		if (*s < from || *s > '~')
			return false;
	return true;
}

/* A field's name (RFC 9110 5.1) that says nothing of how the message is framed or where it goes. */
static bool is_header(const char *s)
{
	static const char *const no[] = {
		"connection", "content-length",    "content-type",     "expect",
		"host",       "keep-alive",        "proxy-connection", "te",
		"trailer",    "transfer-encoding", "upgrade",          "date",
		"via",        "http2-settings"
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(no); i++)
		if (streq(s, no[i]))
			return false;
	return of(s, "abcdefghijklmnopqrstuvwxyz" DIGITS "!#$%&'*+-.^_`|~");
}

static bool is_format(const char *s)
{
	const char *at = strstr(s, "%s");

	return at && !strstr(at + 2, "%s") && is_visible(s, ' ') && *s != ' ';
}

static bool is_username(const char *s)
{
	return !strchr(s, ':') && is_visible(s, ' ') && !streq(s, "-");
}

static bool is_placeholder(const char *s)
{
	return strlen(s) >= CRED_PLACEHOLDER_MIN && is_visible(s, '!');
}

static bool is_path(const char *s)
{
	return *s == '/' && is_visible(s, '!') && !strpbrk(s, "?#");
}

static bool is_fields(const char *s)
{
	size_t i, n;

	for (i = 0; i < 4; i++) {
		n = strspn(s, LETTERS DIGITS "._-");
		if (!n || n > CRED_NAME_MAX || s[n] != (i == 3 ? '\0' : ','))
			return false;
		s += n + 1;
	}
	return true;
}

/* The fields that are texts. kinds: the kinds that have it, and must; 0: all have. */
#define TEXT(field, max_, kinds_, fine_, want_) \
	{ \
#field, offsetof(struct cred_use, field), max_, kinds_, fine_, want_ \
	}
#define BIT(kind) (1U << CRED_##kind)

static const struct {
	const char *name;
	size_t at, max;
	unsigned kinds;
	bool (*fine)(const char *s);
	const char *want;
} texts[CRED_FIELDS] = {
	[CRED_F_ID] = TEXT(id, CRED_ID_MAX, 0, is_id, "letters, digits, '.', '_', ':' or '-'"),
	[CRED_F_ORIGIN] = TEXT(origin, CRED_ORIGIN_MAX, 0, is_origin, "builtin, user or KIND:NAME"),
	[CRED_F_SERVICE] =
		TEXT(service, CRED_NAME_MAX, 0, is_name, "letters, digits, '.', '_' or '-'"),
	[CRED_F_KEY] = TEXT(key, CRED_KEY_MAX, 0, is_key, "SCOPE/KIND/NAME"),
	[CRED_F_RESOURCE] = TEXT(resource, NET_RESOURCE_MAX, 0, NULL, ""),
	[CRED_F_HEADER] = TEXT(header, CRED_HEADER_MAX, BIT(HEADER), is_header,
			       "a field's name in lower case that says nothing of the connection"),
	[CRED_F_FORMAT] = TEXT(format, CRED_FORMAT_MAX, BIT(HEADER), is_format,
			       "visible ASCII with exactly one %s"),
	[CRED_F_USERNAME] = TEXT(username, CRED_USERNAME_MAX, BIT(BASIC), is_username,
				 "visible ASCII without ':'"),
	[CRED_F_PLACEHOLDER] =
		TEXT(placeholder, CRED_PLACEHOLDER_MAX, BIT(CUSTOM) | BIT(OAUTH) | BIT(TOKEN),
		     is_placeholder, "12 to 255 bytes of visible ASCII without a space"),
	[CRED_F_PLACEHOLDER2] = TEXT(placeholder2, CRED_PLACEHOLDER_MAX, BIT(TOKEN), is_placeholder,
				     "12 to 255 bytes of visible ASCII without a space"),
	[CRED_F_PATH] =
		TEXT(path, CRED_PATH_MAX, BIT(TOKEN), is_path, "an absolute path without query"),
	[CRED_F_FIELDS] = TEXT(fields, CRED_PATH_MAX, BIT(TOKEN), is_fields,
			       "four names: access,refresh,expires,scope"),
};

const char **cred_use_text(struct cred_use *u, enum cred_field f)
{
	return texts[f].max ? (const char **)((char *)u + texts[f].at) : NULL;
}

static int check_text(const struct cred_use *u, enum cred_field f, struct err *e)
{
	const char *s = *(const char *const *)((const char *)u + texts[f].at);
	bool has = !texts[f].kinds || texts[f].kinds >> u->kind & 1;

	if (!s)
		return has ? err_set(e, -EINVAL, "a use of this kind has a %s", texts[f].name) : 0;
	if (!has)
		return err_set(e, -EINVAL, "a use of this kind has no %s", texts[f].name);
	if (!*s || strlen(s) > texts[f].max)
		return err_set(e, -EINVAL, "%s has 1 to %zu bytes", texts[f].name, texts[f].max);
	if (texts[f].fine && !texts[f].fine(s))
		return err_set(e, -EINVAL, "%s '%.80s' is not %s", texts[f].name, s, texts[f].want);
	return 0;
}

int cred_use_check(const struct cred_use *u, struct net_pattern *ret, enum cred_field *ret_at,
		   struct err *e)
{
	unsigned f;
	int r;

	*ret_at = CRED_F_KIND;
	if (u->kind <= CRED_KIND_NONE || u->kind >= CRED_KIND_N)
		return err_set(e, -EINVAL, "not a kind of use");
	*ret_at = CRED_F_STATE;
	if (u->state <= CRED_STATE_NONE || u->state >= CRED_STATE_N)
		return err_set(e, -EINVAL, "not a state of a use");
	for (f = 0; f < CRED_FIELDS; f++) {
		*ret_at = f;
		r = texts[f].max ? check_text(u, f, e) : 0;
		if (r < 0)
			return r;
	}
	*ret_at = CRED_F_WHERE;
	if (u->where > CRED_IN_ALL || !u->where != (u->kind != CRED_CUSTOM))
		return err_set(e, -EINVAL, "a custom secret, and nothing else, says where");
	*ret_at = CRED_F_RESOURCE;
	r = net_pattern_parse(ret, u->resource, e);
	return r < 0 ? err_ctx(e, "resource '%.100s'", u->resource) : 0;
}

struct cred_set *cred_set_free(struct cred_set *s)
{
	if (!s)
		return NULL;
	while (s->n)
		free(s->v[--s->n].line);
	free(s->v);
	free(s);
	return NULL;
}

/* Without ports a use is one of 443. */
static bool has_port(const struct net_pattern *p, uint16_t port)
{
	size_t i;

	if (!p->ported)
		return port == 443;
	for (i = 0; i < p->n_ports; i++)
		if (port >= p->ports[i].lo && port <= p->ports[i].hi)
			return true;
	return !p->n_ports;
}

const struct cred_use *cred_next(const struct cred_set *s, const struct host *h, uint16_t port,
				 size_t *at)
{
	const struct cred_item *i;

	while (s && *at < s->n) {
		i = &s->v[(*at)++];
		if (has_port(&i->pattern, port) && net_pattern_match(&i->pattern, h))
			return &i->use;
	}
	return NULL;
}

bool cred_opens(const struct cred_set *s, const struct host *h, uint16_t port)
{
	size_t at = 0;

	return cred_next(s, h, port, &at) != NULL;
}

const struct cred_use *cred_find(const struct cred_set *s, const char *id)
{
	size_t i;

	for (i = 0; s && i < s->n; i++)
		if (streq(s->v[i].use.id, id))
			return &s->v[i].use;
	return NULL;
}

const struct cred_use *cred_at(const struct cred_set *s, size_t i)
{
	return s && i < s->n ? &s->v[i].use : NULL;
}

bool cred_matches(const struct cred_use *u, const struct host *h, uint16_t port)
{
	struct net_pattern p;
	struct err e;

	return u && u->resource && net_pattern_parse(&p, u->resource, &e) == 0 &&
	       has_port(&p, port) && net_pattern_match(&p, h);
}
