/* Token endpoints: what the guest sends and gets has sentinels where the world has tokens.
 *
 * Both bodies are hostile. JSON is jansson's, which bounds depth; an object that has a name twice is refused, since two readers could take
 * different ones. Its memory is wiped when it is freed: tokens lie in it. */
#include <jansson.h>
#include <malloc.h>

#include "base/text.h"
#include "policy/id-token.h"
#include "proxy/http-priv.h"
#include "proxy/inject-priv.h"

enum {
	TOKEN_MAX = 16 * 1024,
	PARTS_MAX = 64,
	EXPIRES_MAX = 10 * 366 * 86400,
	ACCESS = 0,
	REFRESH,
	EXPIRES,
	SCOPE,
	NAMES
};

static void wiping_free(void *p)
{
	if (p)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

static json_t *parse(const uint8_t *p, size_t n)
{
	json_error_t e;

	/* the first call counts: left to itself jansson would open /dev/urandom, which a sealed process cannot */
	json_object_seed((size_t)(uintptr_t)&e | 1);
	json_set_alloc_funcs(malloc, wiping_free);
	return n <= INJECT_BODY_MAX
		       ? json_loadb((const char *)p, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e)
		       : NULL;
}

static void json_done(json_t **j)
{
	json_decref(*j);
}
#define _json_ _cleanup_(json_done)

static int write_json(const json_t *j, struct buf *out)
{
	const size_t flags = JSON_COMPACT, n = json_dumpb(j, NULL, 0, flags);
	char *room = n ? buf_room(out, n) : NULL;

	if (!n)
		return -ENOMEM;
	if (!room)
		return buf_space(out) < n ? -ENOBUFS : -ENOMEM;
	if (json_dumpb(j, room, n, flags) != n)
		return -ENOMEM;
	buf_added(out, n);
	return 0;
}

/* ---- requests ---- */

/* A request is what it refreshes with. */
struct asked {
	const struct cred_use *use;
	const uint8_t *refresh;
	size_t n;
	struct err *e;
};

/* A refresh token was found in the body. 0: it is the sentinel, and there is a value. */
static int judge(const struct asked *a, const char *token, size_t n)
{
	if (n != strlen(a->use->placeholder) || memcmp(token, a->use->placeholder, n) != 0)
		return err_set(
			a->e, -EPERM,
			"the request refreshes '%s' with a token that is not the sandbox's own",
			a->use->service);
	if (!a->refresh)
		return err_set(a->e, -ENOENT,
			       "the host's store has no refresh token for '%s': log in again",
			       a->use->service);
	return 0;
}

static int unreadable(const struct asked *a)
{
	return err_set(a->e, -EINVAL, "the body of a request for tokens of '%s' cannot be read",
		       a->use->service);
}

static int request_json(const struct asked *a, const uint8_t *p, size_t n, struct buf *out)
{
	_json_ json_t *j = parse(p, n);
	json_t *had, *now;
	int r;

	if (!json_is_object(j))
		return unreadable(a);
	had = json_object_get(j, "refresh_token");
	if (!had || json_is_null(had)) {
		r = buf_add(out, p, n);
		return r < 0 ? r : 1;
	}
	if (!json_is_string(had))
		return unreadable(a);
	r = judge(a, json_string_value(had), json_string_length(had));
	if (r < 0)
		return r;
	now = json_stringn((const char *)a->refresh, a->n); /* UTF-8, or it is no token */
	if (!now)
		return err_set(a->e, -ENOENT, "the refresh token of '%s' is none", a->use->service);
	if (json_object_set_new(j, "refresh_token", now) < 0)
		return -ENOMEM;
	return write_json(j, out);
}

struct part {
	const char *p;
	size_t n, name; /* name: without '=' */
};

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = http_lower((uint8_t)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* application/x-www-form-urlencoded, no escape wrong. 0, -EINVAL, -ENOBUFS, -ENOMEM. */
static int decode(struct buf *out, const char *p, size_t n)
{
	char c;
	size_t i;
	int r = 0;

	for (i = 0; i < n && r == 0; i++) {
		c = p[i];
		if (c == '+')
			c = ' ';
		if (c == '%') {
			if (n - i < 3 || hex(p[i + 1]) < 0 || hex(p[i + 2]) < 0)
				return -EINVAL;
			c = (char)(hex(p[i + 1]) * 16 + hex(p[i + 2]));
			i += 2;
		}
		r = buf_add(out, &c, 1);
	}
	return r;
}

static int decoded_is(const char *p, size_t n, const char *want, bool *ret)
{
	_wipe_ struct buf b = BUF_INIT(INJECT_BODY_MAX);
	int r = decode(&b, p, n);

	if (r < 0)
		return r;
	*ret = b.n == strlen(want) && (!b.n || memcmp(buf_data(&b), want, b.n) == 0);
	return 0;
}

/* Parts between '&', each NAME=VALUE of visible ASCII. How many, or -EINVAL. */
static int split(struct part v[PARTS_MAX], const char *p, size_t n)
{
	const char *end = p + n, *and, *is;
	size_t i;
	int count = 0;

	for (i = 0; i < n; i++)
		if (p[i] <= ' ' || p[i] > '~')
			return -EINVAL;
	for (; p < end; p = and? and+1 : end) {
		and = memchr(p, '&', (size_t)(end - p));
		v[count].n = (size_t)((and? and : end) - p);
		is = memchr(p, '=', v[count].n);
		if (!is || is == p || count == PARTS_MAX - 1 || (and&&and+1 == end))
			return -EINVAL;
		v[count].p = p;
		v[count++].name = (size_t)(is - p);
	}
	return count;
}

/* The part that is the refresh token; -ENOENT: none; -EINVAL: two, or an escape is wrong. */
static int find_refresh(const struct part *v, int n)
{
	int i, r, at = -ENOENT;
	bool is;

	for (i = 0; i < n; i++) {
		r = decoded_is(v[i].p, v[i].name, "refresh_token", &is);
		if (r < 0)
			return r;
		if (is && at >= 0)
			return -EINVAL;
		if (is)
			at = i;
		r = decoded_is(v[i].p + v[i].name + 1, v[i].n - v[i].name - 1, "", &is);
		if (r < 0)
			return r;
	}
	return at;
}

static int judge_part(const struct asked *a, const struct part *v)
{
	_wipe_ struct buf b = BUF_INIT(INJECT_BODY_MAX);
	int r = decode(&b, v->p + v->name + 1, v->n - v->name - 1);

	return r < 0 ? r : judge(a, b.n ? (const char *)buf_data(&b) : "", b.n);
}

static int request_form(const struct asked *a, const uint8_t *p, size_t n, struct buf *out)
{
	struct part v[PARTS_MAX];
	const char *end = (const char *)p + n;
	int count = split(v, (const char *)p, n), at, r;

	at = count < 0 ? count : find_refresh(v, count);
	if (at == -ENOENT) {
		r = buf_add(out, p, n);
		return r < 0 ? r : 1;
	}
	if (at < 0)
		return at == -EINVAL ? unreadable(a) : at;
	r = judge_part(a, &v[at]);
	/* room for all of it at once: growing would leave copies behind */
	if (r == 0 && !buf_room(out, n + inject_put_size(a->refresh, a->n, INJECT_AS_PERCENT) + 1))
		r = buf_space(out) <= n + 3 * a->n ? -ENOBUFS : -ENOMEM;
	if (r == 0)
		r = buf_add(out, p, (size_t)(v[at].p + v[at].name + 1 - (const char *)p));
	if (r == 0)
		r = inject_put(out, a->refresh, a->n, INJECT_AS_PERCENT);
	if (r == 0)
		r = buf_add(out, v[at].p + v[at].n, (size_t)(end - v[at].p) - v[at].n);
	return r;
}

/* The first byte that is none of JSON's spaces. */
static uint8_t begins(const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!memchr(" \t\r\n", p[i], 4))
			return p[i];
	return 0;
}

int inject_token_request(const struct cred_use *u, const uint8_t *p, size_t n,
			 const uint8_t *refresh, size_t n_refresh, struct buf *out, struct err *e)
{
	const struct asked a = { u, refresh, n_refresh, e };

	(void)err_set(e, -ENOMEM, "no memory for a request for tokens of '%s'", u->service);
	if (n > INJECT_BODY_MAX)
		return unreadable(&a);
	if (begins(p, n) == '{' || begins(p, n) == '[')
		return request_json(&a, p, n, out);
	return request_form(&a, p, n, out);
}

/* ---- answers ---- */

struct answer {
	const struct cred_use *use;
	char names[NAMES][CRED_PATH_MAX + 1];
	struct inject_tokens t;
	bool changed;
};

/* "access,refresh,expires,scope" */
static bool take_names(struct answer *a)
{
	const char *s = a->use->fields, *comma;
	size_t i, n;

	for (i = 0; i < NAMES; i++) {
		comma = i < NAMES - 1 ? strchr(s, ',') : s + strlen(s);
		n = comma ? (size_t)(comma - s) : 0;
		if (!n || n > CRED_PATH_MAX)
			return false;
		memcpy(a->names[i], s, n);
		a->names[i][n] = '\0';
		s = comma + 1;
	}
	return true;
}

/* The text of a member that is a token. 0 with NULL: there is none. */
static int take_token(const json_t *j, const char *name, char **ret)
{
	const json_t *m = json_object_get(j, name);
	const char *s = json_string_value(m);
	size_t i, n;

	*ret = NULL;
	if (!m || json_is_null(m))
		return 0;
	n = json_string_length(m);
	if (!json_is_string(m) || !n || n > TOKEN_MAX)
		return -EINVAL;
	for (i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] > '~')
			return -EINVAL;
	*ret = strndup(s, n);
	return *ret ? 0 : -ENOMEM;
}

