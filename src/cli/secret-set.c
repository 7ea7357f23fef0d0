/* bac secret set. */
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/login-push.h"
#include "cli/secret.h"
#include "policy/net.h"

enum { REFRESH_S = 55 * 60 };

/* What excludes what. */
static int check_args(const struct secret_args *o, const struct args *args, struct err *e)
{
	const struct {
		bool given;
		const char *name;
	} sources[] = {
		{ o->token, "--token" }, { o->command, "--command" },   { o->ref, "--ref" },
		{ o->oauth, "--oauth" }, { o->registry, "--registry" },
	};
	const char *first = NULL;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sources); i++) {
		if (!sources[i].given)
			continue;
		if (first)
			return err_set(e, -EINVAL, "%s and %s exclude each other", first,
				       sources[i].name);
		first = sources[i].name;
	}
	if (o->refresh && !o->command && !o->ref)
		return err_set(e, -EINVAL, "--refresh goes with --command or --ref");
	if (o->registry && args->n)
		return err_set(e, -EINVAL, "--registry takes the place of a service");
	if (o->registry && (!o->username || !o->password_stdin))
		return err_set(e, -EINVAL, "--registry needs --username and --password-stdin");
	if (!o->registry && (o->username || o->password_stdin || o->all_sandboxes || o->endpoint))
		return err_set(e, -EINVAL,
			       "--username, --password-stdin, --all-sandboxes and "
			       "--registry-auth-endpoint go with --registry");
	if (o->endpoint && (!starts_with(o->endpoint, "https://") || strlen(o->endpoint) > 400 ||
			    strpbrk(o->endpoint + 8, "?# @\"\\") || !o->endpoint[8]))
		return err_set(e, -EINVAL,
			       "--registry-auth-endpoint: a URL with https:// and without a query");
	if (o->registry && o->hosts.n)
		return err_set(e, -EINVAL, "--host goes with a service");
	return 0;
}

/* A service that is known, or whose name is so far from all of those that it can only be a kit's. */
static int check_service(const struct secret *s, const char *name, struct err *e)
{
	const char *near;
	char key[STORE_KEY_MAX + 1];

	if (services_find(&s->services, name))
		return 0;
	if (strlen(name) > CRED_NAME_MAX ||
	    !store_key_is(compose_key(key, "global", "service", name)) || strchr(name, ':'))
		return err_set(e, -EINVAL, "'%.60s' is not the name of a service", name);
	near = text_nearest(name, s->services.v, s->services.n, sizeof(*s->services.v));
	if (near && !s->o->force)
		return err_set(e, -EINVAL,
			       "unknown service '%s' (did you mean '%s'? If a kit calls it so, use "
			       "--force)",
			       name, near);
	if (s->o->hosts.n)
		return err_set(e, -EINVAL,
			       "'%s' is no service that bac knows: for hosts of your own there is "
			       "'bac secret set-custom'",
			       name);
	say("note: '%s' is no service that bac knows; only a kit or a file of --credentials that "
	    "declares it will use it",
	    name);
	return 0;
}

/* The value out of argv, where everybody could go on reading it. */
static int take_token(const char *token, char **ret, size_t *ret_n, struct err *e)
{
	size_t n = strlen(token);

	say("warning: a value on the command line is seen in the process list and kept in your "
	    "shell's history; better pipe it in");
	*ret = strdup(token);
	explicit_bzero((char *)token, n);
	if (!*ret)
		return err_errno(e, -ENOMEM, "cannot store the secret");
	*ret_n = n;
	return n ? 0 : err_set(e, -EINVAL, "the secret is empty");
}

/* --host: {"hosts": [...]}; without: what was there stays. */
static int make_meta(const struct secret_args *o, char **ret, struct err *e)
{
	json_t *hosts = json_array(), *meta;
	size_t i;
	int r = 0;

	for (i = 0; i < o->hosts.n && r == 0; i++) {
		char resource[NET_RESOURCE_MAX + 1];

		r = net_resource_check(o->hosts.v[i], resource, sizeof(resource), e);
		if (r < 0)
			(void)err_ctx(e, "--host '%.100s'", o->hosts.v[i]);
		else if (resource[0] == '*' && !strchr(resource, '.'))
			r = err_set(e, -EINVAL, "--host: a secret is not for every host");
		else if (json_array_append_new(hosts, json_string(resource)) < 0)
			r = err_errno(e, -ENOMEM, "--host");
	}
	meta = json_pack("{s:o}", "hosts", hosts);
	*ret = r == 0 && o->hosts.n ? json_dumps(meta, JSON_COMPACT) : NULL;
	json_decref(meta);
	return r;
}

static int read_value(const struct secret_args *o, const char *what, char **ret, size_t *ret_n,
		      struct err *e)
{
	char prompt[128];
	int r;

