/* The tokens of a login: from the client on this machine that has logged in, or as JSON on stdin. */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/secret.h"
#include "io/fd.h"
#include "policy/id-token.h"
#include "sys/dirs.h"

enum { TOKENS_MAX = 64 * 1024, SCOPES_MAX = 2048, EXPIRES_MAX = 10 * 365 * 86400 };

/* Where clients keep them, and under which names; the last two are what a token endpoint answers (RFC 6749 5.1), and what clients make of it. */
static const struct {
	const char *service; /* NULL: any */
	const char *file;    /* below the home directory */
	const char *object, *access, *refresh;
} shapes[] = {
	{ "anthropic", ".claude/.credentials.json", "claudeAiOauth", "accessToken",
	  "refreshToken" },
	{ "openai", ".codex/auth.json", "tokens", "access_token", "refresh_token" },
	{ NULL, NULL, NULL, "access_token", "refresh_token" },
	{ NULL, NULL, NULL, "accessToken", "refreshToken" },
};

struct tokens {
	const char *access, *refresh; /* of the JSON */
	json_t *meta; /* where they are known: "expires" (milliseconds since 1970), "scopes" (a text), "id_stand_in" (what stands for an id_token) */
};

/* The id_token itself is not kept. Some access tokens are of the same form, and have the same claims. */
static int add_identity(json_t *meta, const json_t *o, const char *access)
{
	const char *const from[] = { json_string_value(json_object_get(o, "id_token")), access };
	struct id_token id;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(from); i++)
		if (from[i] && id_token_read(from[i], strlen(from[i]), &id) == 0 && *id.account)
			return json_object_set_new(meta, "id_stand_in", json_string(id.stand_in));
	return 0;
}

/* When the access token ends, and what it is for, as the two kinds of JSON say it. */
static json_t *find_meta(const json_t *o, const char *access)
{
	const json_int_t at = json_integer_value(json_object_get(o, "expiresAt")),
			 in = json_integer_value(json_object_get(o, "expires_in"));
	const json_t *scopes = json_object_get(o, "scopes"), *one;
	const char *text = json_string_value(json_object_get(o, "scope"));
	struct buf all = BUF_INIT(SCOPES_MAX);
	json_t *meta = json_object();
	size_t i;
	int r = text ? buf_printf(&all, "%s", text) : 0;

	json_array_foreach(scopes, i, one)
	{
		if (r == 0 && json_string_value(one))
			r = buf_printf(&all, "%s%s", all.n ? " " : "", json_string_value(one));
	}
	if (at > 0)
		r |= json_object_set_new(meta, "expires", json_integer(at));
	else if (in > 0 && in <= EXPIRES_MAX)
		r |= json_object_set_new(meta, "expires", json_integer((time(NULL) + in) * 1000));
	if (r == 0 && all.n)
		r = json_object_set_new(meta, "scopes", json_string(buf_str(&all)));
	if (r == 0)
		r = add_identity(meta, o, access);
	buf_done(&all);
	if (r == 0)
		return meta;
	json_decref(meta);
	return NULL;
}

static bool find_tokens(const json_t *j, const char *service, struct tokens *ret)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(shapes); i++) {
		const json_t *o = shapes[i].object ? json_object_get(j, shapes[i].object) : j;

		if (shapes[i].service && !streq(shapes[i].service, service))
			continue;
		ret->access = json_string_value(json_object_get(o, shapes[i].access));
		ret->refresh = json_string_value(json_object_get(o, shapes[i].refresh));
		if (ret->access && *ret->access) {
			ret->meta = find_meta(o, ret->access);
			return true;
		}
	}
	return false;
}

