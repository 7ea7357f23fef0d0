/* JSON to structs. jansson parses and owns the values; everything is copied out of them. */
#include "image/oci.h"

#include <jansson.h>
#include <stdio.h>

/* What a place in the text is called in a message. */
struct at {
	const char *what; /* "manifest", "configuration" */
	struct err *e;
};

static _printf_(2, 3) int bad(const struct at *a, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(a->e, -EINVAL, "the image's %s is not valid: %s", a->what, text);
}

/* ---- values ---- */

/* jansson would go 2048 deep, on our stack. */
static bool too_deep(const char *p, size_t n)
{
	bool text = false;
	int depth = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		if (text && p[i] == '\\')
			i++;
		else if (p[i] == '"')
			text = !text;
		else if (!text && (p[i] == '{' || p[i] == '['))
			depth++;
		else if (!text && (p[i] == '}' || p[i] == ']'))
			depth--;
		if (depth > OCI_DEPTH_MAX)
			return true;
	}
	return false;
}

static int load(const struct at *a, const char *text, size_t n, json_t **ret)
{
	json_error_t why;
	json_t *j;

	if (n > OCI_TEXT_MAX)
		return bad(a, "it is longer than %d MiB", OCI_TEXT_MAX >> 20);
	if (too_deep(text, n))
		return bad(a, "it is nested too deeply");
	j = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
	if (!j)
		return bad(a, "line %d: %.120s", why.line, why.text);
	*ret = j;
	return 0;
}

/* A string member; "" where it is absent or null. 0, or -EINVAL. Borrowed. */
static int text_of(const struct at *a, const json_t *o, const char *key, size_t max,
		   const char **ret)
{
	const json_t *v = json_object_get(o, key);

	*ret = "";
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_string(v))
		return bad(a, "%s is not a string", key);
	if (json_string_length(v) > max)
		return bad(a, "%s is too long", key);
	*ret = json_string_value(v);
	return 0;
}

static char **list_free(char **v)
{
	for (char **p = v; p && *p; p++)
		free(*p);
	free(v);
	return NULL;
}

/* An array of strings; none where it is absent or null. The list is the caller's, NULL-terminated. */
static int list_of(const struct at *a, const json_t *o, const char *key, size_t max, char ***ret)
{
	const json_t *v = json_object_get(o, key);
	size_t n = json_array_size(v), i;
	char **list;

	if (v && !json_is_null(v) && !json_is_array(v))
		return bad(a, "%s is not a list", key);
	if (n > max)
		return bad(a, "%s has more than %zu entries", key, max);
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return err_errno(a->e, -ENOMEM, "the image");
	for (i = 0; i < n; i++) {
		const json_t *s = json_array_get(v, i);

		if (!json_is_string(s) || json_string_length(s) > OCI_STRING_MAX) {
			(void)list_free(list);
			return bad(a, "%s[%zu] is not a string, or too long", key, i);
		}
		list[i] = strdup(json_string_value(s));
		if (!list[i]) {
			(void)list_free(list);
			return err_errno(a->e, -ENOMEM, "the image");
		}
	}
	*ret = list;
	return 0;
}

bool oci_digest(const char *s, char hex[IMAGE_DIGEST_MAX + 1])
{
	if (!starts_with(s, "sha256:"))
		return false;
	s += 7;
	if (strlen(s) != IMAGE_DIGEST_MAX || strspn(s, "0123456789abcdef") != IMAGE_DIGEST_MAX)
		return false;
	memcpy(hex, s, IMAGE_DIGEST_MAX + 1);
	return true;
}

static int copy_text(const struct at *a, const char *s, char **ret)
{
	*ret = strdup(s);
	return *ret ? 0 : err_errno(a->e, -ENOMEM, "the image");
}

const char *oci_arch(void)
{
#if defined(__aarch64__)
	return "arm64";
#else
	return "amd64";
#endif
}

/* ---- descriptors ---- */

static void desc_done(struct oci_desc *d)
{
	free(d->type);
	free(d->os);
	free(d->arch);
	free(d->name);
}

