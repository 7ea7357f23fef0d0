/* bac kit inspect: what a kit means: its normal form, and what is to be known beside it. */
#include <jansson.h>
#include <stdio.h>

#include "cli/cmds.h"
#include "cli/kit.h"

enum { TEXT_MAX = 4 * 1024 * 1024 };

/* A domain that only a credential opens. */
static int note(void *arg, const char *service, const char *resource)
{
	json_t *list = arg;
	json_t *text = json_sprintf("%s is not on the allow list: approving the credential '%s' "
				    "for it opens it, for HTTPS alone",
				    resource, service);

	return json_array_append_new(list, text) < 0 ? -ENOMEM : 0;
}

static json_t *files(const struct kit_part *p)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < p->source.tree.n; i++) {
		const struct kit_entry *f = &p->source.tree.v[i];

		if (!starts_with(f->path, "files/") || f->kind == KIT_DIR)
			continue;
		(void)json_array_append_new(list,
					    json_pack("{s:s, s:I, s:b, s:s*}", "path", f->path,
						      "size", (json_int_t)f->size, "executable",
						      f->kind == KIT_EXEC, "link", f->link));
	}
	return list;
}

static int print_as_json(const struct kit_loaded *l, json_t *notes, struct err *e)
{
	const struct kit_part *p = &l->v[0];
	struct buf out = BUF_INIT(TEXT_MAX);
	int r = kit_write_json(&p->kit, &out);
	json_t *j = r == 0 ? json_loadb((const char *)buf_data(&out), out.n, 0, NULL) : NULL;

	buf_done(&out);
	if (!j)
		return err_set(e, r < 0 ? r : -EINVAL, "cannot write the kit down");
	(void)json_object_set_new(j, "ref", json_string(p->source.ref));
	(void)json_object_set_new(j, "content", json_string(p->source.tree.digest));
	(void)json_object_set_new(j, "files", files(p));
	(void)json_object_set_new(j, "warnings", kit_warnings_json(&l->report));
	(void)json_object_set(j, "notes", notes);
	return print_json(j, e);
}

/* Comments, so that all of it is YAML. */
static void print_head(const struct kit_loaded *l, json_t *notes)
{
	const struct kit_source *s = &l->v[0].source;
	size_t i;

	(void)printf("# %s\n# content %s\n", s->ref, s->tree.digest);
	for (i = 0; i < s->tree.n; i++) {
		const struct kit_entry *f = &s->tree.v[i];

		if (!starts_with(f->path, "files/") || f->kind == KIT_DIR)
			continue;
		(void)printf("# %s%s%s (%llu bytes)\n", f->path, f->link ? " -> " : "",
			     f->link ? f->link : "", (unsigned long long)f->size);
	}
	for (i = 0; i < l->report.n_warnings; i++)
		(void)printf("# warning: %s\n", l->report.warnings[i]);
	for (i = 0; i < json_array_size(notes); i++)
		(void)printf("# note: %s\n", json_string_value(json_array_get(notes, i)));
}

static int print_text(const struct kit_loaded *l, json_t *notes, struct err *e)
{
	struct buf out = BUF_INIT(TEXT_MAX);
	int r = kit_write(&l->v[0].kit, &out);

	if (r == 0 && buf_str(&out)) {
		print_head(l, notes);
		(void)printf("%s", buf_str(&out));
	}
	buf_done(&out);
	return r < 0 ? err_errno(e, r, "cannot write the kit down") : flush_out(e);
}

int kit_run_inspect(void *opt, struct args *args, struct err *e)
{
	const struct kit_show_args *o = opt;
	struct kit_loaded l = { 0 };
	json_t *notes = json_array();
	struct ctx c;
	int r = ctx_open(&c, e);

	if (r == 0)
		r = kit_load_one(&c, o, args->v[0], &l, e);
	if (r == 0 && kit_unlisted(&l.v[0].kit, note, notes) < 0)
		r = err_set(e, -ENOMEM, "out of memory");
	if (r == 0)
		r = o->json ? print_as_json(&l, notes, e) : print_text(&l, notes, e);
	else if (l.report.n) {
		kit_tell(&l.report);
		r = STATUS_FAILED;
	}
	json_decref(notes);
	kit_loaded_done(&l);
	ctx_done(&c);
	return r;
}
