/* bac kit validate: is it a kit? */
#include <jansson.h>
#include <stdio.h>

#include "cli/cmds.h"
#include "cli/kit.h"

void kit_tell(const struct kit_report *rep)
{
	size_t i;

	for (i = 0; i < rep->n_warnings; i++)
		say("warning: %s", rep->warnings[i]);
	for (i = 0; i < rep->n; i++)
		say("%s", rep->v[i].text);
}

json_t *kit_warnings_json(const struct kit_report *rep)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < rep->n_warnings; i++)
		(void)json_array_append_new(list, json_string(rep->warnings[i]));
	return list;
}

/* What could not even be read has no place in the file. */
static json_t *errors(const struct kit_report *rep, int r, const struct err *e)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < rep->n; i++)
		(void)json_array_append_new(
			list, json_pack("{s:i, s:i, s:s}", "line", (int)rep->v[i].line, "column",
					(int)rep->v[i].column, "message", rep->v[i].text));
	if (r < 0 && !rep->n)
		(void)json_array_append_new(list, json_pack("{s:s}", "message", e->msg));
	return list;
}

static int print_verdict(const struct kit_loaded *l, const char *ref, int r, const struct err *why,
			 struct err *e)
{
	json_t *j =
		json_pack("{s:s, s:b, s:o, s:o}", "ref", ref, "valid", r == 0, "errors",
			  errors(&l->report, r, why), "warnings", kit_warnings_json(&l->report));
	int k;

	if (r == 0 && l->v[0].kit.name)
		(void)json_object_set_new(j, "name", json_string(l->v[0].kit.name));
	k = print_json(j, e);
	return k < 0 ? k : r < 0 ? STATUS_FAILED : 0;
}

int kit_load_one(struct ctx *c, const struct kit_show_args *o, const char *ref,
		 struct kit_loaded *ret, struct err *e)
{
	const struct kit_load_opts opts = {
		.base = ref, .args = &o->args, .args_files = &o->args_files, .single = true
	};

	return kit_load(c, &opts, ret, e);
}

int kit_run_validate(void *opt, struct args *args, struct err *e)
{
	const struct kit_show_args *o = opt;
	struct kit_loaded l = { 0 };
	struct ctx c;
	int r = ctx_open(&c, e);

	if (r < 0) {
		ctx_done(&c);
		return r;
	}
	r = kit_load_one(&c, o, args->v[0], &l, e);
	if (o->json) {
		struct err why = *e;

		r = print_verdict(&l, args->v[0], r, &why, e);
	} else {
		kit_tell(&l.report);
		r = r < 0 && l.report.n ? STATUS_FAILED : r;
	}
	kit_loaded_done(&l);
	ctx_done(&c);
	return r;
}