static int desc_platform(const struct at *a, const json_t *o, struct oci_desc *d)
{
	const json_t *p = json_object_get(o, "platform");
	const char *os = "", *arch = "";
	int r = 0;

	if (p && !json_is_null(p) && !json_is_object(p))
		return bad(a, "platform is not an object");
	r = text_of(a, p, "os", OCI_NAME_MAX, &os);
	if (r == 0)
		r = text_of(a, p, "architecture", OCI_NAME_MAX, &arch);
	if (r == 0)
		r = copy_text(a, os, &d->os);
	return r == 0 ? copy_text(a, arch, &d->arch) : r;
}

static int desc_notes(const struct at *a, const json_t *o, struct oci_desc *d)
{
	const json_t *p = json_object_get(o, "annotations");
	const char *full = "", *ref = "", *type = "";
	int r;

	if (p && !json_is_null(p) && !json_is_object(p))
		return bad(a, "annotations is not an object");
	r = text_of(a, p, "io.containerd.image.name", OCI_NAME_MAX, &full);
	if (r == 0)
		r = text_of(a, p, "org.opencontainers.image.ref.name", OCI_NAME_MAX, &ref);
	if (r == 0)
		r = text_of(a, p, "vnd.docker.reference.type", OCI_NAME_MAX, &type);
	d->attestation = *type;
	return r == 0 ? copy_text(a, *full ? full : ref, &d->name) : r;
}

static int desc_read(const struct at *a, const json_t *o, struct oci_desc *ret)
{
	struct oci_desc d = { 0 };
	const char *type = "", *digest = "";
	const json_t *size = json_object_get(o, "size");
	int r;

	if (!json_is_object(o))
		return bad(a, "a descriptor is not an object");
	r = text_of(a, o, "mediaType", OCI_NAME_MAX, &type);
	if (r == 0)
		r = text_of(a, o, "digest", OCI_NAME_MAX, &digest);
	if (r < 0)
		return r;
	if (!oci_digest(digest, d.digest))
		return bad(a, "'%.80s' is not a SHA-256 digest", digest);
	if (!json_is_integer(size) || json_integer_value(size) < 0)
		return bad(a, "the size of %.12s is missing or negative", d.digest);
	d.size = (uint64_t)json_integer_value(size);
	r = copy_text(a, type, &d.type);
	if (r == 0)
		r = desc_platform(a, o, &d);
	if (r == 0)
		r = desc_notes(a, o, &d);
	if (r < 0)
		desc_done(&d);
	else
		*ret = d;
	return r;
}

static void descs_free(struct oci_desc *v, size_t n)
{
	while (n)
		desc_done(&v[--n]);
	free(v);
}

static int descs_read(const struct at *a, const json_t *list, size_t max, struct oci_desc **ret,
		      size_t *ret_n)
{
	size_t n = json_array_size(list), i;
	struct oci_desc *v;
	int r = 0;

	if (!json_is_array(list))
		return bad(a, "its list is missing");
	if (n > max)
		return bad(a, "its list has more than %zu entries", max);
	v = calloc(n + 1, sizeof(*v));
	if (!v)
		return err_errno(a->e, -ENOMEM, "the image");
	for (i = 0; i < n && r == 0; i++)
		r = desc_read(a, json_array_get(list, i), &v[i]);
	if (r < 0) {
		descs_free(v, i);
		return r;
	}
	*ret = v;
	*ret_n = n;
	return 0;
}

/* ---- index and manifest ---- */

#define OCI_TYPE    "application/vnd.oci.image."
#define DOCKER_TYPE "application/vnd.docker."

static const char *const index_types[] = {
	OCI_TYPE "index.v1+json",
	DOCKER_TYPE "distribution.manifest.list.v2+json",
};
static const char *const manifest_types[] = {
	OCI_TYPE "manifest.v1+json",
	DOCKER_TYPE "distribution.manifest.v2+json",
};
static const char *const config_types[] = {
	OCI_TYPE "config.v1+json",
	DOCKER_TYPE "container.image.v1+json",
};
static const char *const layer_types[] = {
	OCI_TYPE "layer.v1.tar",
	OCI_TYPE "layer.v1.tar+gzip",
	OCI_TYPE "layer.v1.tar+zstd",
	DOCKER_TYPE "image.rootfs.diff.tar",
	DOCKER_TYPE "image.rootfs.diff.tar.gzip",
	DOCKER_TYPE "image.rootfs.diff.tar.zstd",
};

