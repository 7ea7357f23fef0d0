#include "cli/kit-box.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fd.h"

enum { KIT_JSON_MAX = 1024 * 1024 };

void kit_box_done(struct kit_box *k)
{
	kit_done(&k->kit);
	while (k->n) {
		struct box_kit *p = &k->v[--k->n];

		kit_done(&p->kit);
		free(p->ref);
		free(p->dir);
	}
	free(k->v);
	while (k->env.n)
		free(k->env.v[--k->env.n]);
	free(k->env.v);
	*k = (struct kit_box) { 0 };
}

static struct box_kit *new_part(struct kit_box *k, struct err *e)
{
	struct box_kit *v = NULL;

	if (k->n == KIT_BOX_MAX) {
		(void)err_set(e, -E2BIG, "a sandbox has %d kits at most", KIT_BOX_MAX);
		return NULL;
	}
	v = reallocarray(k->v, k->n + 1, sizeof(*v));
	if (!v) {
		(void)err_errno(e, -ENOMEM, "cannot read a kit");
		return NULL;
	}
	k->v = v;
	v[k->n] = (struct box_kit) { 0 };
	return &v[k->n++];
}

/* ---- parsing and composing ---- */
static void say_report(const struct kit_report *rep, bool failed)
{
	for (size_t i = 0; i < rep->n_warnings && !failed; i++)
		say("warning: %s", rep->warnings[i]);
	/* the first is in the error */
	for (size_t i = 1; i < rep->n; i++)
		say("%s", rep->v[i].text);
}

static int parse(struct box_kit *p, struct kit_args *args, struct err *e)
{
	_close_ int dir = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct kit_report rep = { 0 };
	_free_ char *text = NULL;
	size_t n = 0;
	int r = dir < 0 ? err_errno(e, -errno, "cannot open the kit %s", p->dir)
			: kit_tree_read(dir, "spec.yaml", KIT_SPEC_MAX, &text, &n, e);

	if (r == 0)
		r = kit_parse("spec.yaml", text, n, args, &p->kit, &rep, e);
	report_done(&rep);
	return r < 0 ? err_ctx(e, "%.200s", p->ref) : 0;
}

static int compose(struct kit_box *k, bool quiet, struct err *e)
{
	const struct kit *parents[KIT_EXTENDS_MAX], *mixins[KIT_BOX_MAX];
	struct kit_report rep = { 0 };
	size_t n_parents = 0, n_mixins = 0;
	int r;

	for (size_t i = k->base; i-- > 0 && n_parents < KIT_EXTENDS_MAX;)
		parents[n_parents++] = &k->v[i].kit;
	for (size_t i = k->base + 1; i < k->n; i++)
		mixins[n_mixins++] = &k->v[i].kit;
	kit_done(&k->kit);
	k->kit = (struct kit) { 0 };
	r = kit_compose(&k->v[k->base].kit, parents, n_parents, mixins, n_mixins, &k->kit, &rep, e);
	if (!quiet)
		say_report(&rep, r < 0);
	report_done(&rep);
	return r;
}

/* ---- by reference ---- */
static int take_part(struct kit_box *k, struct kit_part *from, struct err *e)
{
	struct box_kit *p = new_part(k, e);

	if (!p)
		return e->code;
	p->kit = from->kit;
	from->kit = (struct kit) { 0 };
	p->mixin = from->mixin;
	p->builtin = from->source.builtin;
	p->ref = strdup(from->source.ref);
	p->dir = strdup(from->source.dir);
	(void)snprintf(p->digest, sizeof(p->digest), "%s", from->source.tree.digest);
	return p->ref && p->dir ? 0 : err_errno(e, -ENOMEM, "cannot read a kit");
}

static int load(struct ctx *c, const struct kit_load_opts *o, struct kit_box *k,
		struct kit_loaded *l, struct err *e)
{
	int r = kit_load(c, o, l, e);

	say_report(&l->report, r < 0);
	for (size_t i = 0; i < l->n && r == 0; i++)
		r = take_part(k, &l->v[i], e);
	return r;
}

int kit_box_find(struct ctx *c, const struct kit_load_opts *o, struct kit_box *ret, struct err *e)
{
	struct kit_loaded l = { 0 };
	int r = load(c, o, ret, &l, e);

	if (r == 0) {
		ret->base = l.base;
		ret->kit = l.kit;
		l.kit = (struct kit) { 0 };
	}
	kit_loaded_done(&l);
	return r;
}

int kit_box_add(struct ctx *c, struct kit_box *k, const struct kit_load_opts *o, struct err *e)
{
	struct kit_loaded l = { 0 };
	int r = load(c, o, k, &l, e);

	kit_loaded_done(&l);
	if (r < 0)
		return r;
	k->v[k->n - 1].mixin = k->v[k->n - 1].kit.kind == KIT_MIXIN;
	if (!k->v[k->n - 1].mixin)
		return err_set(e, -EINVAL, "the kit '%.64s' is not a mixin",
			       k->v[k->n - 1].kit.name);
	return compose(k, false, e);
}

