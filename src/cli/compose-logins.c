/* Files with sentinels in the place of a login's tokens. When the tokens end is what the login said when it was stored; else a time that is so near that the client renews
 * before long: nothing else but its asking does. */
#include <jansson.h>
#include <stdio.h>
#include <time.h>

#include "cli/compose-priv.h"
#include "cli/say.h"
#include "policy/id-token.h"

enum { UNKNOWN_EXPIRY_S = 55 * 60 };

void compose_logins_done(struct logins *l)
{
	while (l->n) {
		l->n--;
		free(l->v[l->n].path);
		buf_done(&l->v[l->n].text);
	}
}

static const struct store_entry *login_of(const struct compose_source *s, const char *id,
					  const char *service)
{
	char name[CRED_NAME_MAX + 16];

	if (compose_entry(s, id, "service", service))
		return NULL; /* a key beats a login */
	(void)snprintf(name, sizeof(name), "%.63s.access", service);
	return compose_entry(s, id, "oauth", name);
}

/* Whose it is: what the store has is checked as what it was made of was. */
static void take_identity(const json_t *meta, struct id_token *id, struct login_values *v)
{
	const char *text = json_string_value(json_object_get(meta, "id_stand_in"));

	if (!text || id_token_read(text, strlen(text), id) < 0)
		return;
	v->id_token = id->stand_in;
	v->account = *id->account ? id->account : NULL;
}

static int add(struct logins *l, const struct login_file *f, const struct login_values *from,
	       const struct store_entry *entry, struct err *e)
{
	json_t *meta = json_loads(entry->meta, 0, NULL);
	const json_int_t expires = json_integer_value(json_object_get(meta, "expires"));
	const char *scopes = json_string_value(json_object_get(meta, "scopes"));
	struct login_text *t = &l->v[l->n];
	struct login_values v = *from;
	struct id_token id;
	size_t i;
	int r = 0;

	for (i = 0; i < l->n && !streq(l->v[i].path, f->path); i++)
		;
	if (i == l->n && l->n < LOGINS_MAX) {
		v.expires_ms =
			expires > 0 ? expires : ((int64_t)time(NULL) + UNKNOWN_EXPIRY_S) * 1000;
		v.scopes = scopes ? scopes : v.scopes;
		v.stored = entry->created;
		take_identity(meta, &id, &v);
		*t = (struct login_text) { strdup(f->path), BUF_INIT(LOGIN_FILE_MAX) };
		l->n++;
		r = t->path ? login_file_make(f, &v, &t->text, e)
			    : err_set(e, -ENOMEM, "out of memory");
	}
	if (r == -ENODATA) { /* those of other logins are made all the same */
		say("warning: the file of a login, ~/%s: %s", f->path, e->msg);
		free(t->path);
		buf_done(&t->text);
		l->n--;
		r = 0;
	}
	json_decref(meta);
	return r < 0 ? err_ctx(e, "the file of a login, ~/%s", f->path) : 0;
}

static int add_service(struct logins *l, const struct service *s, const struct store_entry *entry,
		       struct err *e)
{
	struct login_values v = { .scopes = s->file_scopes };
	struct login_file f = { .template = s->file_text };
	size_t i;
	int r = login_file_path(s->file, &f.path, e);

	for (i = 0; i < s->n_oauth; i++)
		if (s->oauth[i].kind == CRED_TOKEN) {
			v.access = s->oauth[i].placeholder2;
			v.refresh = s->oauth[i].placeholder;
		}
	if (r == 0 && !v.access)
		r = err_set(e, -EINVAL, "%s: nothing stands for its tokens", s->name);
	return r == 0 ? add(l, &f, &v, entry, e) : r;
}

static int add_declared(struct logins *l, const struct compose_source *s, const char *id,
			const struct declarations *d, struct err *e)
{
	size_t i;
	int r = 0;

	for (i = 0; i < d->n && r == 0; i++) {
		const struct declared *one = &d->v[i];
		struct login_values v = { .access = one->access,
					  .refresh = one->refresh,
					  .scopes = "" };
		const struct store_entry *entry =
			one->file.path ? login_of(s, id, one->service) : NULL;

		r = entry ? add(l, &one->file, &v, entry, e) : 0;
	}
	return r;
}

int compose_logins(struct ctx *c, const struct compose_source *s, const struct sandbox *b,
		   struct logins *ret, struct err *e)
{
	struct compose_declared d = { 0 };
	size_t i;
	int r = 0;

	for (i = 0; i < s->services.n && r == 0; i++) {
		const struct service *one = &s->services.v[i];
		const struct store_entry *entry = one->file ? login_of(s, b->id, one->name) : NULL;

		r = entry ? add_service(ret, one, entry, e) : 0;
	}
	if (r < 0)
		return r;
	r = compose_declared(c, b->id, &d, e);
	for (i = 0; i < d.n && r == 0; i++)
		r = add_declared(ret, s, b->id, &d.v[i], e);
	compose_declared_done(&d);
	return r;
}
