/* Kits in registries: artifacts, fetched by skopeo into an OCI layout.
 *
 * Version 2: the configuration is the specification, byte by byte, and one tar layer has home/agent and workspace (or there is none: the layer is the empty JSON).
 * Version 1: one layer is a ZIP of the whole kit. The manifest is read before anything else is fetched: what is not a kit, or is too large, stays where it is; and
 * what is fetched is asked for by the digest of that manifest. */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "cli/kit-fetch.h"
#include "cli/kit-tree.h"
#include "image/skopeo.h"
#include "io/fd.h"
#include "sys/dirs.h"
#include "sys/spawn.h"

#define CERTS    "certs" /* below work; its own certs.d is taken otherwise */
#define KIT_TYPE "application/vnd.docker.sandbox.kit."

enum {
	MANIFEST_MAX = 256 * 1024,
	ASK_MS = 60 * 1000,
	FETCH_MS = 300 * 1000,
	SUM_TEXT = 7 + 64, /* "sha256:" and hex */
	WORDS_MAX = 16,
	BLOCK = 64 * 1024,
	CA_MAX = 4 * 1024 * 1024,
};

static const char spec_type[] = KIT_TYPE "v2.spec+yaml";
static const char zip_type[] = KIT_TYPE "v1.content.zip";
static const char empty_type[] = "application/vnd.oci.empty.v1+json";
static const char tar_type[] = "application/vnd.oci.image.layer.v1.tar";

struct blob {
	const char *type, *digest; /* borrowed from the manifest */
	uint64_t size;
};

struct oci {
	const struct kit_fetch *f;
	char digest[SUM_TEXT + 1]; /* of the manifest */
	json_t *manifest;
	struct blob config, layer;
};

/* A registry on this machine speaks HTTP. */
static bool on_loopback(const char *where)
{
	return starts_with(where, "localhost:") || starts_with(where, "localhost/") ||
	       starts_with(where, "127.");
}

/* One object of the manifest: its type, a digest that is one, and its size. */
static int take_blob(json_t *j, struct blob *ret)
{
	json_int_t size = -1;
	struct blob b;

	if (json_unpack(j, "{s:s, s:s, s:I}", "mediaType", &b.type, "digest", &b.digest, "size",
			&size) < 0)
		return -EINVAL;
	if (strlen(b.digest) != SUM_TEXT || !starts_with(b.digest, "sha256:") ||
	    strspn(b.digest + 7, "0123456789abcdef") != SUM_TEXT - 7 || size < 0 ||
	    size > KIT_TREE_BYTES_MAX)
		return -EINVAL;
	b.size = (uint64_t)size;
	*ret = b;
	return 0;
}

static bool is_kit(const struct oci *o, const char *artifact)
{
	if (streq(o->layer.type, zip_type))
		return true;
	return starts_with(artifact, KIT_TYPE) && streq(o->config.type, spec_type) &&
	       o->config.size <= KIT_SPEC_MAX &&
	       (starts_with(o->layer.type, tar_type) || streq(o->layer.type, empty_type));
}

/* What the registry said, believed as far as it is written here. */
static int take_manifest(struct oci *o, const void *p, size_t n, struct err *e)
{
	const char *artifact = "";
	json_t *config = NULL, *layers = NULL;

	o->manifest = json_loadb(p, n, JSON_REJECT_DUPLICATES, NULL);
	if (!o->manifest || json_unpack(o->manifest, "{s?s, s?o, s?o}", "artifactType", &artifact,
					"config", &config, "layers", &layers) < 0)
		return err_set(e, -EINVAL, "the registry's manifest cannot be read");
	if (!config || !layers)
		return err_set(e, -EINVAL, "it is not a kit");
	if (json_array_size(layers) != 1)
		return err_set(e, -EINVAL,
			       artifact[0] ? "a kit has one layer, and this has %zu"
					   : "it is an image, not a kit (%zu layers)",
			       json_array_size(layers));
	if (take_blob(config, &o->config) < 0 ||
	    take_blob(json_array_get(layers, 0), &o->layer) < 0)
		return err_set(e, -EINVAL,
			       "the registry's manifest is damaged, or it is too large");
	return is_kit(o, artifact) ? 0
				   : err_set(e, -EINVAL, "it is '%.100s', not a kit",
					     artifact[0] ? artifact : o->config.type);
}

/* Our environment, with the way out that the settings say. The array is the caller's; what is in it is not. */
static const char **environment(const char *const *over)
{
	const char **v;
	size_t n = 0, k = 0, i, j;

	while (environ[n])
		n++;
	for (i = 0; over[i]; i++)
		n++;
	v = calloc(n + 1, sizeof(*v));
	for (i = 0; v && environ[i]; i++) {
		const size_t name = strcspn(environ[i], "=") + 1;

		for (j = 0; over[j] && strncmp(over[j], environ[i], name) != 0; j++)
			;
		if (!over[j])
			v[k++] = environ[i];
	}
	for (i = 0; v && over[i]; i++)
		v[k++] = over[i];
	return v;
}

