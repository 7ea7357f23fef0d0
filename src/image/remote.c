/* What a registry says about an image. */
#include "image/remote.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "image/ref.h"

enum { INDEX_MAX = 1024, LAYER_SIZE_MAX_GIB = 64 };

#define OCI    "application/vnd.oci.image."
#define DOCKER "application/vnd.docker."

/* ---- platforms ---- */

/* Go's names for the kernel's. */
static const struct {
	const char *machine, *arch;
} machines[] = { { "x86_64", "amd64" }, { "aarch64", "arm64" } };

static bool word_ok(const char *s, size_t n, size_t max)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!(s[i] >= 'a' && s[i] <= 'z') && !(s[i] >= '0' && s[i] <= '9'))
			return false;
	return n > 0 && n < max;
}

int image_platform_parse(const char *text, struct image_platform *ret, struct err *e)
{
	struct image_platform p = { "linux", "amd64", "" };
	char *parts[] = { p.os, p.arch, p.variant };
	struct utsname u = { 0 };
	size_t i;

	for (i = 0; !text && uname(&u) == 0 && i < ARRAY_SIZE(machines); i++)
		if (streq(u.machine, machines[i].machine))
			(void)snprintf(p.arch, sizeof(p.arch), "%s", machines[i].arch);
	for (i = 0; text && i < ARRAY_SIZE(parts); i++) {
		size_t n = strcspn(text, "/");
		const char *next = text[n] ? text + n + 1 : NULL;

		if (!word_ok(text, n, sizeof(p.os)) || (!next && i == 0) || (next && i == 2))
			return err_set(e, -EINVAL,
				       "--platform: OS/ARCH[/VARIANT], as in linux/amd64");
		(void)snprintf(parts[i], sizeof(p.os), "%.*s", (int)n, text);
		text = next;
	}
	*ret = p;
	return 0;
}

/* ---- JSON ---- */

static const char *text_of(json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static int damaged(struct err *e, const char *what)
{
	return err_set(e, -EBADMSG, "its %s", what);
}

/* A descriptor: digest, size, and its media type in *ret_type. */
static int take_blob(json_t *d, struct image_blob *ret, const char **ret_type, struct err *e)
{
	json_t *size = json_object_get(d, "size");
	const char *hex = image_ref_digest(text_of(d, "digest"));

	if (!hex)
		return damaged(e, "manifest has a digest that is not SHA-256");
	if (!json_is_integer(size) || json_integer_value(size) < 0 ||
	    json_integer_value(size) > (json_int_t)LAYER_SIZE_MAX_GIB << 30)
		return damaged(e, "manifest has a part of an impossible size");
	memcpy(ret->digest, hex, sizeof(ret->digest));
	ret->size = (uint64_t)json_integer_value(size);
	*ret_type = text_of(d, "mediaType");
	return 0;
}

/* ---- an index ---- */

/* 2: the very one, 1: it will do, 0: not for us. */
static int suits(json_t *m, const struct image_platform *want)
{
	json_t *p = json_object_get(m, "platform");
	const char *variant = text_of(p, "variant");

	if (!streq(text_of(p, "os"), want->os) || !streq(text_of(p, "architecture"), want->arch))
		return 0;
	if (want->variant[0])
		return streq(variant, want->variant) ? 2 : 0;
	return *variant && !streq(variant, "v8") && !streq(variant, "v1") ? 1 : 2;
}

static void list_platforms(json_t *list, char *dst, size_t max)
{
	size_t i, at = 0;
	json_t *m;

	dst[0] = '\0';
	json_array_foreach(list, i, m)
	{
		json_t *p = json_object_get(m, "platform");
		int n;

		if (streq(text_of(p, "os"), "unknown") || !*text_of(p, "os"))
			continue; /* a note about another */
		n = snprintf(dst + at, max - at, "%s%s/%s%s%s", at ? ", " : "", text_of(p, "os"),
			     text_of(p, "architecture"), *text_of(p, "variant") ? "/" : "",
			     text_of(p, "variant"));
		if (n < 0 || (size_t)n >= max - at) {
			dst[at] = '\0';
			return;
		}
		at += (size_t)n;
	}
}

static int take_index(json_t *j, const struct image_platform *want, struct image_blob *ret,
		      struct err *e)
{
	json_t *list = json_object_get(j, "manifests"), *m, *best = NULL;
	const char *type;
	char there[200];
	int score = 0;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > INDEX_MAX)
		return damaged(e, "index is not one");
	json_array_foreach(list, i, m)
	{
		int s = suits(m, want);

		if (s > score) {
			best = m;
			score = s;
		}
	}
	if (best)
		return take_blob(best, ret, &type, e);
	list_platforms(list, there, sizeof(there));
	return err_set(e, -ENOENT, "it is not there for %s/%s%s%s (there is: %s)", want->os,
		       want->arch, want->variant[0] ? "/" : "", want->variant,
		       there[0] ? there : "nothing");
}

/* ---- a manifest ---- */

static const char *const layer_types[] = {
	OCI "layer.v1.tar",
	OCI "layer.v1.tar+gzip",
	OCI "layer.v1.tar+zstd",
	DOCKER "image.rootfs.diff.tar",
	DOCKER "image.rootfs.diff.tar.gzip",
	DOCKER "image.rootfs.diff.tar.zstd",
};

