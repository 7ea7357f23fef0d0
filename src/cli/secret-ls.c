/* bac secret ls and services: what there is, without values. */
#include <jansson.h>
#include <stdio.h>

#include "cli/secret.h"

static const char *const sources[] = {
	[STORE_VALUE] = "value", [STORE_COMMAND] = "command", [STORE_REF] = "ref"
};

/* A key taken apart. */
struct row {
	const struct store_entry *entry;
	char scope[64], kind[16]; /* the sandbox's name, or "(global)" */
	const char *name;
	bool global, gone;
};

static void read_row(struct secret *s, const struct store_entry *entry, struct row *ret)
{
	const char *kind = strchr(entry->key, '/') + 1, *name = strchr(kind, '/') + 1;
	struct sandbox b = { 0 };
	struct err none = { 0 };
	char id[64];

	*ret = (struct row) { .entry = entry, .name = name };
	(void)snprintf(ret->kind, sizeof(ret->kind), "%.*s", (int)MIN(name - kind - 1, 15), kind);
	(void)snprintf(id, sizeof(id), "%.*s", (int)MIN(kind - entry->key - 1, 63), entry->key);
	ret->global = streq(id, "global");
	if (ret->global) {
		(void)snprintf(ret->scope, sizeof(ret->scope), "(global)");
	} else if (state_get(s->c.state, id, &b, &none) == 0) {
		(void)snprintf(ret->scope, sizeof(ret->scope), "%s", b.name);
	} else {
		(void)snprintf(ret->scope, sizeof(ret->scope), "%.20s (gone)", id);
		ret->gone = true;
	}
	sandbox_done(&b);
}

static bool is_wanted(const struct secret *s, const struct row *row)
{
	const struct secret_args *o = s->o;
	size_t n = o->service ? strlen(o->service) : 0;

	if (o->global && !row->global)
		return false;
	if (s->b.id[0] && strncmp(row->entry->key, s->b.id, strlen(s->b.id)) != 0)
		return false;
	/* a login has two: SERVICE.access, SERVICE.refresh */
	return !n || streq(row->name, o->service) ||
	       (streq(row->kind, "oauth") && !strncmp(row->name, o->service, n) &&
		row->name[n] == '.');
}

static json_t *row_json(const struct row *row)
{
	const struct store_entry *entry = row->entry;
	json_t *j = json_pack("{s:s, s:s, s:s, s:s}", "scope", row->global ? "global" : "sandbox",
			      "type", row->kind, "name", row->name, "source", sources[entry->how]);
	json_t *meta = json_loads(entry->meta, 0, NULL);
	char at[32];

	if (!row->global)
		(void)json_object_set_new(j, "sandbox", json_string(row->scope));
	(void)json_object_set_new(j, "created_at",
				  json_string(utc(at, sizeof(at), entry->created)));
	if (entry->source) {
		(void)json_object_set_new(j, sources[entry->how], json_string(entry->source));
		(void)json_object_set_new(j, "refresh_seconds", json_integer(entry->refresh_s));
	}
	(void)json_object_update_missing(j, meta);
	json_decref(meta);
	return j;
}

/* What stands in the last column: never more than a few bytes of a value. */
static void secret_column(const struct store_entry *entry, char *dst, size_t max)
{
	if (entry->how == STORE_VALUE)
		(void)snprintf(dst, max, "%s", entry->masked);
	else
		(void)snprintf(dst, max, "(%s: %.60s%s)", sources[entry->how], entry->source,
			       strlen(entry->source) > 60 ? "..." : "");
}

static void print_row(const struct secret *s, const struct row *row, bool first)
{
	char last[96];

	if (s->o->quiet) {
		(void)printf("%s\n", row->name);
		return;
	}
	if (first)
		(void)printf("%-20s  %-8s  %-20s  %s\n", "SCOPE", "TYPE", "NAME", "SECRET");
	secret_column(row->entry, last, sizeof(last));
	(void)printf("%-20s  %-8s  %-20s  %s\n", row->scope, row->kind, row->name, last);
}

int secret_run_ls(void *opt, struct args *args, struct err *e)
{
	const struct secret_args *o = opt;
	_cleanup_(secret_done) struct secret s = { 0 };
	json_t *list;
	size_t i, n = 0;
	int r;

	(void)args;
	if (o->global && o->sandbox)
		return err_set(e, -EINVAL, "--global and --sandbox exclude each other");
	r = secret_begin(&s, o, e);
	if (r < 0)
		return r;
	list = o->json ? json_array() : NULL;
	for (i = 0; i < s.n; i++) {
		struct row row;

		read_row(&s, &s.entries[i], &row);
		if (!is_wanted(&s, &row))
			continue;
		if (list)
			(void)json_array_append_new(list, row_json(&row));
		else
			print_row(&s, &row, !n);
		n++;
	}
	if (list)
		return print_json(
			json_pack("{s:s, s:o}", "store", store_where(s.store), "secrets", list), e);
	if (!n && !o->quiet)
		say("no secret is stored; store one with: bac secret set SERVICE");
	return flush_out(e);
}

/* ---- services ---- */
static json_t *use_json(const struct cred_use *u)
{
	json_t *j = json_pack("{s:s}", "host", u->resource);

	if (u->header)
		(void)json_object_set_new(j, "header", json_string(u->header));
	if (u->format)
		(void)json_object_set_new(j, "format", json_string(u->format));
	if (u->username)
		(void)json_object_set_new(j, "username", json_string(u->username));
	if (u->path)
		(void)json_object_set_new(j, "token_path", json_string(u->path));
	return j;
}

static json_t *uses_json(const struct cred_use *v, size_t n)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < n; i++)
		(void)json_array_append_new(list, use_json(&v[i]));
	return list;
}

static json_t *service_json(const struct service *s)
{
	json_t *envs = json_array(), *j;
	size_t i;

	for (i = 0; i < s->n_envs; i++)
		(void)json_array_append_new(envs, json_string(s->envs[i]));
	j = json_pack("{s:s, s:o, s:o}", "name", s->name, "env", envs, "hosts",
		      uses_json(s->uses, s->n_uses));
	if (s->n_oauth)
		(void)json_object_set_new(j, "oauth", uses_json(s->oauth, s->n_oauth));
	return j;
}

static void print_service(const struct service *s)
{
	size_t i;

	(void)printf("%-12s", s->name);
	for (i = 0; i < s->n_envs; i++)
		(void)printf("%s%s", i ? ", " : "", s->envs[i]);
	(void)printf("\n");
	for (i = 0; i < s->n_uses; i++)
		(void)printf("%-12s%s: %s %s\n", "", s->uses[i].resource,
			     s->uses[i].header ? s->uses[i].header : "basic, user",
			     s->uses[i].format ? s->uses[i].format : s->uses[i].username);
	for (i = 0; i < s->n_oauth; i++)
		(void)printf("%-12s%s: %s\n", "", s->oauth[i].resource,
			     s->oauth[i].path ? "login, renewed here" : "login");
}

int secret_run_services(void *opt, struct args *args, struct err *e)
{
	const struct secret_args *o = opt;
	struct services s = { 0 };
	json_t *list = NULL;
	size_t i;
	int r = services_load(&s, e);

	(void)args;
	if (r == 0 && o->json)
		list = json_array();
	for (i = 0; i < s.n && r == 0; i++) {
		if (list)
			(void)json_array_append_new(list, service_json(&s.v[i]));
		else
			print_service(&s.v[i]);
	}
	if (r == 0)
		r = list ? print_json(json_pack("{s:o}", "services", list), e) : flush_out(e);
	services_done(&s);
	return r;
}
