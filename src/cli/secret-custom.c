/* bac secret set-custom. */
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/secret.h"
#include "policy/net.h"

enum { RAND_CHARS = 20, RAND_WORD = 6 };

static const char standard[] = "bac-cs-{rand}";
static const char *const places[] = { "headers", "basic", "query", "body" };

static int check_env(const char *name, struct err *e)
{
	static const char *const reserved[] = { "PATH",       "HOME",       "USER",       "SHELL",
						"LD_PRELOAD", "http_proxy", "https_proxy" };
	size_t i, n = name ? strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					  "0123456789_")
			   : 0;

	if (!name || !n || name[n] || n > CRED_NAME_MAX || (name[0] >= '0' && name[0] <= '9'))
		return err_set(e, -EINVAL, "--env: name the variable that sandboxes see%s%.60s%s",
			       name ? " ('" : "", name ? name : "",
			       name ? "' is not the name of one)" : "");
	for (i = 0; i < ARRAY_SIZE(reserved); i++)
		if (streq(reserved[i], name))
			return err_set(e, -EINVAL, "--env: %s is not for secrets", name);
	return 0;
}

static int check_placeholder(const char *p, struct err *e)
{
	const char *at = strstr(p, "{rand}");
	size_t n = strlen(p) + (at ? RAND_CHARS - RAND_WORD : 0), i;

	if (at && strstr(at + 1, "{rand}"))
		return err_set(e, -EINVAL, "--placeholder: {rand} stands once");
	if (n < CRED_PLACEHOLDER_MIN || n > CRED_PLACEHOLDER_MAX)
		return err_set(e, -EINVAL, "--placeholder: it has %d to %d bytes",
			       CRED_PLACEHOLDER_MIN, CRED_PLACEHOLDER_MAX);
	for (i = 0; p[i]; i++)
		if (p[i] < '!' || p[i] > '~')
			return err_set(e, -EINVAL,
				       "--placeholder: only visible ASCII without spaces");
	if (strstr(p, "proxy-managed"))
		return err_set(e, -EINVAL,
			       "--placeholder: 'proxy-managed' stands for the keys of services");
	return 0;
}

/* "headers,basic" in the order of places. */
static int check_in(const char *text, struct buf *out, struct err *e)
{
	_free_ char *copy = strdup(text);
	unsigned where = 0;
	char *one, *rest = NULL;
	size_t i;
	int r = 0;

	if (!copy)
		return err_errno(e, -ENOMEM, "--in");
	for (one = strtok_r(copy, ", ", &rest); one; one = strtok_r(NULL, ", ", &rest)) {
		for (i = 0; i < ARRAY_SIZE(places) && !streq(places[i], one); i++)
			;
		if (i == ARRAY_SIZE(places))
			return err_set(e, -EINVAL,
				       "--in: '%.40s' is none of headers, basic, query, body", one);
		where |= 1U << i;
	}
	if (!where)
		return err_set(e, -EINVAL, "--in: name a place (headers, basic, query, body)");
	for (i = 0; i < ARRAY_SIZE(places) && r == 0; i++)
		if (where >> i & 1)
			r = buf_printf(out, "%s%s", out->n ? "," : "", places[i]);
	return r < 0 ? err_errno(e, r, "--in") : 0;
}

/* ---- what is there already ---- */
static int taken(const struct store_entry *other, const char *why, struct err *e)
{
	const char *name = strrchr(other->key, '/') + 1;
	const char *of = starts_with(other->key, "global/") ? "" : " --sandbox ";
	int n = *of ? (int)strcspn(other->key, "/") : 0;

	return err_set(e, -EEXIST,
		       "%s the custom secret %s; choose another, or remove that one: bac secret rm "
		       "--custom %s%s%.*s",
		       why, name, name, of, n, other->key);
}

/* Two placeholders of which one may be found in the other would make it a matter of luck which secret is sent. */
static bool overlap(const char *a, const char *b)
{
	/* what is random is never the other's; what stands around it may be the same */
	if (strstr(a, "{rand}") && strstr(b, "{rand}"))
		return false;
	return strstr(a, b) || strstr(b, a);
}

static int check_rival(const struct secret *s, const struct store_entry *other, const char *env,
		       const char *placeholder, struct err *e)
{
	bool same_name = streq(strrchr(other->key, '/') + 1, env);
	json_t *meta;
	const char *p;
	int r = 0;

	if (same_name && !strncmp(other->key, secret_scope(s), strcspn(other->key, "/")))
		return s->o->force ? 0
				   : err_set(e, -EEXIST,
					     "%s is the variable of a custom secret already; "
					     "replace it with --force, or choose another",
					     env);
	if (same_name) /* a sandbox's own takes the place of the one for all */
		return 0;
	meta = json_loads(other->meta, 0, NULL);
	p = json_string_value(json_object_get(meta, "placeholder"));
	if (p && overlap(p, placeholder))
		r = taken(other,
			  streq(p, placeholder) ? "this is the placeholder of"
						: "this placeholder overlaps that of",
			  e);
	json_decref(meta);
	return r;
}

static int check_rivals(const struct secret *s, const char *env, const char *placeholder,
			struct err *e)
{
	size_t i, k;
	int r = 0;