	if (o->token)
		return take_token(o->token, ret, ret_n, e);
	(void)snprintf(prompt, sizeof(prompt), "%.100s", what);
	r = secret_read(prompt, ret, ret_n, e);
	return r == -ENODATA && !isatty(STDIN_FILENO)
		       ? err_set(e, -EINVAL, "no secret came on stdin")
		       : r;
}

/* hint: the service whose hosts the network rules are asked about */
static int tell(struct secret *s, const char *name, const char *hint, bool replaced, struct err *e)
{
	char of[96];
	int r = secret_tell(s, e);

	if (r < 0)
		return r;
	secret_hint(s, hint);
	(void)printf("%s %s%s in %s\n", replaced ? "Replaced" : "Stored", name,
		     secret_of(s, of, sizeof(of)), store_where(s->store));
	return flush_out(e);
}

static int set_service(struct secret *s, const char *name, struct err *e)
{
	const struct secret_args *o = s->o;
	struct store_entry entry = { .how = o->command ? STORE_COMMAND
					    : o->ref   ? STORE_REF
						       : STORE_VALUE,
				     .source = (char *)(o->command ? o->command : o->ref) };
	bool there = secret_find(s, "service", name);
	_free_ char *meta = NULL;
	char *value = NULL;
	size_t n = 0;
	int r = check_service(s, name, e);

	if (r == 0 && there && o->token && !o->force)
		r = err_set(e, -EEXIST, "there is a secret '%s' already; replace it with --force",
			    name);
	if (r == 0 && o->ref)
		r = MIN(store_ref_check(o->ref, e), 0);
	if (r == 0)
		r = secret_refresh(o->refresh, REFRESH_S, &entry.refresh_s, e);
	if (r == 0)
		r = make_meta(o, &meta, e);
	if (r == 0 && entry.how == STORE_VALUE)
		r = read_value(o, name, &value, &n, e);
	entry.meta = meta;
	if (r == 0)
		r = secret_put(s, "service", name, &entry, value, n, e);
	store_value_free(value, n);
	return r == 0 ? tell(s, name, name, there, e) : r;
}

static int set_registry(struct secret *s, struct err *e)
{
	const struct secret_args *o = s->o;
	struct store_entry entry = { .how = STORE_VALUE };
	char *value = NULL, resource[NET_RESOURCE_MAX + 1];
	char key[STORE_KEY_MAX + 1];
	json_t *meta;
	size_t n = 0;
	bool there;
	int r = net_resource_check(o->registry, resource, sizeof(resource), e);

	if (r < 0)
		return err_ctx(e, "--registry '%.100s'", o->registry);
	if (!store_key_is(compose_key(key, "global", "registry", resource)))
		return err_set(e, -EINVAL, "--registry: '%.100s' is not a host", o->registry);
	if (!*o->username || strpbrk(o->username, ":\r\n\t"))
		return err_set(e, -EINVAL, "--username: not the name of a user");
	there = secret_find(s, "registry", resource);
	r = secret_read("password", &value, &n, e);
	if (r < 0)
		return r;
	meta = json_pack("{s:s, s:b, s:s*}", "username", o->username, "all",
			 o->all_sandboxes || s->b.id[0], "endpoint", o->endpoint);
	entry.meta = json_dumps(meta, JSON_COMPACT);
	json_decref(meta);
	r = entry.meta ? secret_put(s, "registry", resource, &entry, value, n, e)
		       : err_set(e, -EINVAL, "--username: not the name of a user");
	free(entry.meta);
	store_value_free(value, n);
	return r == 0 ? tell(s, resource, "registry", there, e) : r;
}

static int pick_service(struct secret *s, const char **ret, struct err *e)
{
	const char **names = calloc(s->services.n + 1, sizeof(*names));
	size_t i;
	int r;

	if (!names)
		return err_errno(e, -ENOMEM, "cannot list the services");
	for (i = 0; i < s->services.n; i++)
		names[i] = s->services.v[i].name;
	r = secret_pick("which service", names, s->services.n, e);
	if (r >= 0)
		*ret = names[r];
	free(names);
	return MIN(r, 0);
}

int secret_run_set(void *opt, struct args *args, struct err *e)
{
	const struct secret_args *o = opt;
	_cleanup_(secret_done) struct secret s = { .o = o };
	const char *name = args->n ? args->v[0] : "";
	int r = check_args(o, args, e);

	if (r == 0)
		r = secret_begin(&s, o, e);
	if (r < 0)
		return r;
	if (o->registry)
		return set_registry(&s, e);
	r = *name ? 0 : pick_service(&s, &name, e);
	if (r < 0)
		return r;
	if (!o->oauth)
		return set_service(&s, name, e);
	r = secret_set_oauth(&s, name, e);
	if (r >= 0)
		r = tell(&s, name, name, r, e);
	if (r >= 0)
		login_push_new(&s.c, s.b.id[0] ? &s.b : NULL);
	return r;
}