static bool among(const char *s, const char *const *v, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (streq(s, v[i]))
			return true;
	return false;
}

#define AMONG(s, list) among(s, list, ARRAY_SIZE(list))

static int old_schema(const struct at *a, const char *type, const json_t *j)
{
	if (strstr(type, "manifest.v1+") ? starts_with(type, DOCKER_TYPE)
					 : json_object_get(j, "fsLayers") != NULL)
		return err_set(a->e, -EINVAL,
			       "the image has a manifest of docker's schema 1, which nobody has "
			       "made since 2016; push it again with a present docker");
	return 0;
}

static int kind_of(const struct at *a, const json_t *j, const char *given)
{
	const char *type = "", *artifact = "";
	int r = json_is_object(j) ? 0 : bad(a, "it is not an object");

	if (r == 0)
		r = text_of(a, j, "mediaType", OCI_NAME_MAX, &type);
	if (r == 0)
		r = text_of(a, j, "artifactType", OCI_NAME_MAX, &artifact);
	if (r < 0)
		return r;
	if (!*type)
		type = given;
	r = old_schema(a, type, j);
	if (r < 0)
		return r;
	if (*artifact)
		return err_set(a->e, -EINVAL, "that is an artifact (%.100s), not an image",
			       artifact);
	if (AMONG(type, index_types))
		return 1;
	if (AMONG(type, manifest_types))
		return 0;
	if (*type)
		return err_set(a->e, -EINVAL, "'%.100s' is not an image", type);
	return json_object_get(j, "manifests") ? 1 : 0; /* both texts may leave their type out */
}

int oci_kind(const char *text, size_t n, const char *type, struct err *e)
{
	const struct at a = { "manifest", e };
	json_t *j = NULL;
	int r = load(&a, text, n, &j);

	if (r == 0)
		r = kind_of(&a, j, type);
	json_decref(j);
	return r;
}

void oci_index_done(struct oci_index *x)
{
	descs_free(x->v, x->n);
	*x = (struct oci_index) { 0 };
}

int oci_index_parse(const char *text, size_t n, struct oci_index *ret, struct err *e)
{
	const struct at a = { "index", e };
	struct oci_index x = { 0 };
	json_t *j = NULL;
	int r = load(&a, text, n, &j);

	if (r == 0 && !json_is_object(j))
		r = bad(&a, "it is not an object");
	if (r == 0)
		r = descs_read(&a, json_object_get(j, "manifests"), OCI_IMAGES_MAX, &x.v, &x.n);
	json_decref(j);
	if (r == 0)
		*ret = x;
	return r;
}

void oci_manifest_done(struct oci_manifest *m)
{
	desc_done(&m->config);
	descs_free(m->layers, m->n);
	*m = (struct oci_manifest) { 0 };
}

static int check_layers(const struct at *a, const struct oci_manifest *m)
{
	size_t i;

	for (i = 0; i < m->n; i++) {
		const char *type = m->layers[i].type ? m->layers[i].type : "";

		if (strstr(type, "foreign") || strstr(type, "nondistributable"))
			return err_set(a->e, -EINVAL,
				       "layer %zu may not be passed on (%.100s); such images are "
				       "of Windows",
				       i + 1, type);
		if (!AMONG(type, layer_types))
			return err_set(a->e, -EINVAL,
				       "layer %zu is of a type that bac does not know: '%.100s'",
				       i + 1, type);
	}
	return 0;
}

static int manifest_read(const struct at *a, const json_t *j, struct oci_manifest *m)
{
	int r = kind_of(a, j, "");

	if (r == 1)
		return bad(a, "it is an index");
	if (r == 0)
		r = desc_read(a, json_object_get(j, "config"), &m->config);
	if (r < 0)
		return r;
	if (!AMONG(m->config.type, config_types))
		return err_set(a->e, -EINVAL, "that is an artifact (%.100s), not an image",
			       m->config.type);
	r = descs_read(a, json_object_get(j, "layers"), OCI_LAYERS_MAX, &m->layers, &m->n);
	if (r == 0 && m->n == 0)
		r = bad(a, "it has no layers");
	return r == 0 ? check_layers(a, m) : r;
}