/* The authorities of the settings, as files below work/certs. */
static int copy_authorities(const struct kit_fetch *f, struct err *e)
{
	_free_ char *certs = dirs_join(f->work, CERTS);
	size_t i, n = 0;
	int r = 0;

	if (!certs)
		return err_errno(e, -ENOMEM, "cannot fetch it");
	if (mkdir(certs, 0700) < 0)
		return err_errno(e, -errno, "cannot make a directory in the cache");
	for (i = 0; r == 0 && f->ca[i]; i++) {
		_free_ char *text = NULL, *to = NULL;

		r = fd_read_file(AT_FDCWD, f->ca[i], CA_MAX, &text, &n);
		if (r < 0)
			return err_errno(e, r, "tls.extraCa: cannot read %s", f->ca[i]);
		if (asprintf(&to, "%s/%zu.crt", certs, i) < 0)
			return err_errno(e, -ENOMEM, "cannot fetch it");
		r = fd_replace_file(AT_FDCWD, to, 0600, text, n);
		if (r < 0)
			return err_errno(e, r, "cannot write to the cache");
	}
	return 0;
}

static int skopeo(const struct oci *o, const char *const *words, struct buf *out, uint64_t ms,
		  struct err *e)
{
	static const char *const before[] = { "prlimit", "--fsize=134217728", "--core=0", "skopeo",
					      "--insecure-policy" };
	const char *argv[WORDS_MAX] = { NULL };
	_free_ const char **env = environment(o->f->env);
	_free_ char *there = NULL;
	char said[ERR_MSG_MAX / 2];
	size_t n = 0, i;
	int r;

	if (!env)
		return err_errno(e, -ENOMEM, "cannot fetch it");
	if (sys_find("skopeo", &there, e) < 0)
		return e->code;
	for (i = 0; i < ARRAY_SIZE(before); i++)
		argv[n++] = before[i];
	for (i = 0; words[i] && n + 1 < WORDS_MAX; i++)
		argv[n++] = words[i];
	r = sys_run(&(struct sys_cmd) { .argv = argv,
					.env = env,
					.dir = o->f->work,
					.group = true,
					.out = out,
					.deadline_ms = ms },
		    e);
	if (r > 0 && image_skopeo_message(e->msg, said, sizeof(said)))
		return err_set(e, -EIO, "cannot fetch it: skopeo: %s", said);
	if (r > 0)
		e->code = -EIO;
	return r ? err_ctx(e, "cannot fetch it") : 0;
}

static void hex(char *dst, const uint8_t sum[SHA256_SIZE])
{
	for (size_t i = 0; i < SHA256_SIZE; i++)
		(void)snprintf(dst + 2 * i, 3, "%02x", sum[i]);
}

static int get_manifest(struct oci *o, struct err *e)
{
	const struct kit_ref *k = o->f->ref;
	struct buf out = BUF_INIT(MANIFEST_MAX + 1);
	char from[KIT_REF_MAX + 128];
	const char *words[] = { "inspect", "--raw", "--tls-verify=true", from, NULL, NULL };
	uint8_t sum[SHA256_SIZE];
	struct sha256 s;
	int r;

	(void)snprintf(from, sizeof(from), "docker://%s%s%s", k->where,
		       k->digest ? "@sha256:" : ":", k->digest ? k->digest : k->rev);
	if (on_loopback(k->where))
		words[2] = "--tls-verify=false";
	if (o->f->ca[0])
		words[4] = "--cert-dir=" CERTS;
	r = skopeo(o, words, &out, ASK_MS, e);
	if (r == 0 && out.n > MANIFEST_MAX)
		r = err_set(e, -EFBIG, "the registry's manifest is too large");
	if (r == 0) {
		sha256_init(&s);
		sha256_add(&s, buf_data(&out), out.n);
		sha256_end(&s, sum);
		memcpy(o->digest, "sha256:", 7);
		hex(o->digest + 7, sum);
		if (k->digest && !streq(o->digest + 7, k->digest))
			r = err_set(e, -EBADMSG, "the registry gave another manifest (%s)",
				    o->digest);
	}
	if (r == 0)
		r = take_manifest(o, buf_data(&out), out.n, e);
	buf_done(&out);
	return r;
}

