/* The JSON of images: what is taken, what is refused and in which words, and each limit at its edge. */
#include "image/oci.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/check.h"

#define D1     "1111111111111111111111111111111111111111111111111111111111111111"
#define D2     "2222222222222222222222222222222222222222222222222222222222222222"
#define OCI    "application/vnd.oci.image."
#define DOCKER "application/vnd.docker."

static struct err e;

static bool said(const char *text)
{
	if (!strstr(e.msg, text))
		(void)fprintf(stderr, "said: %s\n", e.msg);
	return strstr(e.msg, text) != NULL;
}

/* ---- configurations ---- */

static int config(const char *text, struct oci_config *c)
{
	return oci_config_parse(text, strlen(text), "amd64", c, &e);
}

static bool no_config(const char *text, const char *why)
{
	struct oci_config c;

	return config(text, &c) < 0 && said(why);
}

#define HEAD \
	"{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":[\"sha256:" D1 \
	"\"]},"

static void configs(void)
{
	struct oci_config c;

	check(config(HEAD "\"config\":{\"Env\":[\"A=1\",\"odd\",\"=x\",\"B=\"],\"Cmd\":[\"sh\"],"
			  "\"Entrypoint\":null,\"User\":\"1000:1000\",\"WorkingDir\":\"/w\","
			  "\"Labels\":{\"a.b\":\"c=d\"},\"Unknown\":[1]}}",
		     &c) == 0);
	check(c.n == 1 && streq(c.diffs[0], D1));
	check(streq(c.config.env[0], "A=1") && streq(c.config.env[1], "B=") && !c.config.env[2]);
	check(streq(c.config.cmd[0], "sh") && !c.config.cmd[1] && !c.config.entrypoint[0]);
	check(streq(c.config.user, "1000:1000") && streq(c.config.workdir, "/w"));
	check(streq(c.config.labels[0], "a.b=c=d") && streq(c.config.arch, "amd64"));
	oci_config_done(&c);
	/* next to nothing; a folder that is not absolute is none */
	check(config(HEAD "\"config\":{\"WorkingDir\":\"w\"}}", &c) == 0);
	check(!c.config.env[0] && !*c.config.workdir && !*c.config.user);
	oci_config_done(&c);
	check(config(HEAD "\"x\":1}", &c) == 0);
	oci_config_done(&c);

	check(no_config("{\"os\":\"linux\",\"architecture\":\"arm64\"}",
			"for linux/arm64; sandboxes run linux/amd64"));
	check(e.code == -ENOEXEC);
	check(no_config("{\"os\":\"windows\",\"architecture\":\"amd64\"}", "windows/amd64"));
	check(no_config("{}", "unknown/unknown"));
	check(no_config("[]", "not an object") && no_config("", "not valid: line"));
	check(no_config("{\"os\":\"linux\",\"architecture\":\"amd64\"}", "names no layers"));
	check(no_config("{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":["
			"\"sha256:xyz\"]}}",
			"diff_ids[0] is not"));
	check(no_config(HEAD "\"config\":{\"Env\":\"A=1\"}}", "Env is not a list"));
	check(no_config(HEAD "\"config\":{\"Cmd\":[1]}}", "Cmd[0] is not a string"));
	check(no_config(HEAD "\"config\":{\"User\":5}}", "User is not a string"));
	check(no_config(HEAD "\"config\":[]}", "config is not an object"));
	check(no_config(HEAD "\"config\":{\"Labels\":{\"a\":1}}}", "a label is not"));
	check(no_config(HEAD "\"os\":\"linux\"}", "duplicate"));
	check(no_config(HEAD "\"config\":{\"Cmd\":[\"a\\u0000b\"]}}", "NUL"));
}

/* text, n times what is between, and the end. */
static char *many(const char *text, const char *what, size_t n, const char *end)
{
	struct buf b = BUF_INIT(16UL << 20);
	char *s;

	check(buf_printf(&b, "%s", text) == 0);
	for (size_t i = 0; i < n; i++)
		check(buf_printf(&b, "%s%s", i ? "," : "", what) == 0);
	check(buf_printf(&b, "%s", end) == 0);
	s = strdup(buf_str(&b));
	buf_done(&b);
	return s;
}

static void config_limits(void)
{
	static const char diffs[] =
		"{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":[";
	_free_ char *fits = many(diffs, "\"sha256:" D2 "\"", OCI_LAYERS_MAX, "]}}");
	_free_ char *over = many(diffs, "\"sha256:" D2 "\"", OCI_LAYERS_MAX + 1, "]}}");
	_free_ char *env = many(HEAD "\"config\":{\"Env\":[", "\"A=1\"", OCI_ENV_MAX, "]}}");
	_free_ char *env_over =
		many(HEAD "\"config\":{\"Env\":[", "\"A=1\"", OCI_ENV_MAX + 1, "]}}");
	_free_ char *deep = many(HEAD "\"a\":", "[", 0, "");
	_free_ char *bytes = malloc(OCI_ENV_BYTES_MAX + 1);
	struct buf b = BUF_INIT(1 << 20);
	struct oci_config c;

	check(config(fits, &c) == 0 && c.n == OCI_LAYERS_MAX);
	oci_config_done(&c);
	check(no_config(over, "more than 127 layers"));
	check(config(env, &c) == 0);
	oci_config_done(&c);
	check(no_config(env_over, "Env has more than"));
	check(bytes != NULL);
	memset(bytes, 'x', OCI_ENV_BYTES_MAX);
	bytes[OCI_ENV_BYTES_MAX] = '\0';
	check(buf_printf(&b,
			 HEAD "\"config\":{\"Env\":[\"A=%.8000s\",\"B=%.8000s\",\"C=%.8000s\"]}}",
			 bytes, bytes, bytes) == 0);
	check(no_config(buf_str(&b), "more than 16 KiB"));
	buf_consume(&b, b.n);
	check(buf_printf(&b, "%s", deep) == 0);
	for (int i = 0; i < 100; i++)
		check(buf_add(&b, "[", 1) == 0);
	check(no_config(buf_str(&b), "nested too deeply"));
	buf_done(&b);
}

/* ---- manifests and indexes ---- */

static int manifest(const char *type, const char *config_type, const char *layer_type, size_t *ret)
{
	struct oci_manifest m;
	char text[1024];
	int r;

	(void)snprintf(text, sizeof(text),
		       "{\"schemaVersion\":2,\"mediaType\":\"%s\",\"config\":{\"mediaType\":\"%s\","
		       "\"digest\":\"sha256:" D1 "\",\"size\":5},\"layers\":[{\"mediaType\":\"%s\","
		       "\"digest\":\"sha256:" D2 "\",\"size\":7}]}",
		       type, config_type, layer_type);
	r = oci_kind(text, strlen(text), "", &e);
	if (r == 0)
		r = oci_manifest_parse(text, strlen(text), &m, &e);
	if (r < 0)
		return r;
	*ret = m.n;
	check(streq(m.config.digest, D1) && streq(m.layers[0].digest, D2) && m.layers[0].size == 7);
	oci_manifest_done(&m);
	return 0;
}

static void manifests(void)
{
	static const char oci[] = OCI "manifest.v1+json", oci_config[] = OCI "config.v1+json";
	static const char docker[] = DOCKER "distribution.manifest.v2+json";
	static const char docker_config[] = DOCKER "container.image.v1+json";
	struct oci_manifest m;
	size_t n;

	check(manifest(oci, oci_config, OCI "layer.v1.tar+zstd", &n) == 0 && n == 1);
	check(manifest("", oci_config, OCI "layer.v1.tar", &n) == 0);
	check(manifest(docker, docker_config, DOCKER "image.rootfs.diff.tar.gzip", &n) == 0);
	check(manifest(docker, docker_config, DOCKER "image.rootfs.foreign.diff.tar.gzip", &n) < 0);
	check(said("layer 1 may not be passed on"));
	check(manifest(oci, oci_config, OCI "layer.nondistributable.v1.tar+gzip", &n) < 0);
	check(said("may not be passed on"));
	check(manifest(oci, oci_config, OCI "layer.v1.tar+gzip+encrypted", &n) < 0);
	check(said("does not know: '" OCI "layer.v1.tar+gzip+encrypted'"));
	check(manifest(oci, "application/vnd.cncf.helm.config.v1+json", OCI "layer.v1.tar", &n) <
	      0);
	check(said("an artifact (application/vnd.cncf.helm.config.v1+json), not an image"));
	check(manifest(DOCKER "distribution.manifest.v1+prettyjws", oci_config, "", &n) < 0);
	check(said("schema 1"));
	check(manifest("text/html", oci_config, "", &n) < 0 && said("'text/html' is not an image"));
	check(oci_kind("{\"fsLayers\":[]}", 15, "", &e) < 0 && said("schema 1"));
	check(oci_kind("{\"artifactType\":\"a/b\"}", 22, "", &e) < 0 && said("artifact (a/b)"));
	check(oci_kind("{\"manifests\":[]}", 16, "", &e) == 1);
	check(oci_kind("{}", 2, OCI "index.v1+json", &e) == 1);
	check(oci_manifest_parse("{\"layers\":[]}", 13, &m, &e) < 0 && said("descriptor"));
}

static void indexes(void)
{
	static const char text[] =
		"{\"manifests\":[{\"mediaType\":\"t\",\"digest\":\"sha256:" D1 "\",\"size\":1,"
		"\"platform\":{\"os\":\"linux\",\"architecture\":\"arm64\"},\"annotations\":{"
		"\"org.opencontainers.image.ref.name\":\"3\","
		"\"io.containerd.image.name\":\"docker.io/library/alpine:3\"}},"
		"{\"digest\":\"sha256:" D2 "\",\"size\":2,\"annotations\":{"
		"\"vnd.docker.reference.type\":\"attestation-manifest\"}}]}";
	static const char *const wrong[] = {
		"{}",
		"{\"manifests\":{}}",
		"{\"manifests\":[1]}",
		"{\"manifests\":[{\"digest\":\"sha512:" D1 "\",\"size\":1}]}",
		"{\"manifests\":[{\"digest\":\"sha256:" D1 "\",\"size\":-1}]}",
		"{\"manifests\":[{\"digest\":\"sha256:" D1 "\"}]}",
		"{\"manifests\":[{\"digest\":\"sha256:" D1 "\",\"size\":1,\"platform\":[]}]}",
	};
	_free_ char *over = many("{\"manifests\":[", "{\"digest\":\"sha256:" D1 "\",\"size\":1}",
				 OCI_IMAGES_MAX + 1, "]}");
	struct oci_index x;

	check(oci_index_parse(text, strlen(text), &x, &e) == 0 && x.n == 2);
	check(streq(x.v[0].arch, "arm64") && streq(x.v[0].name, "docker.io/library/alpine:3"));
	check(!x.v[0].attestation && x.v[1].attestation && x.v[1].size == 2 && !*x.v[1].os);
	oci_index_done(&x);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		check(oci_index_parse(wrong[i], strlen(wrong[i]), &x, &e) == -EINVAL);
	check(oci_index_parse(over, strlen(over), &x, &e) < 0 && said("more than 256 entries"));
}

static bool no_docker(const char *text, const char *why)
{
	struct oci_docker *v;
	size_t n;

	return oci_docker_parse(text, strlen(text), &v, &n, &e) < 0 && said(why);
}

static void dockers(void)
{
	static const char text[] =
		"[{\"Config\":\"a.json\",\"RepoTags\":[\"x:1\",\"y\"],\"Layers\":["
		"\"b/layer.tar\"]},{\"Config\":\"c\",\"RepoTags\":null,\"Layers\":["
		"\"..d\"]}]";
	struct oci_docker *v;
	size_t n;

	check(oci_docker_parse(text, strlen(text), &v, &n, &e) == 0 && n == 2);
	check(streq(v[0].config, "a.json") && streq(v[0].tags[1], "y") && !v[0].tags[2]);
	check(streq(v[0].layers[0], "b/layer.tar") && !v[1].tags[0]);
	oci_docker_done(v, n);
	check(no_docker("{}", "not a list") && no_docker("[]", "not a list"));
	check(no_docker("[1]", "not an object"));
	check(no_docker("[{\"Config\":\"../a\",\"Layers\":[\"b\"]}]", "Config '../a'"));
	check(no_docker("[{\"Config\":\"a\",\"Layers\":[\"/b\"]}]", "Layers[0]"));
	check(no_docker("[{\"Config\":\"a\",\"Layers\":[\"x/../../b\"]}]", "Layers[0]"));
	check(no_docker("[{\"Config\":\"a\",\"Layers\":[]}]", "Layers is empty"));
	check(no_docker("[{\"Layers\":[\"a\"]}]", "Config ''"));
}

/* ---- tags ---- */

static bool plain(const char *tag, const char *want)
{
	char got[IMAGE_TAG_MAX + 1];

	return image_tag_plain(tag, got, &e) == 0 && streq(got, want);
}

static void tags(void)
{
	char got[IMAGE_TAG_MAX + 1], name[IMAGE_TAG_MAX + 2];

	check(plain("alpine", "alpine") && plain("alpine:latest", "alpine"));
	check(plain("x:latest", "x"));
	check(plain("docker.io/library/alpine:3", "alpine:3"));
	check(plain("docker.io/team/x:latest", "team/x"));
	check(plain("library/x", "library/x") && plain("localhost:5000/x:1", "localhost:5000/x:1"));
	check(plain("a:latestx", "a:latestx"));
	check(image_tag_plain("", got, &e) == -EINVAL && image_tag_plain(":latest", got, &e) < 0);
	check(image_tag_plain("a b", got, &e) < 0 && image_tag_plain("a//b", got, &e) < 0);
	check(image_tag_plain("../a", got, &e) < 0 && image_tag_plain("a:", got, &e) < 0);
	check(image_tag_plain("a@sha256:00", got, &e) < 0);
	memset(name, 'a', sizeof(name));
	name[IMAGE_TAG_MAX + 1] = '\0';
	check(image_tag_plain(name, got, &e) < 0);
	name[IMAGE_TAG_MAX] = '\0';
	check(image_tag_plain(name, got, &e) == 0);
}

int main(void)
{
	configs();
	config_limits();
	manifests();
	indexes();
	dockers();
	tags();
	return 0;
}