static const char *const config_types[] = {
	OCI "config.v1+json",
	DOCKER "container.image.v1+json",
};

static const char *const manifest_types[] = {
	OCI "manifest.v1+json",
	DOCKER "distribution.manifest.v2+json",
};

static bool is_one_of(const char *s, const char *const *v, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (streq(s, v[i]))
			return true;
	return false;
}

static int take_layer(json_t *d, struct image_remote *m, struct err *e)
{
	const char *type;
	int r = take_blob(d, &m->layers[m->n], &type, e);

	if (r < 0)
		return r;
	if (!is_one_of(type, layer_types, ARRAY_SIZE(layer_types)))
		return err_set(e, -EMEDIUMTYPE,
			       "it has a layer of a kind that bac does not read (%.80s)", type);
	m->n++;
	return 0;
}

static int take_manifest(json_t *j, struct image_remote *ret, struct err *e)
{
	json_t *layers = json_object_get(j, "layers"), *d;
	struct image_remote m = { 0 };
	const char *type;
	size_t i;
	int r = take_blob(json_object_get(j, "config"), &m.config, &type, e);

	if (r < 0)
		return r;
	if (!is_one_of(type, config_types, ARRAY_SIZE(config_types)) || *text_of(j, "artifactType"))
		return err_set(e, -EMEDIUMTYPE, "it is not an image but an artifact (%.80s)",
			       *text_of(j, "artifactType") ? text_of(j, "artifactType") : type);
	if (m.config.size > IMAGE_CONFIG_MAX)
		return damaged(e, "configuration is too long");
	if (!json_is_array(layers) || json_array_size(layers) == 0)
		return damaged(e, "manifest has no layers");
	if (json_array_size(layers) > IMAGE_REMOTE_LAYERS_MAX)
		return err_set(e, -E2BIG, "it has more than %d layers", IMAGE_REMOTE_LAYERS_MAX);
	json_array_foreach(layers, i, d)
	{
		r = take_layer(d, &m, e);
		if (r < 0)
			return r;
	}
	(void)snprintf(m.type, sizeof(m.type), "%.90s",
		       *text_of(j, "mediaType") ? text_of(j, "mediaType") : manifest_types[0]);
	if (!is_one_of(m.type, manifest_types, ARRAY_SIZE(manifest_types)))
		return err_set(e, -EMEDIUMTYPE, "it is not an image (%.90s)", m.type);
	*ret = m;
	return 0;
}

int image_remote_manifest(const void *p, size_t n, const struct image_platform *want,
			  struct image_remote *ret, struct image_blob *ret_child, struct err *e)
{
	json_t *j = n > IMAGE_MANIFEST_MAX ? NULL : json_loadb(p, n, JSON_REJECT_DUPLICATES, NULL);
	bool index = json_object_get(j, "manifests"), layers = json_object_get(j, "layers");
	int r;

	if (!json_is_object(j))
		r = damaged(e, "manifest is not JSON");
	else if (json_integer_value(json_object_get(j, "schemaVersion")) == 1)
		r = err_set(e, -EMEDIUMTYPE,
			    "it is in a format from before 2016 (schema 1); push it again with "
			    "anything newer");
	else if (json_integer_value(json_object_get(j, "schemaVersion")) != 2)
		r = err_set(e, -EMEDIUMTYPE, "it is not an image");
	else if (index && layers)
		r = damaged(e, "manifest may be read in two ways");
	else if (index)
		r = take_index(j, want, ret_child, e);
	else
		r = take_manifest(j, ret, e);
	json_decref(j);
	return r < 0 ? r : index;
}

/* ---- a configuration ---- */

static int take_diffs(json_t *j, struct image_remote *m, struct err *e)
{
	json_t *list = json_object_get(json_object_get(j, "rootfs"), "diff_ids"), *d;
	size_t i;

	if (json_array_size(list) != m->n)
		return damaged(e, "manifest and configuration do not have the same layers");
	json_array_foreach(list, i, d)
	{
		const char *s = json_string_value(d), *hex = s ? image_ref_digest(s) : NULL;

		if (!hex)
			return damaged(e, "configuration has a layer that is not named by SHA-256");
		memcpy(m->diffs[i], hex, sizeof(m->diffs[i]));
	}
	return 0;
}

int image_remote_config(const void *p, size_t n, const struct image_platform *want,
			struct image_remote *m, struct err *e)
{
	json_t *j = n > IMAGE_CONFIG_MAX ? NULL : json_loadb(p, n, JSON_REJECT_DUPLICATES, NULL);
	const char *os = text_of(j, "os"), *arch = text_of(j, "architecture");
	int r;

	if (!json_is_object(j))
		r = damaged(e, "configuration is not JSON");
	else if (!streq(os, want->os) || !streq(arch, want->arch))
		r = err_set(e, -ENOENT, "it is not there for %s/%s (there is: %.16s/%.16s)",
			    want->os, want->arch, os, arch);
	else
		r = take_diffs(j, m, e);
	json_decref(j);
	return r;
}