/* ---- kit.json ---- */
static const char *const folders[] = { "kit.d", "kit.e" };

static json_t *read_json(struct ctx *c, const char *id, int *ret, struct err *e)
{
	_free_ char *text = NULL;
	char path[STATE_ID_MAX + 16];
	json_t *j = NULL;
	size_t n;

	(void)snprintf(path, sizeof(path), "%s/kit.json", id);
	*ret = fd_read_file(state_sandboxes_fd(c->state), path, KIT_JSON_MAX, &text, &n);
	if (*ret == -ENOENT) {
		*ret = 1;
	} else if (*ret < 0) {
		*ret = err_errno(e, *ret, "cannot read %s", path);
	} else {
		j = json_loadb(text, n, 0, NULL);
		*ret = j ? 0 : err_set(e, -EBADMSG, "%s is damaged", path);
	}
	return j;
}

/* ---- keeping ---- */
/* ${{ kit.args.X }} in a file of files/. What is no text stays as it is. */
static int fill_in(int dir, const char *path, mode_t mode, const struct kit_args *args,
		   struct err *e)
{
	struct buf out = BUF_INIT(KIT_TREE_BYTES_MAX);
	_free_ char *text = NULL;
	size_t n;
	int r = kit_tree_read(dir, path, KIT_TREE_BYTES_MAX, &text, &n, e);

	if (r < 0 || !memmem(text, n, "${{", 3) || memchr(text, '\0', n))
		return r;
	r = kit_args_apply(args, text, n, &out, e);
	if (r < 0)
		r = err_ctx(e, "%.200s", path);
	else if (out.n != n || memcmp(buf_data(&out), text, n) != 0)
		r = fd_replace_file(dir, path, mode, buf_data(&out), out.n);
	buf_done(&out);
	return r;
}

static int keep_part(int all, const struct box_kit *p, const char *name, struct err *e)
{
	_close_ int src = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), to = -1;
	struct kit_tree t = { 0 };
	int r;

	if (src < 0 || mkdirat(all, name, 0700) < 0)
		return err_errno(e, -errno, "cannot keep the kit '%s'", p->kit.name);
	to = openat(all, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = to < 0 ? err_errno(e, -errno, "cannot keep the kit '%s'", p->kit.name)
		   : kit_tree_take(src, to, &t, e);
	for (size_t i = 0; r == 0 && i < t.n; i++) {
		const struct kit_entry *one = &t.v[i];

		if (starts_with(one->path, "files/") &&
		    (one->kind == KIT_FILE || one->kind == KIT_EXEC))
			r = fill_in(to, one->path, one->kind == KIT_EXEC ? 0755 : 0644,
				    &p->kit.args, e);
	}
	kit_tree_done(&t);
	return r < 0 ? err_ctx(e, "the kit '%s'", p->kit.name) : 0;
}

static json_t *part_json(const struct box_kit *p, const char *dir)
{
	json_t *args = json_array();

	for (size_t i = 0; i < p->kit.args.n; i++)
		if (p->kit.args.v[i].value)
			(void)json_array_append_new(args, json_sprintf("%s.%s=%s", p->kit.name,
								       p->kit.args.v[i].name,
								       p->kit.args.v[i].value));
	return json_pack("{s:s, s:s, s:b, s:s, s:s, s:b, s:o}", "name", p->kit.name, "dir", dir,
			 "mixin", p->mixin, "ref", p->ref, "digest", p->digest, "builtin",
			 p->builtin, "args", args);
}

static int write_json(int box, json_t *parts, const char *folder, const struct kit_box *k,
		      struct err *e)
{
	json_t *env = json_array(), *j;
	_free_ char *text = NULL;
	int r;

	for (size_t i = 0; i < k->env.n; i++)
		(void)json_array_append_new(env, json_string(k->env.v[i]));
	j = json_pack("{s:i, s:s, s:i, s:o, s:o}", "version", 1, "folder", folder, "base",
		      (int)k->base, "kits", parts, "env", env);
	text = j ? json_dumps(j, JSON_INDENT(1)) : NULL;
	json_decref(j);
	r = text ? fd_replace_file(box, "kit.json", 0600, text, strlen(text)) : -ENOMEM;
	return r < 0 ? err_errno(e, r, "cannot keep the kits") : 0;
}

static int keep_parts(int box, const char *folder, json_t *parts, const struct kit_box *k,
		      struct err *e)
{
	_close_ int all = -1;
	int r = 0;