int oci_manifest_parse(const char *text, size_t n, struct oci_manifest *ret, struct err *e)
{
	const struct at a = { "manifest", e };
	struct oci_manifest m = { 0 };
	json_t *j = NULL;
	int r = load(&a, text, n, &j);

	if (r == 0)
		r = manifest_read(&a, j, &m);
	json_decref(j);
	if (r < 0)
		oci_manifest_done(&m);
	else
		*ret = m;
	return r;
}

/* ---- the configuration ---- */

void oci_config_done(struct oci_config *c)
{
	image_config_done(&c->config);
	free(c->diffs);
	*c = (struct oci_config) { 0 };
}

static int read_labels(const struct at *a, const json_t *o, char ***ret)
{
	json_t *v = json_object_get(o, "Labels"), *value;
	const char *key;
	char **list;
	size_t n = 0;

	if (v && !json_is_null(v) && !json_is_object(v))
		return bad(a, "Labels is not an object");
	if (json_object_size(v) > OCI_ENV_MAX)
		return bad(a, "Labels has more than %d entries", OCI_ENV_MAX);
	list = calloc(json_object_size(v) + 1, sizeof(*list));
	if (!list)
		return err_errno(a->e, -ENOMEM, "the image");
	json_object_foreach(v, key, value)
	{
		if (!json_is_string(value) || json_string_length(value) > OCI_STRING_MAX ||
		    strlen(key) > OCI_NAME_MAX) {
			(void)list_free(list);
			return bad(a, "a label is not a string, or too long");
		}
		if (asprintf(&list[n], "%s=%s", key, json_string_value(value)) < 0) {
			list[n] = NULL;
			(void)list_free(list);
			return err_errno(a->e, -ENOMEM, "the image");
		}
		n++;
	}
	*ret = list;
	return 0;
}

/* NAME=value each; entries that are none are dropped, as runtimes do. */
static int check_env(const struct at *a, char **env)
{
	size_t sum = 0;
	char **to = env;

	for (char **p = env; *p; p++) {
		const char *eq = strchr(*p, '=');

		sum += strlen(*p) + 1;
		if (eq && eq > *p)
			*to++ = *p;
		else
			free(*p);
	}
	*to = NULL;
	return sum > OCI_ENV_BYTES_MAX ? bad(a, "Env has more than %d KiB", OCI_ENV_BYTES_MAX >> 10)
				       : 0;
}

static int read_inner(const struct at *a, const json_t *o, struct image_config *c)
{
	const char *user = "", *dir = "";
	int r = 0;

	if (o && !json_is_null(o) && !json_is_object(o))
		return bad(a, "config is not an object");
	r = list_of(a, o, "Env", OCI_ENV_MAX, &c->env);
	if (r == 0)
		r = check_env(a, c->env);
	if (r == 0)
		r = list_of(a, o, "Entrypoint", OCI_ARGS_MAX, &c->entrypoint);
	if (r == 0)
		r = list_of(a, o, "Cmd", OCI_ARGS_MAX, &c->cmd);
	if (r == 0)
		r = read_labels(a, o, &c->labels);
	if (r == 0)
		r = text_of(a, o, "User", OCI_NAME_MAX, &user);
	if (r == 0)
		r = copy_text(a, user, &c->user);
	if (r == 0)
		r = text_of(a, o, "WorkingDir", 4095, &dir);
	return r == 0 ? copy_text(a, dir[0] == '/' ? dir : "", &c->workdir) : r;
}

static int read_diffs(const struct at *a, const json_t *j, struct oci_config *c)
{
	const json_t *rootfs = json_object_get(j, "rootfs"), *v;
	size_t n, i;

	v = json_object_get(rootfs, "diff_ids");
	n = json_array_size(v);
	if (!json_is_array(v) || n == 0)
		return bad(a, "it names no layers (rootfs.diff_ids)");
	if (n > OCI_LAYERS_MAX)
		return bad(a, "it has more than %d layers", OCI_LAYERS_MAX);
	c->diffs = calloc(n, sizeof(*c->diffs));
	if (!c->diffs)
		return err_errno(a->e, -ENOMEM, "the image");
	for (i = 0; i < n; i++) {
		const char *s = json_string_value(json_array_get(v, i));

		if (!s || !oci_digest(s, c->diffs[i]))
			return bad(a, "diff_ids[%zu] is not a SHA-256 digest", i);
	}
	c->n = n;
	return 0;
}

