/* bac secret import: keys that lie in the environment of whoever calls. */
#include <stdio.h>
#include <unistd.h>

#include "cli/secret.h"

/* The first of a service's variables that holds something of one's own. */
static const char *find_variable(const struct service *s)
{
	size_t i;

	for (i = 0; i < s->n_envs; i++) {
		const char *v = getenv(s->envs[i]);

		if (v && *v && !starts_with(v, "proxy-managed"))
			return s->envs[i];
	}
	return NULL;
}

/* Why it is not imported; NULL: it is. */
static const char *reason_against(const struct secret *s, const struct service *service)
{
	char name[CRED_NAME_MAX + 16];

	(void)snprintf(name, sizeof(name), "%.63s.access", service->name);
	if (secret_find(s, "oauth", name))
		return "it has a login (oauth)";
	if (secret_find(s, "service", service->name) && !s->o->force)
		return "it is stored already (--force replaces it)";
	return NULL;
}

static int import_one(struct secret *s, const struct service *service, const char *variable,
		      struct err *e)
{
	struct store_entry entry = { .how = STORE_VALUE };
	const char *value = getenv(variable);
	int r = value ? secret_put(s, "service", service->name, &entry, value, strlen(value), e)
		      : err_set(e, -ENOENT, "%s is not set", variable);

	if (r == 0)
		(void)printf("Imported %s from %s\n", service->name, variable);
	return r;
}

/* 1: import it. */
static int wants(const struct secret *s, const struct service *service, const char *variable,
		 bool named, struct err *e)
{
	const char *against = reason_against(s, service);
	char question[160];

	if (against && named)
		return err_set(e, -EEXIST, "'%s' was not imported: %s", service->name, against);
	if (against) {
		(void)printf("Skipped %s from %s: %s\n", service->name, variable, against);
		return 0;
	}
	if (s->o->dry_run) {
		(void)printf("Would import %s from %s\n", service->name, variable);
		return 0;
	}
	if (named || s->o->all)
		return 1;
	(void)snprintf(question, sizeof(question), "Store the key of '%s' from %s?", service->name,
		       variable);
	return ask(question, e);
}

static int import_all(struct secret *s, const char *name, size_t *ret_n, struct err *e)
{
	size_t i, found = 0;
	int r = 0;

	for (i = 0; i < s->services.n && r >= 0; i++) {
		const struct service *service = &s->services.v[i];
		const char *variable = find_variable(service);

		if (!variable || (name && !streq(service->name, name)))
			continue;
		found++;
		r = wants(s, service, variable, name, e);
		if (r > 0) {
			r = import_one(s, service, variable, e);
			*ret_n += r == 0;
		}
	}
	if (r >= 0 && !found && name)
		return err_set(e, -ENOENT,
			       "no variable of '%.60s' is set here (see 'bac secret services')",
			       name);
	if (r >= 0 && !found)
		say("no key of a service is in this environment");
	return MIN(r, 0);
}

int secret_run_import(void *opt, struct args *args, struct err *e)
{
	const struct secret_args *o = opt;
	_cleanup_(secret_done) struct secret s = { 0 };
	const char *name = args->n ? args->v[0] : NULL;
	size_t n = 0;
	int r;

	if (name && o->all)
		return err_set(e, -EINVAL, "name a service, or --all");
	r = secret_begin(&s, o, e);
	if (r == 0 && name && !services_find(&s.services, name))
		r = err_set(e, -EINVAL, "unknown service '%.60s' (see 'bac secret services')",
			    name);
	if (r == 0 && !name && !o->all && !o->dry_run &&
	    (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)))
		r = err_set(e, -ENOTTY, "name a service, or --all: there is no terminal to ask on");
	if (r == 0)
		r = import_all(&s, name, &n, e);
	if (n) {
		struct err told;

		if (secret_tell(&s, &told) < 0 && r == 0) {
			*e = told;
			r = told.code;
		}
	}
	return r == 0 ? flush_out(e) : r;
}