static void take_expires(struct answer *a, const json_t *j)
{
	const json_t *m = json_object_get(j, a->names[EXPIRES]);
	const char *s = json_string_value(m);
	uint64_t v = 0;

	if (json_is_integer(m) && json_integer_value(m) > 0)
		v = (uint64_t)json_integer_value(m);
	else if (json_is_real(m) && json_real_value(m) >= 1 && json_real_value(m) <= EXPIRES_MAX)
		v = (uint64_t)json_real_value(m);
	else if (s)
		for (; *s >= '0' && *s <= '9' && v <= EXPIRES_MAX; s++)
			v = v * 10 + (uint64_t)(*s - '0');
	a->t.expires_in = MIN(v, (uint64_t)EXPIRES_MAX);
}

static int take_scope(struct answer *a, const json_t *j)
{
	const json_t *m = json_object_get(j, a->names[SCOPE]);

	if (!json_is_string(m) || json_string_length(m) > CRED_PATH_MAX * 4UL ||
	    strlen(json_string_value(m)) != json_string_length(m))
		return 0;
	a->t.scope = strdup(json_string_value(m));
	return a->t.scope ? 0 : -ENOMEM;
}

/* Does a text hold one of the tokens? Then the sentinel that takes its place, for all of the text. */
static const char *sentinel_for(const struct answer *a, const char *s, size_t n)
{
	if (a->t.access && memmem(s, n, a->t.access, strlen(a->t.access)))
		return a->use->placeholder2;
	if (a->t.refresh && memmem(s, n, a->t.refresh, strlen(a->t.refresh)))
		return a->use->placeholder;
	return NULL;
}

