/* Manifests, indexes and configurations: what is taken, and why the rest is not. */
#include "image/remote.h"

#include "base/check.h"

#define D   "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OCI "application/vnd.oci.image."
#define CONFIG \
	"\"config\":{\"mediaType\":\"" OCI "config.v1+json\",\"digest\":\"" D "\",\"size\":7}"
#define LAYER "{\"mediaType\":\"" OCI "layer.v1.tar+gzip\",\"digest\":\"" D "\",\"size\":9}"
#define TWO   "\"schemaVersion\":2,"
#define ONE(os, arch) \
	"{\"digest\":\"" D "\",\"size\":1,\"platform\":{\"os\":\"" os \
	"\",\"architecture\":\"" arch "\"}}"

static const struct {
	const char *text;
	int r;
	const char *says;
} rows[] = {
	{ "{" TWO CONFIG ",\"layers\":[" LAYER "," LAYER "]}", 0, "" },
	{ "{" TWO "\"manifests\":[" ONE("linux", "arm64") "," ONE("linux", "amd64") "]}", 1, "" },
	{ "{" TWO "\"manifests\":[" ONE("linux", "arm64") "," ONE("unknown", "unknown") "]}",
	  -ENOENT, "it is not there for linux/amd64 (there is: linux/arm64)" },
	{ "{" TWO "\"manifests\":[]}", -ENOENT, "(there is: nothing)" },
	{ "{" TWO "\"manifests\":{}}", -EBADMSG, "index" },
	{ "{" TWO "\"manifests\":[],\"layers\":[]}", -EBADMSG, "two ways" },
	{ "{\"schemaVersion\":1}", -EMEDIUMTYPE, "schema 1" },
	{ "{}", -EMEDIUMTYPE, "not an image" },
	{ "", -EBADMSG, "not JSON" },
	{ "[]", -EBADMSG, "not JSON" },
	{ "{" TWO "\"a\":1,\"a\":2}", -EBADMSG, "not JSON" },
	{ "{" TWO CONFIG "}", -EBADMSG, "no layers" },
	{ "{" TWO CONFIG ",\"layers\":[]}", -EBADMSG, "no layers" },
	{ "{" TWO CONFIG ",\"layers\":[{}]}", -EBADMSG, "not SHA-256" },
	{ "{" TWO CONFIG ",\"layers\":[{\"digest\":\"" D "\",\"size\":-1}]}", -EBADMSG, "size" },
	{ "{" TWO CONFIG ",\"layers\":[{\"digest\":\"" D "\",\"size\":1e3}]}", -EBADMSG, "size" },
	{ "{" TWO CONFIG ",\"layers\":[{\"digest\":\"" D "\",\"size\":9223372036854775807}]}",
	  -EBADMSG, "size" },
	{ "{" TWO CONFIG ",\"layers\":[{\"mediaType\":\"text/plain\",\"digest\":\"" D
	  "\",\"size\":1}]}",
	  -EMEDIUMTYPE, "text/plain" },
	{ "{" TWO
	  "\"config\":{\"mediaType\":\"application/vnd.cncf.helm.config.v1+json\",\"digest\":\"" D
	  "\",\"size\":7},\"layers\":[" LAYER "]}",
	  -EMEDIUMTYPE, "artifact (application/vnd.cncf.helm" },
	{ "{" TWO "\"mediaType\":\"a\\\"b\"," CONFIG ",\"layers\":[" LAYER "]}", -EMEDIUMTYPE,
	  "not an image" },
	{ "{" TWO "\"artifactType\":\"application/x\"," CONFIG ",\"layers\":[" LAYER "]}",
	  -EMEDIUMTYPE, "artifact (application/x)" },
};

static const struct image_platform amd64 = { "linux", "amd64", "" };

static void test_manifests(void)
{
	static struct image_remote m;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct image_blob child = { 0 };
		struct err e = { 0 };
		int r = image_remote_manifest(rows[i].text, strlen(rows[i].text), &amd64, &m,
					      &child, &e);

		if (r != rows[i].r || !strstr(e.msg, rows[i].says))
			(void)fprintf(stderr, "%s: %d %s\n", rows[i].text, r, e.msg);
		check(r == rows[i].r);
		check(strstr(e.msg, rows[i].says));
		if (r == 0)
			check(m.n == 2 && m.layers[1].size == 9 && m.config.size == 7);
		if (r == 1)
			check(child.size == 1);
	}
}

static void test_too_many(void)
{
	static struct image_remote m;
	char *text = NULL;
	size_t n = 0, i;
	FILE *f = open_memstream(&text, &n);
	struct image_blob child;
	struct err e;

	check(f);
	(void)fputs("{" TWO CONFIG ",\"layers\":[", f);
	for (i = 0; i <= IMAGE_REMOTE_LAYERS_MAX; i++)
		(void)fprintf(f, "%s" LAYER, i ? "," : "");
	(void)fputs("]}", f);
	check(fclose(f) == 0);
	check(image_remote_manifest(text, n, &amd64, &m, &child, &e) == -E2BIG);
	free(text);
}

static void test_config(void)
{
	static const struct {
		const char *text;
		int r;
	} v[] = {
		{ "{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":[\"" D
		  "\"]}}",
		  0 },
		{ "{\"os\":\"linux\",\"architecture\":\"arm64\",\"rootfs\":{\"diff_ids\":[\"" D
		  "\"]}}",
		  -ENOENT },
		{ "{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":[]}}",
		  -EBADMSG },
		{ "{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":[\"x\"]}}",
		  -EBADMSG },
		{ "{\"os\":\"linux\",\"architecture\":\"amd64\"}", -EBADMSG },
		{ "x", -EBADMSG },
	};
	static struct image_remote m = { .n = 1 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(v); i++) {
		struct err e;

		check(image_remote_config(v[i].text, strlen(v[i].text), &amd64, &m, &e) == v[i].r);
	}
	check(streq(m.diffs[0], &D[strlen("sha256:")]));
}

static void test_platforms(void)
{
	static const char *const bad[] = { "",
					   "linux",
					   "linux/",
					   "/amd64",
					   "linux/amd64/v2/x",
					   "Linux/amd64",
					   "linux/amd64/",
					   "linux/aaaaaaaaaaaaaaaa" };
	struct image_platform p;
	struct err e;
	size_t i;

	check(image_platform_parse("linux/arm64/v8", &p, &e) == 0);
	check(streq(p.arch, "arm64") && streq(p.variant, "v8"));
	check(image_platform_parse(NULL, &p, &e) == 0 && streq(p.os, "linux") && p.arch[0]);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		check(image_platform_parse(bad[i], &p, &e) == -EINVAL);
}

int main(void)
{
	test_manifests();
	test_too_many();
	test_config();
	test_platforms();
	return 0;
}
