/* bac secret rm. */
#include <stdio.h>
#include <unistd.h>

#include "cli/secret.h"
#include "policy/net.h"

/* What is to go: indexes of entries. */
struct pick {
	size_t v[STORE_ENTRIES_MAX];
	size_t n;
};

static bool in_scope(const struct secret *s, const struct store_entry *entry)
{
	size_t n = strlen(secret_scope(s));

	return !strncmp(entry->key, secret_scope(s), n) && entry->key[n] == '/';
}

/* Of this scope: KIND/NAME; of a login both tokens. */
static void take(const struct secret *s, struct pick *p, const char *kind, const char *name)
{
	size_t n = strlen(kind), i;

	for (i = 0; i < s->n && p->n < STORE_ENTRIES_MAX; i++) {
		const char *rest = strchr(s->entries[i].key, '/') + 1;

		if (!in_scope(s, &s->entries[i]) || strncmp(rest, kind, n) != 0 || rest[n] != '/')
			continue;
		rest += n + 1;
		if (streq(rest, name) ||
		    (streq(kind, "oauth") && starts_with(rest, name) && rest[strlen(name)] == '.'))
			p->v[p->n++] = i;
	}
}

static void take_all(const struct secret *s, struct pick *p)
{
	size_t i;

	for (i = 0; i < s->n && p->n < STORE_ENTRIES_MAX; i++)
		if (in_scope(s, &s->entries[i]))
			p->v[p->n++] = i;
}

static const char *name_of(const struct secret *s, size_t i)
{
	return strchr(strchr(s->entries[i].key, '/') + 1, '/') + 1;
}

/* Without a name: one of the list. */
static int take_one(const struct secret *s, struct pick *p, struct err *e)
{
	const char *names[STORE_ENTRIES_MAX];
	struct pick all = { .n = 0 };
	size_t i;
	int r;

	take_all(s, &all);
	for (i = 0; i < all.n; i++)
		names[i] = strchr(s->entries[all.v[i]].key, '/') + 1;
	if (!all.n)
		return err_set(e, -ENOENT, "no secret is stored");
	r = secret_pick("which secret", names, all.n, e);
	if (r >= 0)
		p->v[p->n++] = all.v[r];
	return MIN(r, 0);
}

static int not_there(const struct secret *s, const char *name, struct err *e)
{
	char of[96];
	size_t i;

	for (i = 0; i < s->n; i++)
		if (streq(name_of(s, i), name))
			return err_set(e, -ENOENT,
				       "no secret '%.60s'%s is stored as a service; there is %s",
				       name, secret_of(s, of, sizeof(of)), s->entries[i].key);
	return err_set(e, -ENOENT, "no secret '%.60s'%s is stored (see 'bac secret ls')", name,
		       secret_of(s, of, sizeof(of)));
}

static int choose(const struct secret *s, const struct args *args, struct pick *p, struct err *e)
{
	const struct secret_args *o = s->o;
	char resource[NET_RESOURCE_MAX + 1];
	const char *name = args->n ? args->v[0] : NULL;
	int r = 0;

	if (o->all) {
		take_all(s, p);
		return 0;
	}
	if (o->registry) {
		name = resource;
		r = net_resource_check(o->registry, resource, sizeof(resource), e);
		if (r < 0)
			return err_ctx(e, "--registry '%.100s'", o->registry);
		take(s, p, "registry", resource);
	} else if (!name) {
		return take_one(s, p, e);
	} else if (o->custom) {
		take(s, p, "custom", name);
	} else {
		take(s, p, "service", name);
		take(s, p, "oauth", name);
	}
	return p->n ? 0 : not_there(s, name, e);
}

/* 1: go on; 0: the user said no. Nobody is asked about one secret that was named by a program. */
static int confirm(const struct secret *s, const struct pick *p, struct err *e)
{
	char question[160], of[96];

	if (s->o->force || !p->n)
		return 1;
	if (!s->o->all && !isatty(STDIN_FILENO))
		return 1;
	if (s->o->all)
		(void)snprintf(question, sizeof(question), "Remove all %zu secrets%s?", p->n,
			       secret_of(s, of, sizeof(of)));
	else
		(void)snprintf(question, sizeof(question), "Remove the secret '%.60s'%s?",
			       name_of(s, p->v[0]), secret_of(s, of, sizeof(of)));
	return ask(question, e);
}

static int remove_picked(struct secret *s, const struct pick *p, struct err *e)
{
	size_t i;
	int r = 0;

	for (i = 0; i < p->n && r == 0; i++) {
		r = store_remove(s->store, s->entries[p->v[i]].key, e);
		if (r == 0)
			(void)printf("Removed %s\n", name_of(s, p->v[i]));
	}
	/* what is gone is told, whatever became of the rest */
	if (i) {
		struct err told;
		int t = secret_tell(s, &told);

		if (r == 0 && t < 0) {
			*e = told;
			r = t;
		}
	}
	return r == 0 ? flush_out(e) : r;
}

int secret_run_rm(void *opt, struct args *args, struct err *e)
{
	const struct secret_args *o = opt;
	_cleanup_(secret_done) struct secret s = { 0 };
	struct pick p = { .n = 0 };
	int r;

	if (!!o->all + !!o->registry + (args->n > 0) > 1)
		return err_set(e, -EINVAL, "name one secret, or --registry, or --all");
	if (o->custom && !args->n)
		return err_set(e, -EINVAL, "--custom: name the variable");
	r = secret_begin(&s, o, e);
	if (r == 0)
		r = choose(&s, args, &p, e);
	if (r == 0)
		r = confirm(&s, &p, e);
	if (r == 0)
		r = err_set(e, -ECANCELED, "nothing was removed");
	return r > 0 ? remove_picked(&s, &p, e) : r;
}
