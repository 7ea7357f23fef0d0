/* bac template load: images from files. */
#include <stdio.h>

#include <jansson.h>

#include "base/text.h"
#include "cli/progress.h"
#include "cli/template-build.h"
#include "cli/template.h"

#define O(kind, field, letter, name, arg, help) \
	{ \
		name, letter, kind, offsetof(struct template_args, field), arg, help \
	}
const struct opt template_load_opts[TEMPLATE_LOAD_OPTS] = {
	O(OPT_FLAG, json, 0, "json", NULL, "print JSON"),
	O(OPT_FLAG, quiet, 'q', "quiet", NULL, "show no progress, print digests only"),
	O(OPT_STR, tag, 0, "tag", "TAG", "a name for the image, beside those it brings"),
};

static int show(const struct template_args *o, const struct image_template *v, size_t n,
		struct err *e)
{
	json_t *list = o->json ? json_array() : NULL;
	char size[32];

	for (size_t i = 0; i < n; i++)
		if (o->json)
			(void)json_array_append_new(list, template_json(&v[i]));
		else if (o->quiet)
			(void)printf("%s\n", v[i].digest);
		else
			(void)printf("Loaded %s (%.*s, %s)\n",
				     *v[i].tag ? v[i].tag : "an image without a tag",
				     TEMPLATE_DIGITS, v[i].digest,
				     text_from_size(size, sizeof(size), v[i].size));
	return o->json ? print_json(json_pack("{s:o}", "templates", list), e) : flush_out(e);
}

/* Was it here before this load began? */
static bool is_among(const struct image_template *v, size_t n, const char *digest)
{
	for (size_t i = 0; i < n; i++)
		if (streq(v[i].digest, digest))
			return true;
	return false;
}

static void free_all(struct image_template *v, size_t n)
{
	while (n)
		image_template_done(&v[--n]);
	free(v);
}

static int load(struct ctx *c, const struct template_args *o, const char *path, struct err *e)
{
	struct image_template *v = NULL, *before = NULL;
	struct template_build b;
	struct progress progress;
	size_t n = 0, n_before = 0;
	int r;

	r = image_template_ls(c->dirs.cache, &before, &n_before, e);
	if (r == 0)
		r = template_build_begin(c, &progress.p, &b, e);
	if (r < 0) {
		free_all(before, n_before);
		return r;
	}
	progress_begin(&progress, o->quiet);
	r = image_load(&b.b, path, o->tag, &v, &n, e);
	progress_end(&progress);
	template_build_done(&b);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = template_fit(c, &v[i], !is_among(before, n_before, v[i].digest), e);
	if (r == 0)
		r = show(o, v, n, e);
	free_all(v, n);
	free_all(before, n_before);
	if (r == -EINTR && progress_signal()) {
		say("%s", e->msg);
		return progress_signal();
	}
	return r;
}

int template_run_load(void *opt, struct args *args, struct err *e)
{
	struct ctx c;
	int r = ctx_open(&c, e);

	if (r == 0)
		r = load(&c, opt, args->v[0], e);
	ctx_done(&c);
	return r < 0 ? err_ctx(e, "cannot load") : r;
}
