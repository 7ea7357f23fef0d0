/* A file with one image. */
#include "image/bundle.h"

#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/sha256.h"
#include "image/oci.h"
#include "io/fd.h"

enum { BLOCK = 512, READ_SIZE = 256 * 1024, TIME_MAX = 40, LARGE_SHIFT = 33, ID_MAX = 07777777 };

#define OCI "application/vnd.oci.image."

struct blob {
	char hex[IMAGE_DIGEST_MAX + 1];
	uint64_t size;
};

struct bundle {
	int fd;
	uint64_t at; /* the end so far */
	struct blob layer, config, manifest;
};

/* ---- digests ---- */

static void to_hex(const uint8_t *sum, char hex[IMAGE_DIGEST_MAX + 1])
{
	for (size_t i = 0; i < SHA256_SIZE; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", sum[i]);
}

/* By OpenSSL: the layer is long. */
static int digest_layer(struct bundle *b)
{
	_free_ uint8_t *part = malloc(READ_SIZE);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	uint8_t sum[SHA256_SIZE];
	uint64_t at = 0;
	int r = part && ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;

	while (r == 0 && at < b->layer.size) {
		size_t want = (size_t)MIN(b->layer.size - at, READ_SIZE);
		ssize_t n = pread(b->fd, part, want, (off_t)(IMAGE_BUNDLE_LAYER_AT + at));

		if (n <= 0)
			r = n < 0 ? -errno : -EIO;
		else if (EVP_DigestUpdate(ctx, part, (size_t)n) != 1)
			r = -ENOMEM;
		else
			at += (uint64_t)n;
	}
	if (r == 0 && EVP_DigestFinal_ex(ctx, sum, NULL) != 1)
		r = -ENOMEM;
	EVP_MD_CTX_free(ctx);
	if (r == 0)
		to_hex(sum, b->layer.hex);
	return r;
}

static void digest_text(const char *s, struct blob *ret)
{
	uint8_t sum[SHA256_SIZE];
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, s, strlen(s));
	sha256_end(&h, sum);
	to_hex(sum, ret->hex);
	ret->size = strlen(s);
}

/* ---- the archive ---- */

static void octal(char *dst, size_t width, uint64_t v)
{
	for (dst[--width] = '\0'; width; v >>= 3)
		dst[--width] = (char)('0' + (v & 7));
}

static void header(char h[BLOCK], const char *name, uint64_t size, char type)
{
	unsigned sum = 0;
	size_t i;

	memset(h, 0, BLOCK);
	(void)snprintf(h, 100, "%s", name);
	octal(h + 100, 8, type == '5' ? 0755 : 0644);
	octal(h + 108, 8, geteuid() > ID_MAX ? 0 : geteuid());
	octal(h + 116, 8, getegid() > ID_MAX ? 0 : getegid());
	octal(h + 124, 12, size);
	if (size >> LARGE_SHIFT) {
		h[124] = (char)0x80;
		for (i = 0; i < 8; i++)
			h[128 + i] = (char)(size >> (56 - 8 * i));
	}
	octal(h + 136, 12, 0);
	h[156] = type;
	memcpy(h + 257, "ustar\00000", 8);
	memset(h + 148, ' ', 8);
	for (i = 0; i < BLOCK; i++)
		sum += (uint8_t)h[i];
	octal(h + 148, 7, sum);
}

static int put_at(int fd, uint64_t at, const void *p, size_t n)
{
	const uint8_t *from = p;

	while (n) {
		ssize_t k = pwrite(fd, from, n, (off_t)at);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k < 0 ? -errno : -EIO;
		from += k;
		at += (uint64_t)k;
		n -= (size_t)k;
	}
	return 0;
}

static int pad(struct bundle *b)
{
	static const char zeros[BLOCK];
	size_t n = (size_t)(-b->at % BLOCK);
	int r = put_at(b->fd, b->at, zeros, n);

	b->at += n;
	return r;
}

static int add(struct bundle *b, const char *name, const char *text)
{
	size_t n = strlen(text);
	char h[BLOCK];
	int r;

	header(h, name, n, '0');
	r = put_at(b->fd, b->at, h, sizeof(h));
	if (r == 0)
		r = put_at(b->fd, b->at + BLOCK, text, n);
	b->at += BLOCK + n;
	return r == 0 ? pad(b) : r;
}

/* Takes j. */
static int add_json(struct bundle *b, const char *name, json_t *j, struct blob *ret)
{
	_free_ char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	char path[100];

	json_decref(j);
	if (!text)
		return -ENOMEM;
	if (!ret)
		return add(b, name, text);
	digest_text(text, ret);
	(void)snprintf(path, sizeof(path), "blobs/sha256/%s", ret->hex);
	return add(b, path, text);
}

/* ---- what it says ---- */

static json_t *list_of(char *const *v)
{
	json_t *list = v && *v ? json_array() : NULL;

	for (; list && *v; v++)
		(void)json_array_append_new(list, json_string(*v));
	return list;
}