static int config_read(const struct at *a, const json_t *j, const char *arch, struct oci_config *c)
{
	const char *os = "", *machine = "";
	int r = json_is_object(j) ? 0 : bad(a, "it is not an object");

	if (r == 0)
		r = text_of(a, j, "os", OCI_NAME_MAX, &os);
	if (r == 0)
		r = text_of(a, j, "architecture", OCI_NAME_MAX, &machine);
	if (r < 0)
		return r;
	if (!streq(os, "linux") || !streq(machine, arch))
		return err_set(a->e, -ENOEXEC,
			       "the image is for %.40s/%.40s; sandboxes run linux/%s",
			       *os ? os : "unknown", *machine ? machine : "unknown", arch);
	r = copy_text(a, machine, &c->config.arch);
	if (r == 0)
		r = read_inner(a, json_object_get(j, "config"), &c->config);
	return r == 0 ? read_diffs(a, j, c) : r;
}

int oci_config_parse(const char *text, size_t n, const char *arch, struct oci_config *ret,
		     struct err *e)
{
	const struct at a = { "configuration", e };
	struct oci_config c = { 0 };
	json_t *j = NULL;
	int r = load(&a, text, n, &j);

	if (r == 0)
		r = config_read(&a, j, arch, &c);
	json_decref(j);
	if (r < 0)
		oci_config_done(&c);
	else
		*ret = c;
	return r;
}

/* ---- manifest.json ---- */

void oci_docker_done(struct oci_docker *v, size_t n)
{
	while (n--) {
		free(v[n].config);
		(void)list_free(v[n].tags);
		(void)list_free(v[n].layers);
	}
	free(v);
}

/* A member's name: relative, and with nothing in it that leads elsewhere. */
static bool is_member(const char *s)
{
	const char *p = s;

	if (!*s || *s == '/' || strlen(s) > OCI_NAME_MAX)
		return false;
	for (; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
		if (starts_with(p, "..") && (p[2] == '/' || !p[2]))
			return false;
	return true;
}

static int docker_read(const struct at *a, const json_t *o, struct oci_docker *d)
{
	const char *config = "";
	size_t i;
	int r = json_is_object(o) ? 0 : bad(a, "an image is not an object");

	if (r == 0)
		r = text_of(a, o, "Config", OCI_NAME_MAX, &config);
	if (r == 0 && !is_member(config))
		r = bad(a, "Config '%.80s' is not the name of a member", config);
	if (r == 0)
		r = copy_text(a, config, &d->config);
	if (r == 0)
		r = list_of(a, o, "RepoTags", OCI_TAGS_MAX, &d->tags);
	if (r == 0)
		r = list_of(a, o, "Layers", OCI_LAYERS_MAX, &d->layers);
	if (r == 0 && (!d->layers || !d->layers[0]))
		return bad(a, "Layers is empty");
	for (i = 0; r == 0 && d->layers[i]; i++)
		if (!is_member(d->layers[i]))
			r = bad(a, "Layers[%zu] is not the name of a member", i);
	return r;
}

static int docker_all(const struct at *a, const json_t *j, struct oci_docker **ret, size_t *ret_n)
{
	size_t n = json_array_size(j), i;
	struct oci_docker *v;
	int r = 0;

	if (!json_is_array(j) || n == 0)
		return bad(a, "it is not a list of images");
	if (n > OCI_IMAGES_MAX)
		return bad(a, "it has more than %d images", OCI_IMAGES_MAX);
	v = calloc(n, sizeof(*v));
	if (!v)
		return err_errno(a->e, -ENOMEM, "the image");
	for (i = 0; i < n && r == 0; i++)
		r = docker_read(a, json_array_get(j, i), &v[i]);
	if (r < 0) {
		oci_docker_done(v, n);
		return r;
	}
	*ret = v;
	*ret_n = n;
	return 0;
}

int oci_docker_parse(const char *text, size_t n, struct oci_docker **ret, size_t *ret_n,
		     struct err *e)
{
	const struct at a = { "manifest.json", e };
	json_t *j = NULL;
	int r = load(&a, text, n, &j);

	if (r == 0)
		r = docker_all(&a, j, ret, ret_n);
	json_decref(j);
	return r;
}