	for (i = 0; i < s->n && r == 0; i++)
		if (strstr(s->entries[i].key, "/custom/"))
			r = check_rival(s, &s->entries[i], env, placeholder, e);
	for (i = 0; i < s->services.n && r == 0; i++)
		for (k = 0; k < s->services.v[i].n_envs; k++)
			if (streq(s->services.v[i].envs[k], env))
				return err_set(e, -EEXIST,
					       "%s is the variable of the service '%s'; store its "
					       "key with: bac secret set %s",
					       env, s->services.v[i].name, s->services.v[i].name);
	return r;
}

/* ---- setting ---- */
static int hosts_json(const struct secret_args *o, json_t *hosts, struct err *e)
{
	char resource[NET_RESOURCE_MAX + 1];
	size_t i;
	int r = 0;

	for (i = 0; i < o->hosts.n && r == 0; i++) {
		r = net_resource_check(o->hosts.v[i], resource, sizeof(resource), e);
		if (r < 0)
			return err_ctx(e, "--host '%.100s'", o->hosts.v[i]);
		if (starts_with(resource, "**") && resource[2] != '.')
			return err_set(e, -EINVAL, "--host: a secret is not for every host");
		if (json_array_append_new(hosts, json_string(resource)) < 0)
			return err_errno(e, -ENOMEM, "--host");
	}
	return r;
}

static int make_meta(const struct secret_args *o, const char *placeholder, char **ret,
		     struct err *e)
{
	struct buf in = BUF_INIT(64);
	json_t *hosts = json_array(), *meta = NULL;
	int r = check_in(o->in ? o->in : "headers,basic,query", &in, e);

	if (r == 0)
		r = hosts_json(o, hosts, e);
	if (r == 0)
		meta = json_pack("{s:O, s:s, s:s}", "hosts", hosts, "placeholder", placeholder,
				 "in", buf_str(&in));
	*ret = meta ? json_dumps(meta, JSON_COMPACT) : NULL;
	if (r == 0 && !*ret)
		r = err_errno(e, -ENOMEM, "cannot store the secret");
	json_decref(meta);
	json_decref(hosts);
	buf_done(&in);
	return r;
}

static int read_value(const struct secret_args *o, char **ret, size_t *ret_n, struct err *e)
{
	const char *given = o->value ? o->value : o->token;
	int r;

	if (!given) {
		r = secret_read(o->env, ret, ret_n, e);
		return r == -ENODATA && !isatty(STDIN_FILENO)
			       ? err_set(e, -EINVAL, "no secret came on stdin")
			       : r;
	}
	say("warning: a value on the command line is seen in the process list and kept in your "
	    "shell's history; better pipe it in");
	*ret_n = strlen(given);
	*ret = strdup(given);
	explicit_bzero((char *)given, *ret_n);
	return *ret ? 0 : err_errno(e, -ENOMEM, "cannot store the secret");
}

static int check_args(const struct secret_args *o, struct err *e)
{
	int n = !!o->value + !!o->token + !!o->ref + !!o->command;

	if (n > 1)
		return err_set(e, -EINVAL,
			       "--value, --token, --ref and --command exclude each other");
	if (o->refresh && !o->command && !o->ref)
		return err_set(e, -EINVAL, "--refresh goes with --command or --ref");
	if (!o->hosts.n)
		return err_set(e, -EINVAL, "--host: name the hosts that the secret is for");
	return check_env(o->env, e);
}

static int set(struct secret *s, const char *placeholder, struct err *e)
{
	const struct secret_args *o = s->o;
	struct store_entry entry = { .how = o->command ? STORE_COMMAND
					    : o->ref   ? STORE_REF
						       : STORE_VALUE,
				     .source = (char *)(o->command ? o->command : o->ref) };
	char *value = NULL, of[96];
	size_t n = 0;
	int r = check_rivals(s, o->env, placeholder, e);

	if (r == 0 && o->ref)
		r = MIN(store_ref_check(o->ref, e), 0);
	if (r == 0)
		r = secret_refresh(o->refresh, 0, &entry.refresh_s, e);
	if (r == 0)
		r = make_meta(o, placeholder, &entry.meta, e);
	if (r == 0 && entry.how == STORE_VALUE)
		r = read_value(o, &value, &n, e);
	if (r == 0)
		r = secret_put(s, "custom", o->env, &entry, value, n, e);
	store_value_free(value, n);
	free(entry.meta);
	if (r == 0)
		r = secret_tell(s, e);
	if (r < 0)
		return r;
	secret_hint(s, o->env);
	(void)printf("Stored %s%s in %s; what starts in sandboxes from now on sees a placeholder "
		     "in it\n",
		     o->env, secret_of(s, of, sizeof(of)), store_where(s->store));
	return flush_out(e);
}

int secret_run_custom(void *opt, struct args *args, struct err *e)
{
	const struct secret_args *o = opt;
	const char *placeholder = o->placeholder ? o->placeholder : standard;
	_cleanup_(secret_done) struct secret s = { 0 };
	int r = check_args(o, e);

	(void)args;
	if (r == 0)
		r = check_placeholder(placeholder, e);
	if (r == 0)
		r = secret_begin(&s, o, e);
	return r == 0 ? set(&s, placeholder, e) : r;
}
