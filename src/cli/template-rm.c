/* bac template rm and prune, and the limit of the store. */
#include <stdio.h>

#include <jansson.h>

#include "base/text.h"
#include "cli/cutoff.h"
#include "cli/template.h"
#include "image/pull.h"

#define O(kind, field, letter, name, arg, help) \
	{ \
		name, letter, kind, offsetof(struct template_args, field), arg, help \
	}
const struct opt template_rm_opts[TEMPLATE_RM_OPTS] = {
	O(OPT_FLAG, force, 'f', "force", NULL, "do not ask"),
};
const struct opt template_prune_opts[TEMPLATE_PRUNE_OPTS] = {
	O(OPT_FLAG, dry_run, 0, "dry-run", NULL, "show what would be removed"),
	O(OPT_LIST, filter, 0, "filter", "until=AGE",
	  "only what was last used before: a duration, RFC 3339 or Unix seconds"),
	O(OPT_FLAG, force, 'f', "force", NULL, "do not ask"),
	O(OPT_FLAG, json, 0, "json", NULL, "print JSON"),
};

/* ---- rm ---- */

/* A sandbox cannot start without the template that it stands on. */
static int check_unused(struct ctx *c, const struct image_template *t, struct err *e)
{
	_free_ char *first = NULL;
	int users = template_users(c, t->digest, &first, e);

	if (users <= 0)
		return users;
	return err_set(e, -EBUSY, "template %.*s is used by %d %s; remove first: bac rm %s%s",
		       TEMPLATE_DIGITS, t->digest, users, users == 1 ? "sandbox" : "sandboxes",
		       first, users == 1 ? "" : " ...");
}

/* 1: remove it, 0: the user said no, -Exxx. */
static int confirm(const struct image_template *t, struct err *e)
{
	char question[160], size[32];

	(void)snprintf(question, sizeof(question), "Remove template %.60s (%.*s, %s)?",
		       t->tag[0] ? t->tag : "-", TEMPLATE_DIGITS, t->digest,
		       text_from_size(size, sizeof(size), t->size));
	return ask(question, e);
}

/* True if ref is one of several tags: only that one goes. */
static bool is_one_of_several(const struct image_template *t, const char *ref)
{
	char plain[IMAGE_TAG_MAX + 1];
	bool found = false;
	struct err none;
	char **tag;

	if (image_tag_plain(ref, plain, &none) < 0)
		return false;
	for (tag = t->tags; *tag; tag++)
		found |= streq(*tag, plain);
	return found && t->tags[1];
}

static int rm_one(struct ctx *c, const char *ref, const struct template_args *o, struct err *e)
{
	struct image_template t = { 0 };
	int r = image_template_find(c->dirs.cache, ref, &t, e);

	if (r == 0 && is_one_of_several(&t, ref)) {
		r = image_tag_remove(c->dirs.cache, t.digest, ref, e);
		if (r == 0)
			(void)printf("%s (the template stays as %s)\n", ref,
				     streq(t.tags[0], ref) ? t.tags[1] : t.tags[0]);
		image_template_done(&t);
		return r;
	}
	if (r == 0)
		r = check_unused(c, &t, e);
	if (r == 0)
		r = o->force ? 1 : confirm(&t, e);
	if (r == 1) {
		r = image_template_rm(c->dirs.cache, t.digest, e);
		if (r == 0)
			(void)printf("%s\n", ref);
	}
	image_template_done(&t);
	return r;
}

int template_run_rm(void *opt, struct args *args, struct err *e)
{
	struct ctx c;
	size_t i;
	int r = ctx_open(&c, e);

	if (r == 0)
		image_sweep(c.dirs.cache);
	for (i = 0; r == 0 && i < args->n; i++)
		r = rm_one(&c, args->v[i], opt, e);
	ctx_done(&c);
	return r < 0 ? r : flush_out(e);
}

/* ---- what could go ---- */

static bool is_default(const struct image_template *t)
{
	char **tag;

	for (tag = t->tags; *tag; tag++)
		if (streq(*tag, "default"))
			return true;
	return false;
}

/* The least recently used first. */
static int older(const void *a, const void *b)
{
	const struct image_template *x = a, *y = b;

	return x->used != y->used ? (x->used < y->used ? -1 : 1) : strcmp(x->digest, y->digest);
}

static void free_list(struct image_template *v, size_t n)
{
	while (n)
		image_template_done(&v[--n]);
	free(v);
}

/* Templates that no sandbox stands on, without the default one. A heap array. */
static int unused(struct ctx *c, struct image_template **ret, size_t *ret_n, struct err *e)
{
	struct image_template *v;
	size_t n, i, k = 0;
	int r = image_template_ls(c->dirs.cache, &v, &n, e), users;

	for (i = 0; r == 0 && i < n; i++) {
		users = is_default(&v[i]) ? 1 : template_users(c, v[i].digest, NULL, e);
		if (users < 0) {
			while (i < n)
				image_template_done(&v[i++]);
			free_list(v, k);
			return users;
		}
		if (users)
			image_template_done(&v[i]);
		else
			v[k++] = v[i];
	}
	if (r < 0)
		return r;
	if (k)
		qsort(v, k, sizeof(*v), older);
	*ret = v;
	*ret_n = k;
	return 0;
}

