/* bac template ls and inspect. */
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include <jansson.h>

#include "base/text.h"
#include "cli/template.h"

#define O(kind, field, letter, name, arg, help) \
	{ \
		name, letter, kind, offsetof(struct template_args, field), arg, help \
	}
const struct opt template_ls_opts[TEMPLATE_LS_OPTS] = {
	O(OPT_FLAG, json, 0, "json", NULL, "print JSON"),
	O(OPT_FLAG, quiet, 'q', "quiet", NULL, "print names only"),
};
const struct opt template_inspect_opts[TEMPLATE_INSPECT_OPTS] = {
	O(OPT_FLAG, json, 0, "json", NULL, "print JSON"),
};

static json_t *texts(char *const *v)
{
	json_t *list = json_array();

	for (; v && *v; v++)
		(void)json_array_append_new(list, json_string(*v) ?: json_null());
	return list;
}

static json_t *text_or_null(const char *s)
{
	return s ? json_string(s) : json_null();
}

json_t *template_json(const struct image_template *t)
{
	char created[32], used[32];

	return json_pack("{s:s, s:o, s:s, s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "tag",
			 t->tag, "tags", texts(t->tags), "digest", t->digest, "size",
			 (json_int_t)t->size, "created_at",
			 utc(created, sizeof(created), t->created), "used_at",
			 utc(used, sizeof(used), t->used), "source", t->source, "kernel", t->kernel,
			 "user", t->user, "workdir", t->workdir, "reference",
			 text_or_null(t->reference), "manifest", text_or_null(t->manifest));
}

/* ---- who uses what ---- */

/* How many of a list of sandboxes. */
static size_t count(const struct sandbox *v, size_t n, const char *digest)
{
	size_t i, users = 0;

	for (i = 0; i < n; i++)
		users += streq(v[i].tmpl, digest);
	return users;
}

struct lists {
	struct image_template *v;
	size_t n;
	struct sandbox *boxes;
	size_t n_boxes;
};

static void lists_done(struct lists *l)
{
	while (l->n)
		image_template_done(&l->v[--l->n]);
	while (l->n_boxes)
		sandbox_done(&l->boxes[--l->n_boxes]);
	free(l->v);
	free(l->boxes);
}

static int lists_get(struct ctx *c, struct lists *l, struct err *e)
{
	int r;

	*l = (struct lists) { 0 };
	image_sweep(c->dirs.cache);
	r = image_template_ls(c->dirs.cache, &l->v, &l->n, e);
	if (r == 0)
		r = state_list(c->state, &l->boxes, &l->n_boxes, e);
	return r;
}

int template_users(struct ctx *c, const char *digest, char **ret_first, struct err *e)
{
	struct sandbox *v;
	size_t n, i, users = 0;
	int r = state_list(c->state, &v, &n, e);

	if (r < 0)
		return r;
	for (i = 0; i < n; i++) {
		if (streq(v[i].tmpl, digest) && users++ == 0 && ret_first)
			*ret_first = take_ptr(v[i].name);
		sandbox_done(&v[i]);
	}
	free(v);
	return (int)users;
}

/* ---- ls ---- */

static int ls_json(const struct lists *l, struct err *e)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < l->n; i++) {
		json_t *j = template_json(&l->v[i]);

		(void)json_object_set_new(
			j, "used_by",
			json_integer((json_int_t)count(l->boxes, l->n_boxes, l->v[i].digest)));
		(void)json_array_append_new(list, j);
	}
	return print_json(json_pack("{s:o}", "templates", list), e);
}

static void ls_row(const struct lists *l, const struct image_template *t, const char *tag, int wide)
{
	int64_t s = MAX(time(NULL) - t->created, 0);
	char size[32], age[64], users[32];
	size_t n = count(l->boxes, l->n_boxes, t->digest);

	(void)snprintf(users, sizeof(users), "%zu %s", n, n == 1 ? "sandbox" : "sandboxes");
	(void)printf("%-*s   %.*s   %-9s   %-12s   %s ago\n", wide, tag, TEMPLATE_DIGITS, t->digest,
		     text_from_size(size, sizeof(size), t->size), n ? users : "-",
		     text_from_ms(age, sizeof(age), (uint64_t)s * 1000));
}