/* The client's file: 1 if there is none. */
static int read_client(const char *service, char **ret_path, json_t **ret, struct err *e)
{
	const char *home = getenv("HOME");
	char *text = NULL;
	size_t i, n = 0;
	int r;

	for (i = 0; i < ARRAY_SIZE(shapes) && !streq(shapes[i].service, service); i++)
		;
	if (i == ARRAY_SIZE(shapes) || !home)
		return err_set(e, -EINVAL,
			       "no client on this machine is known that logs in to '%s'; pipe its "
			       "tokens in as JSON (access_token, refresh_token)",
			       service);
	*ret_path = dirs_join(home, shapes[i].file);
	if (!*ret_path)
		return err_errno(e, -ENOMEM, "cannot find the client's tokens");
	r = fd_read_file(AT_FDCWD, *ret_path, TOKENS_MAX, &text, &n);
	if (r < 0)
		return err_errno(e, r,
				 "cannot read %s (log in with the client on this machine first, or "
				 "pipe the tokens in as JSON)",
				 *ret_path);
	*ret = json_loadb(text, n, 0, NULL);
	store_value_free(text, n);
	return 0;
}

static int read_stdin(json_t **ret, struct err *e)
{
	static char text[TOKENS_MAX];
	ssize_t n = fd_read_all(STDIN_FILENO, text, sizeof(text));

	if (n < 0)
		return err_errno(e, (int)n, "cannot read stdin");
	*ret = n ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
	explicit_bzero(text, sizeof(text));
	return n ? 1 : 0;
}

static int put_token(struct secret *s, const char *service, const char *which, const char *value,
		     char **meta, struct err *e)
{
	struct store_entry entry = { .how = STORE_VALUE,
				     .meta = meta ? *meta : NULL,
				     .created = time(NULL) };
	char name[CRED_NAME_MAX + 16];

	(void)snprintf(name, sizeof(name), "%.63s.%s", service, which);
	return secret_put(s, "oauth", name, &entry, value, strlen(value), e);
}

static bool needs_identity(const struct services *all, const char *service)
{
	const struct service *s = services_find(all, service);

	return s && s->file && strstr(s->file_text, "{{.IdToken}}");
}

static int put_both(struct secret *s, const char *service, const struct tokens *t, struct err *e)
{
	_free_ char *meta = t->meta ? json_dumps(t->meta, JSON_COMPACT) : strdup("{}");
	char name[CRED_NAME_MAX + 16];
	int r, there;

	(void)snprintf(name, sizeof(name), "%.63s.access", service);
	there = secret_find(s, "oauth", name) ? 1 : 0;
	r = t->refresh && *t->refresh ? put_token(s, service, "refresh", t->refresh, NULL, e) : 0;
	if (r == 0)
		r = put_token(s, service, "access", t->access, &meta, e);
	if (r == 0 && !(t->refresh && *t->refresh))
		say("note: there is no refresh token: when this one is over, set it again");
	if (r == 0 && needs_identity(&s->services, service) &&
	    !json_object_get(t->meta, "id_stand_in"))
		say("warning: there is no id_token that says of which account this login is: its "
		    "client will find no login in sandboxes");
	if (r == 0 && secret_find(s, "service", service))
		say("note: the key of '%s' is used rather than this login; take it out with 'bac "
		    "secret rm %s'",
		    service, service);
	return r < 0 ? r : there;
}

int secret_set_oauth(struct secret *s, const char *service, struct err *e)
{
	const struct service *known = services_find(&s->services, service);
	_free_ char *path = NULL;
	struct tokens t = { 0 };
	json_t *j = NULL;
	int r = 0;

	if (!known || !known->n_oauth)
		return err_set(e, -EINVAL,
			       "--oauth: nothing is known of logins to '%.60s' (see 'bac secret "
			       "services')",
			       service);
	if (s->o->hosts.n)
		return err_set(e, -EINVAL, "--host goes with a key, not with a login");
	if (!isatty(STDIN_FILENO))
		r = read_stdin(&j, e);
	if (r == 0)
		r = read_client(service, &path, &j, e);
	if (r < 0)
		return r;
	r = find_tokens(j, service, &t) ? put_both(s, service, &t, e)
					: err_set(e, -EINVAL, "no access token is in %s",
						  path ? path : "what stdin said");
	json_decref(t.meta);
	json_decref(j);
	return r;
}