static int get_layout(struct oci *o, struct err *e)
{
	char from[KIT_REF_MAX + 128];
	const char *words[] = { "copy", "-q", "--src-tls-verify=true", from, "oci:layout:kit",
				NULL,   NULL };

	(void)snprintf(from, sizeof(from), "docker://%s@%s", o->f->ref->where, o->digest);
	if (on_loopback(o->f->ref->where))
		words[2] = "--src-tls-verify=false";
	if (o->f->ca[0])
		words[5] = "--src-cert-dir=" CERTS;
	return skopeo(o, words, NULL, FETCH_MS, e);
}

/* Has the file the size and content that the blob's name says? It is read to its end. */
static bool is_blob(int fd, const struct blob *b, void *block)
{
	char got[65];
	uint8_t sum[SHA256_SIZE];
	struct sha256 s;
	uint64_t size = 0;
	ssize_t n;

	sha256_init(&s);
	while ((n = fd_read_all(fd, block, BLOCK)) > 0) {
		sha256_add(&s, block, (size_t)n);
		size += (uint64_t)n;
	}
	sha256_end(&s, sum);
	hex(got, sum);
	return n == 0 && size == b->size && streq(got, b->digest + 7);
}

/* The file of a blob, from its beginning. */
static int open_blob(const struct oci *o, const struct blob *b, int *ret, struct err *e)
{
	_free_ char *path = NULL;
	_free_ void *block = NULL;
	_close_ int fd = -1;

	if (asprintf(&path, "%s/layout/blobs/sha256/%s", o->f->work, b->digest + 7) < 0)
		return err_errno(e, -ENOMEM, "cannot read it");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_errno(e, -errno, "cannot read what was fetched");
	block = malloc(BLOCK);
	if (!block)
		return err_errno(e, -ENOMEM, "cannot read it");
	if (!is_blob(fd, b, block) || lseek(fd, 0, SEEK_SET) < 0)
		return err_set(e, -EBADMSG, "what was fetched is not what the manifest names");
	*ret = take_fd(&fd);
	return 0;
}

static int put_spec(const struct oci *o, struct err *e)
{
	_close_ int fd = -1;
	_free_ char *text = NULL;
	ssize_t n;
	int r = open_blob(o, &o->config, &fd, e);

	if (r < 0)
		return r;
	text = malloc(KIT_SPEC_MAX);
	n = text ? fd_read_all(fd, text, KIT_SPEC_MAX) : -ENOMEM;
	r = n < 0 ? (int)n : fd_replace_file(o->f->raw_fd, "spec.yaml", 0600, text, (size_t)n);
	return r < 0 ? err_errno(e, r, "cannot copy the specification") : 0;
}

/* home/agent is files/home, workspace is files/workspace; what else the layer has is not looked at. */
static int put_files(const struct oci *o, struct err *e)
{
	static const char *const pairs[][2] = { { "layer/home/agent", "files/home" },
						{ "layer/workspace", "files/workspace" } };
	_free_ char *to = dirs_join(o->f->work, "layer");
	_close_ int fd = -1, work = -1;
	int r;

	if (!to || mkdir(to, 0700) < 0 || mkdirat(o->f->raw_fd, "files", 0700) < 0)
		return err_errno(e, to ? -errno : -ENOMEM, "cannot copy its files");
	r = open_blob(o, &o->layer, &fd, e);
	if (r == 0)
		r = kit_fetch_tar(fd, to, e);
	if (r < 0)
		return r;
	work = open(o->f->work, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		if (renameat(work, pairs[i][0], o->f->raw_fd, pairs[i][1]) < 0 && errno != ENOENT)
			return err_errno(e, -errno, "cannot copy its files");
	return 0;
}

static int put_zip(const struct oci *o, struct err *e)
{
	_close_ int fd = -1;
	int r = open_blob(o, &o->layer, &fd, e);

	return r == 0 ? kit_fetch_zip(fd, o->f->raw, e) : r;
}

int kit_fetch_oci(const struct kit_fetch *f, char **ret_text, struct err *e)
{
	struct oci o = { .f = f };
	char *text = NULL;
	int r = copy_authorities(f, e);

	if (r == 0)
		r = get_manifest(&o, e);
	if (r == 0)
		r = get_layout(&o, e);
	if (r == 0 && streq(o.layer.type, zip_type)) {
		r = put_zip(&o, e);
	} else if (r == 0) {
		r = put_spec(&o, e);
		if (r == 0 && !streq(o.layer.type, empty_type))
			r = put_files(&o, e);
	}
	if (r == 0 && asprintf(&text, "oci://%s@%s", f->ref->where, o.digest) < 0)
		r = err_errno(e, -ENOMEM, "cannot fetch it");
	if (r == 0)
		*ret_text = text;
	json_decref(o.manifest);
	return r;
}