static int ls_table(const struct lists *l, struct err *e)
{
	int wide = (int)strlen("TAG");
	char **tag;
	size_t i;

	if (!l->n) {
		(void)printf("No templates found. Make one with: bac template build\n");
		return flush_out(e);
	}
	for (i = 0; i < l->n; i++)
		for (tag = l->v[i].tags; *tag; tag++)
			wide = MAX(wide, (int)strlen(*tag));
	(void)printf("%-*s   %-*s   %-9s   %-12s   %s\n", wide, "TAG", TEMPLATE_DIGITS, "DIGEST",
		     "SIZE", "USED BY", "CREATED");
	for (i = 0; i < l->n; i++) {
		if (!l->v[i].tags[0])
			ls_row(l, &l->v[i], "-", wide);
		for (tag = l->v[i].tags; *tag; tag++)
			ls_row(l, &l->v[i], *tag, wide);
	}
	return flush_out(e);
}

static int ls_names(const struct lists *l, struct err *e)
{
	char **tag;
	size_t i;

	for (i = 0; i < l->n; i++) {
		if (!l->v[i].tags[0])
			(void)printf("%.*s\n", TEMPLATE_DIGITS, l->v[i].digest);
		for (tag = l->v[i].tags; *tag; tag++)
			(void)printf("%s\n", *tag);
	}
	return flush_out(e);
}

int template_run_ls(void *opt, struct args *args, struct err *e)
{
	const struct template_args *o = opt;
	struct lists l = { 0 };
	struct ctx c;
	int r = ctx_open(&c, e);

	(void)args;
	if (r == 0)
		r = lists_get(&c, &l, e);
	if (r == 0 && o->json)
		r = ls_json(&l, e);
	else if (r == 0)
		r = o->quiet ? ls_names(&l, e) : ls_table(&l, e);
	lists_done(&l);
	ctx_done(&c);
	return r;
}

/* ---- inspect ---- */

static uint64_t bytes_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

static bool has_layer(const struct image_template *t, const char *diff)
{
	char **p;

	for (p = t->layers; p && *p; p++)
		if (streq(*p, diff))
			return true;
	return false;
}

static const char *name_of(const struct image_template *t, char dst[TEMPLATE_DIGITS + 1])
{
	if (t->tags[0])
		return t->tags[0];
	(void)snprintf(dst, TEMPLATE_DIGITS + 1, "%.*s", TEMPLATE_DIGITS, t->digest);
	return dst;
}

static json_t *layers_json(const struct lists *l, const struct image_template *t)
{
	json_t *list = json_array(), *others;
	char digits[TEMPLATE_DIGITS + 1];
	size_t i, k;

	for (i = 0; t->layers && t->layers[i]; i++) {
		others = json_array();
		for (k = 0; k < l->n; k++)
			if (!streq(l->v[k].digest, t->digest) && has_layer(&l->v[k], t->layers[i]))
				(void)json_array_append_new(others,
							    json_string(name_of(&l->v[k], digits)));
		(void)json_array_append_new(
			list, json_pack("{s:s, s:I, s:o}", "diff_id", t->layers[i], "size",
					(json_int_t)bytes_of(t->blobs[i]), "shared_with", others));
	}
	return list;
}

static json_t *config_json(const struct image_config *x)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:s, s:s, s:s}", "env", texts(x->env), "entrypoint",
			 texts(x->entrypoint), "cmd", texts(x->cmd), "labels", texts(x->labels),
			 "user", x->user, "workdir", x->workdir, "arch", x->arch);
}