/* A member "id_token" becomes what stands for it; one that is none goes. */
static int clean_identity(struct answer *a, json_t *j, json_t *m)
{
	const char *s = json_string_value(m);
	struct id_token id;
	int r = s ? id_token_read(s, json_string_length(m), &id) : -EINVAL;

	if (r == -ENOMEM)
		return r;
	a->changed = true;
	r = r == 0 ? json_string_set(m, id.stand_in) : json_object_del(j, "id_token");
	return r < 0 ? -ENOMEM : 0;
}

static int clean(struct answer *a, json_t *j);

static int clean_object(struct answer *a, json_t *j) /* NOLINT(misc-no-recursion): clean() */
{
	const char *name;
	json_t *m;
	void *tmp;
	int r = 0;

	json_object_foreach_safe(j, tmp, name, m)
	{
		if (sentinel_for(a, name, strlen(name)))
			return -EINVAL;
		r = streq(name, "id_token") ? clean_identity(a, j, m) : clean(a, m);
		if (r < 0)
			return r;
	}
	return r;
}

static int clean_array(struct answer *a, json_t *j) /* NOLINT(misc-no-recursion): clean() */
{
	size_t i;
	int r = 0;

	for (i = 0; i < json_array_size(j) && r == 0; i++)
		r = clean(a, json_array_get(j, i));
	return r;
}

