/* A template out of layers that are in the cache. */
#include "image/make.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "image/layer.h"
#include "io/fd.h"

/* Changes when the same image would make another template. */
#define FORMAT "bac image 1"

static int digest_of(const struct image_source *s, char digest[IMAGE_DIGEST_MAX + 1])
{
	struct image_digest d;
	size_t i;

	image_digest_init(&d);
	image_digest_text(&d, FORMAT);
	image_digest_text(&d, s->config_digest);
	for (i = 0; i < s->config->n; i++)
		image_digest_text(&d, s->config->diffs[i]);
	return image_digest_end(&d, digest);
}

/* ---- template.json ---- */

static json_t *list_json(const char *const *v)
{
	json_t *list = json_array();

	for (; list && v && *v; v++)
		(void)json_array_append_new(list, json_string(*v) ?: json_string("?"));
	return list;
}

#define LIST(v) list_json((const char *const *)(v))

static json_t *config_json(const struct image_config *c)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:s, s:s, s:s}", "env", LIST(c->env), "entrypoint",
			 LIST(c->entrypoint), "cmd", LIST(c->cmd), "labels", LIST(c->labels),
			 "user", c->user, "workdir", c->workdir, "arch", c->arch);
}

static json_t *layers_json(const struct oci_config *c)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < c->n; i++)
		(void)json_array_append_new(list, json_string(c->diffs[i]));
	return list;
}

static json_t *template_json(const struct image_source *s, const char *digest)
{
	const struct image_config *c = &s->config->config;
	json_t *j = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:I}", "version", 1, "inputs",
			      digest, "tag", "", "kernel", "", "source", "image", "user", "agent",
			      "workdir", *c->workdir ? c->workdir : "/home/agent", "created",
			      (json_int_t)time(NULL));

	if (!j)
		return NULL;
	(void)json_object_set_new(j, "tags", json_array());
	(void)json_object_set_new(j, "layers", layers_json(s->config));
	(void)json_object_set_new(j, "config", config_json(c));
	if (s->reference)
		(void)json_object_set_new(j, "reference", json_string(s->reference));
	if (s->manifest)
		(void)json_object_set_new(j, "manifest", json_string(s->manifest));
	return j;
}

/* ---- making ---- */

/* A directory to make it in. */
static int room(struct image_work *w, struct err *e)
{
	int r = w->tmp[0] ? 0 : image_store_tmp(w->dir, w->tmp, e);

	if (r < 0)
		w->tmp[0] = '\0';
	return r;
}

static int merge(struct image_work *w, const struct image_source *s, struct err *e)
{
	_free_ const char **diffs = calloc(s->config->n + 1, sizeof(*diffs));
	char path[IMAGE_TMP_MAX + 32];
	_close_ int out = -1;
	int r;

	if (!diffs)
		return err_errno(e, -ENOMEM, "cannot make the template");
	for (size_t i = 0; i < s->config->n; i++)
		diffs[i] = s->config->diffs[i];
	(void)snprintf(path, sizeof(path), "%s/root.erofs", w->tmp);
	out = openat(w->dir, path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (out < 0)
		return err_errno(e, -errno, "cannot make the template");
	r = image_layer_merge(w->b, diffs, s->config->n, out, e);
	if (r == 0 && fchmod(out, 0400) < 0)
		r = err_errno(e, -errno, "cannot make the template");
	return r;
}

static int keep(struct image_work *w, const struct image_source *s, const char *digest,
		struct err *e)
{
	int r = merge(w, s, e);

	if (r == 0)
		r = image_store_json(w->dir, w->tmp, "template.json", template_json(s, digest), e);
	if (r == 0)
		r = image_work_check(w, e);
	if (r < 0)
		return r;
	r = image_store_commit(w->dir, w->tmp, w->dir, digest, "template.json", e);
	if (r == 0)
		w->tmp[0] = '\0'; /* it has its name now */
	return r;
}

/* What is known of one that is there, where it was not. */
static int note_origin(struct image_work *w, const struct image_source *s, const char *digest,
		       struct err *e)
{
	json_t *j = image_store_meta(w->dir, digest, "template.json");

	if (!j)
		return 0;
	if (s->reference)
		(void)json_object_set_new(j, "reference", json_string(s->reference));
	if (s->manifest)
		(void)json_object_set_new(j, "manifest", json_string(s->manifest));
	return image_store_json(w->dir, digest, "template.json", j, e);
}

int image_image_make(struct image_work *w, const struct image_source *s, struct image_template *ret,
		     struct err *e)
{
	char digest[IMAGE_DIGEST_MAX + 1];
	json_t *there;
	size_t n;
	int r = digest_of(s, digest);

	if (r < 0)
		return err_errno(e, r, "cannot compute a digest");
	there = image_store_meta(w->dir, digest, "template.json");
	json_decref(there);
	if (!there)
		r = room(w, e);
	if (r == 0 && !there)
		r = keep(w, s, digest, e);
	else if (r == 0)
		r = note_origin(w, s, digest, e);
	for (n = 0; s->tags && s->tags[n]; n++)
		;
	/* the first in the end, since it is to stand first */
	while (r == 0 && n)
		r = image_tag_give(w->b->cache, w->dir, digest, s->tags[--n], e);
	return r == 0 ? image_template_find(w->b->cache, digest, ret, e) : r;
}