static json_t *users_json(const struct lists *l, const struct image_template *t)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < l->n_boxes; i++)
		if (streq(l->boxes[i].tmpl, t->digest))
			(void)json_array_append_new(list, json_string(l->boxes[i].name));
	return list;
}

static json_t *all_json(const struct lists *l, const struct image_template *t)
{
	json_t *j = template_json(t);

	(void)json_object_set_new(j, "layers", layers_json(l, t));
	(void)json_object_set_new(j, "config", t->layers ? config_json(&t->config) : json_null());
	(void)json_object_set_new(j, "used_by", users_json(l, t));
	return j;
}

static void line(const char *what, const char *text)
{
	if (text && *text)
		(void)printf("%-12s%s\n", what, text);
}

static void list_lines(const char *what, char *const *v)
{
	for (; v && *v; v++, what = "")
		(void)printf("%-12s%s\n", what, *v);
}

/* A command as a shell would take it, words with blanks in quotes. */
static void words(const char *what, char *const *v)
{
	if (!v || !*v)
		return;
	(void)printf("%-12s", what);
	for (; *v; v++)
		(void)printf(strpbrk(*v, " \t\n\"'") || !**v ? "'%s'%s" : "%s%s", *v,
			     v[1] ? " " : "\n");
}

static void show_layers(const struct lists *l, const struct image_template *t)
{
	char size[32], digits[TEMPLATE_DIGITS + 1];
	size_t i, k;

	for (i = 0; t->layers && t->layers[i]; i++) {
		const char *with = "   shared with ";

		(void)printf("%-12s%.*s   %-9s", i ? "" : "Layers:", TEMPLATE_DIGITS, t->layers[i],
			     text_from_size(size, sizeof(size), bytes_of(t->blobs[i])));
		for (k = 0; k < l->n; k++)
			if (!streq(l->v[k].digest, t->digest) &&
			    has_layer(&l->v[k], t->layers[i])) {
				(void)printf("%s%s", with, name_of(&l->v[k], digits));
				with = ", ";
			}
		(void)printf("\n");
	}
}

static void show_users(const struct lists *l, const struct image_template *t)
{
	const char *what = "Used by:";
	size_t i;

	for (i = 0; i < l->n_boxes; i++)
		if (streq(l->boxes[i].tmpl, t->digest)) {
			(void)printf("%-12s%s\n", what, l->boxes[i].name);
			what = "";
		}
}

static int show(const struct lists *l, const struct image_template *t, struct err *e)
{
	char size[32], created[32], used[32];

	list_lines("Tags:", t->tags);
	line("Digest:", t->digest);
	line("Reference:", t->reference);
	line("Manifest:", t->manifest);
	line("Source:", t->source);
	line("Kernel:", t->kernel);
	line("Size:", text_from_size(size, sizeof(size), t->size));
	line("Created:", utc(created, sizeof(created), t->created));
	line("Used:", utc(used, sizeof(used), t->used));
	show_layers(l, t);
	words("Entrypoint:", t->config.entrypoint);
	words("Cmd:", t->config.cmd);
	line("User:", t->config.user);
	line("Workdir:", t->workdir);
	list_lines("Env:", t->config.env);
	list_lines("Labels:", t->config.labels);
	show_users(l, t);
	return flush_out(e);
}

static int inspect(struct ctx *c, const struct template_args *o, const char *ref, struct err *e)
{
	struct image_template t = { 0 };
	struct lists l = { 0 };
	int r = image_template_find(c->dirs.cache, ref, &t, e);

	if (r == 0)
		r = lists_get(c, &l, e);
	if (r == 0)
		r = o->json ? print_json(all_json(&l, &t), e) : show(&l, &t, e);
	lists_done(&l);
	image_template_done(&t);
	return r;
}

int template_run_inspect(void *opt, struct args *args, struct err *e)
{
	struct ctx c;
	int r = ctx_open(&c, e);

	if (r == 0)
		r = inspect(&c, opt, args->v[0], e);
	ctx_done(&c);
	return r;
}