/* Every text in j that holds a token. jansson's depth is the bound. */
static int clean(struct answer *a, json_t *j) /* NOLINT(misc-no-recursion): see above */
{
	const char *to;
	int r;

	if (json_is_object(j))
		return clean_object(a, j);
	if (json_is_array(j))
		return clean_array(a, j);
	if (!json_is_string(j))
		return 0;
	to = sentinel_for(a, json_string_value(j), json_string_length(j));
	a->changed = a->changed || to;
	r = to ? json_string_set(j, to) : 0;
	return r < 0 ? -ENOMEM : 0;
}

static int take_all(struct answer *a, const json_t *j)
{
	int r = take_token(j, a->names[ACCESS], &a->t.access);

	if (r == 0)
		r = take_token(j, a->names[REFRESH], &a->t.refresh);
	if (r < 0 || (!a->t.access && !a->t.refresh))
		return r;
	if (!a->t.access)
		return -EINVAL; /* RFC 6749 5.1 */
	take_expires(a, j);
	return take_scope(a, j);
}

/* What is no JSON object: may it hold a token under one of the names? What is no text (compressed, for one) may. */
static bool may_hold(const struct answer *a, const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if ((p[i] < ' ' && !memchr("\t\r\n", p[i], 3)) || p[i] == 0x7f)
			return true;
	return !text_is_utf8((const char *)p, n) || n > INJECT_BODY_MAX ||
	       memmem(p, n, "_token", 6) ||
	       memmem(p, n, a->names[ACCESS], strlen(a->names[ACCESS])) ||
	       memmem(p, n, a->names[REFRESH], strlen(a->names[REFRESH]));
}

static int answer(struct answer *a, const uint8_t *p, size_t n, struct buf *out, struct err *e)
{
	_json_ json_t *j = take_names(a) ? parse(p, n) : NULL;
	int r;

	if (!j && may_hold(a, p, n))
		return err_set(e, -EINVAL, "an answer with tokens of '%s' cannot be read",
			       a->use->service);
	r = json_is_object(j) ? take_all(a, j) : 0;
	if (r == -EINVAL)
		return err_set(e, r, "an answer with tokens of '%s' has one that is none",
			       a->use->service);
	if (r == 0 && j)
		r = clean(a, j);
	if (r == -EINVAL)
		return err_set(e, r, "an answer has a token of '%s' as a name", a->use->service);
	if (r < 0 || a->changed)
		return r < 0 ? r : write_json(j, out);
	r = buf_add(out, p, n);
	return r < 0 ? r : 1;
}

int inject_token_answer(const struct cred_use *u, const uint8_t *p, size_t n,
			struct inject_tokens *ret, struct buf *out, struct err *e)
{
	struct answer a = { .use = u };
	int r;

	(void)err_set(e, -ENOMEM, "no memory for an answer with tokens of '%s'", u->service);
	r = answer(&a, p, n, out, e);
	if (r < 0)
		inject_tokens_done(&a.t);
	else
		*ret = a.t;
	return r;
}

static void wipe_text(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}

void inject_tokens_done(struct inject_tokens *t)
{
	wipe_text(t->access);
	wipe_text(t->refresh);
	wipe_text(t->scope);
	memset(t, 0, sizeof(*t));
}