static json_t *labels_of(char *const *v)
{
	json_t *o = v && *v ? json_object() : NULL;

	for (; o && *v; v++) {
		const char *eq = strchr(*v, '=');
		char *name = eq ? strndup(*v, (size_t)(eq - *v)) : NULL;

		if (name)
			(void)json_object_set_new(o, name, json_string(eq + 1));
		free(name);
	}
	return o;
}

static json_t *config_json(const struct bundle *b, const struct image_bundle *w)
{
	const struct image_config *c = w->config;
	const char *user = c->user && *c->user ? c->user : w->user;
	const char *dir = c->workdir && *c->workdir ? c->workdir : w->workdir;
	char created[TIME_MAX];
	struct tm tm;
	time_t t = (time_t)w->created;

	if (!gmtime_r(&t, &tm) || !strftime(created, sizeof(created), "%Y-%m-%dT%H:%M:%SZ", &tm))
		return NULL;
	return json_pack("{s:s, s:s, s:s, s:{s:s*, s:s*, s:o*, s:o*, s:o*, s:o*}, "
			 "s:{s:s, s:[s+]}, s:[{s:s, s:s, s:s}]}",
			 "created", created, "architecture",
			 c->arch && *c->arch ? c->arch : oci_arch(), "os", "linux", "config",
			 "User", user, "WorkingDir", dir, "Env", list_of(c->env), "Entrypoint",
			 list_of(c->entrypoint), "Cmd", list_of(c->cmd), "Labels",
			 labels_of(c->labels), "rootfs", "type", "layers", "diff_ids",
			 "sha256:", b->layer.hex, "history", "created", created, "created_by",
			 "bac template save", "comment", w->comment);
}

static json_t *descriptor(const char *type, const struct blob *x)
{
	return json_pack("{s:s, s:s+, s:I}", "mediaType", type, "digest", "sha256:", x->hex, "size",
			 (json_int_t)x->size);
}

/* "name:tag", as docker wants it. */
static int full_tag(const char *tag, char **ret)
{
	const char *slash = strrchr(tag, '/');

	return asprintf(ret, "%s%s", tag, strchr(slash ? slash : tag, ':') ? "" : ":latest") < 0
		       ? -ENOMEM
		       : 0;
}

static int add_names(struct bundle *b, const char *tag)
{
	_free_ char *full = NULL;
	json_t *m;
	int r = full_tag(tag, &full);

	if (r < 0)
		return r;
	m = descriptor(OCI "manifest.v1+json", &b->manifest);
	(void)json_object_set_new(m, "annotations",
				  json_pack("{s:s, s:s}", "io.containerd.image.name", full,
					    "org.opencontainers.image.ref.name",
					    strrchr(full, ':') + 1));
	r = add_json(b, "index.json", json_pack("{s:i, s:[o]}", "schemaVersion", 2, "manifests", m),
		     NULL);
	if (r < 0)
		return r;
	return add_json(b, "manifest.json",
			json_pack("[{s:s+, s:[s], s:[s+]}]", "Config", "blobs/sha256/",
				  b->config.hex, "RepoTags", full, "Layers", "blobs/sha256/",
				  b->layer.hex),
			NULL);
}

static int finish(struct bundle *b, const struct image_bundle *w)
{
	static const char zeros[2 * BLOCK];
	char h[BLOCK], name[100];
	int r = digest_layer(b);

	if (r < 0)
		return r;
	(void)snprintf(name, sizeof(name), "blobs/sha256/%s", b->layer.hex);
	header(h, "blobs/", 0, '5');
	r = put_at(b->fd, 0, h, sizeof(h));
	header(h, "blobs/sha256/", 0, '5');
	if (r == 0)
		r = put_at(b->fd, BLOCK, h, sizeof(h));
	header(h, name, b->layer.size, '0');
	if (r == 0)
		r = put_at(b->fd, 2UL * BLOCK, h, sizeof(h));
	b->at = IMAGE_BUNDLE_LAYER_AT + b->layer.size;
	if (r == 0)
		r = pad(b);
	if (r == 0)
		r = add_json(b, NULL, config_json(b, w), &b->config);
	if (r == 0)
		r = add_json(b, NULL,
			     json_pack("{s:i, s:s, s:o, s:[o]}", "schemaVersion", 2, "mediaType",
				       OCI "manifest.v1+json", "config",
				       descriptor(OCI "config.v1+json", &b->config), "layers",
				       descriptor(OCI "layer.v1.tar", &b->layer)),
			     &b->manifest);
	if (r == 0)
		r = add_json(b, "oci-layout", json_pack("{s:s}", "imageLayoutVersion", "1.0.0"),
			     NULL);
	if (r == 0)
		r = add_names(b, w->tag);
	return r == 0 ? put_at(b->fd, b->at, zeros, sizeof(zeros)) : r;
}

int image_bundle_finish(int fd, const struct image_bundle *w, struct err *e)
{
	struct bundle b = { .fd = fd };
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0 || st.st_size <= IMAGE_BUNDLE_LAYER_AT)
		return err_set(e, -EIO, "the archive is empty");
	b.layer.size = (uint64_t)st.st_size - IMAGE_BUNDLE_LAYER_AT;
	r = finish(&b, w);
	return r < 0 ? err_errno(e, r, "cannot write the archive") : 0;
}