/* ---- prune ---- */

static int ask_all(const struct image_template *v, size_t n, struct err *e)
{
	char question[120];

	for (size_t i = 0; i < n; i++)
		(void)fprintf(stderr, "  %s (%.*s)\n", *v[i].tag ? v[i].tag : "-", TEMPLATE_DIGITS,
			      v[i].digest);
	(void)snprintf(question, sizeof(question), "Remove %zu %s?", n,
		       n == 1 ? "template" : "templates");
	return ask(question, e);
}

static int report(const struct template_args *o, const struct image_template *v, size_t n,
		  uint64_t freed, struct err *e)
{
	json_t *list = o->json ? json_array() : NULL;
	char size[32];

	for (size_t i = 0; i < n; i++)
		if (o->json)
			(void)json_array_append_new(list, json_string(v[i].digest));
		else
			(void)printf("%s\n", *v[i].tag ? v[i].tag : v[i].digest);
	if (o->json)
		return print_json(json_pack("{s:o, s:I, s:b}", "templates", list, "freed",
					    (json_int_t)freed, "dry_run", o->dry_run),
				  e);
	if (!o->dry_run)
		(void)printf("Freed %s\n", text_from_size(size, sizeof(size), freed));
	return flush_out(e);
}

/* Those that were not used since go to the front; how many. */
static size_t before(struct image_template *v, size_t n, int64_t cutoff)
{
	size_t i = 0;

	while (i < n && v[i].used < cutoff)
		i++;
	return i;
}

static int prune(struct ctx *c, const struct template_args *o, struct err *e)
{
	uint64_t had, left, layers;
	struct image_template *v = NULL;
	size_t n = 0, old, i;
	int64_t cutoff = 0;
	int r = cutoff_parse(&o->filter, &cutoff, e);

	if (r == 0)
		r = unused(c, &v, &n, e);
	if (r < 0)
		return r;
	old = before(v, n, cutoff);
	if (old && !o->force && !o->dry_run)
		r = ask_all(v, old, e);
	else
		r = 1;
	had = image_store_size(c->dirs.cache);
	for (i = 0; r == 1 && !o->dry_run && i < old; i++)
		if (image_template_rm(c->dirs.cache, v[i].digest, e) < 0)
			r = e->code;
	if (r == 1 && !o->dry_run)
		r = image_template_prune_layers(c->dirs.cache, &layers, e) < 0 ? e->code : 1;
	left = image_store_size(c->dirs.cache);
	if (r == 1)
		r = report(o, v, old, had - MIN(left, had), e);
	free_list(v, n);
	return r;
}

int template_run_prune(void *opt, struct args *args, struct err *e)
{
	struct ctx c;
	int r = ctx_open(&c, e);

	(void)args;
	if (r == 0)
		image_sweep(c.dirs.cache);
	if (r == 0)
		r = prune(&c, opt, e);
	if (r == 0 && !((const struct template_args *)opt)->dry_run)
		image_pull_sweep(c.dirs.cache, 0);
	ctx_done(&c);
	return r;
}

/* ---- the limit ---- */

static int make_room(struct ctx *c, const struct image_template *t, uint64_t max, struct err *e)
{
	struct image_template *v;
	struct err busy;
	size_t n, i;
	int r = unused(c, &v, &n, e);

	if (r < 0)
		return r;
	for (i = 0; i < n && image_store_size(c->dirs.cache) > max; i++)
		if (!streq(v[i].digest, t->digest) &&
		    image_template_rm(c->dirs.cache, v[i].digest, &busy) == 0)
			say("removed template %s (%.*s), which no sandbox uses, for "
			    "template.maxSize",
			    *v[i].tag ? v[i].tag : "-", TEMPLATE_DIGITS, v[i].digest);
	free_list(v, n);
	return 0;
}

int template_fit(struct ctx *c, const struct image_template *t, bool fresh, struct err *e)
{
	char have[32], may[32];
	uint64_t max, size;
	struct err undo;
	int r = setting_number(c->state, "template.maxSize", &max, e);

	if (r < 0 || !max || image_store_size(c->dirs.cache) <= max)
		return r;
	r = make_room(c, t, max, e);
	size = image_store_size(c->dirs.cache);
	if (r < 0 || size <= max)
		return r;
	if (fresh && image_template_rm(c->dirs.cache, t->digest, &undo) < 0)
		say("%s", undo.msg);
	return err_set(e, -EFBIG,
		       "the store of templates would have %s, and the setting template.maxSize is "
		       "%s; see what uses it: bac template ls",
		       text_from_size(have, sizeof(have), size),
		       text_from_size(may, sizeof(may), max));
}