	(void)dirs_remove(box, folder);
	if (mkdirat(box, folder, 0700) == 0)
		all = openat(box, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (all < 0)
		return err_errno(e, -errno, "cannot keep the kits");
	for (size_t i = 0; r == 0 && i < k->n; i++) {
		char name[24];

		(void)snprintf(name, sizeof(name), "%02zu", i);
		r = keep_part(all, &k->v[i], name, e);
		(void)json_array_append_new(parts, part_json(&k->v[i], name));
	}
	return r;
}

/* What is kept may be what is copied: the other folder takes it, and is the one that counts once kit.json says so. */
int kit_box_keep(struct ctx *c, const char *id, const struct kit_box *k, struct err *e)
{
	_close_ int box =
		openat(state_sandboxes_fd(c->state), id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err none = { 0 };
	int r, was;
	json_t *parts = json_array(), *j = read_json(c, id, &was, &none);
	bool first = !streq(json_string_value(json_object_get(j, "folder")), folders[0]);

	json_decref(j);
	r = box < 0 ? err_errno(e, -errno, "cannot keep the kits")
		    : keep_parts(box, folders[!first], parts, k, e);
	if (r == 0)
		r = write_json(box, json_incref(parts), folders[!first], k, e);
	if (r == 0)
		(void)dirs_remove(box, folders[first]);
	json_decref(parts);
	return r;
}

/* ---- what is kept ---- */
static int load_part(struct kit_box *k, const char *folder, const json_t *j, struct err *e)
{
	const char *dir, *ref, *digest;
	struct box_kit *p = new_part(k, e);
	struct kit_args args = { 0 };
	json_t *list, *one;
	int builtin, mixin, r = 0;
	size_t i;

	if (!p)
		return e->code;
	if (json_unpack((json_t *)j, "{s:s, s:b, s:s, s:s, s:b, s:o}", "dir", &dir, "mixin", &mixin,
			"ref", &ref, "digest", &digest, "builtin", &builtin, "args", &list) < 0 ||
	    strchr(dir, '/'))
		return err_set(e, -EBADMSG, "kit.json is damaged");
	p->ref = strdup(ref);
	if (!p->ref || asprintf(&p->dir, "%s/%s", folder, dir) < 0)
		return err_errno(e, -ENOMEM, "cannot read a kit");
	p->mixin = mixin;
	p->builtin = builtin;
	(void)snprintf(p->digest, sizeof(p->digest), "%s", digest);
	json_array_foreach(list, i, one)
	{
		if (r == 0 && json_is_string(one))
			r = kit_args_add(&args, json_string_value(one), e);
	}
	if (r == 0)
		r = parse(p, &args, e);
	kit_args_done(&args);
	return r;
}

static int load_env(struct kit_box *k, const json_t *list, struct err *e)
{
	const json_t *one;
	size_t i;

	k->env.v = calloc(json_array_size(list) + 1, sizeof(*k->env.v));
	if (!k->env.v)
		return err_errno(e, -ENOMEM, "cannot read the kits");
	json_array_foreach(list, i, one)
	{
		char *s = json_is_string(one) ? strdup(json_string_value(one)) : NULL;

		if (!s)
			return err_set(e, -EBADMSG, "kit.json is damaged");
		k->env.v[k->env.n++] = s;
	}
	return 0;
}

int kit_box_load(struct ctx *c, const char *id, struct kit_box *ret, struct err *e)
{
	_free_ char *box = state_dir(c->state, id), *folder = NULL;
	json_t *j, *one;
	size_t i;
	int r;

	*ret = (struct kit_box) { 0 };
	j = read_json(c, id, &r, e);
	if (r != 0)
		return r;
	if (!box || asprintf(&folder, "%s/%s", box,
			     streq(json_string_value(json_object_get(j, "folder")), folders[1])
				     ? folders[1]
				     : folders[0]) < 0)
		r = err_errno(e, -ENOMEM, "cannot read the kits");
	json_array_foreach(json_object_get(j, "kits"), i, one)
	{
		if (r == 0)
			r = load_part(ret, folder, one, e);
	}
	ret->base = (size_t)json_integer_value(json_object_get(j, "base"));
	if (r == 0 && ret->n && ret->base >= ret->n)
		r = err_set(e, -EBADMSG, "kit.json is damaged");
	if (r == 0)
		r = load_env(ret, json_object_get(j, "env"), e);
	json_decref(j);
	if (r == 0)
		r = ret->n ? compose(ret, true, e) : 1;
	return r < 0 ? err_ctx(e, "the kits of this sandbox") : r;
}

char *kit_box_ref(struct ctx *c, const char *id)
{
	struct err none = { 0 };
	char *ref = NULL;
	int r;
	json_t *j = read_json(c, id, &r, &none), *first;

	first = json_array_get(json_object_get(j, "kits"),
			       (size_t)json_integer_value(json_object_get(j, "base")));
	if (json_is_string(json_object_get(first, "ref")))
		ref = strdup(json_string_value(json_object_get(first, "ref")));
	json_decref(j);
	return ref;
}
