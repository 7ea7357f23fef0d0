/* Names of images: what is one, and its one spelling. */
#include "image/ref.h"

#include "base/check.h"

#define D   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

enum { BAD = -EINVAL, BARE = 1 };

static const struct {
	const char *in;
	int r;
	const char *out, *domain, *tag;
} rows[] = {
	{ "docker.io/library/alpine:3", 0, "docker.io/library/alpine:3", "docker.io", "3" },
	{ "docker.io/alpine", 0, "docker.io/library/alpine:latest", "docker.io", "latest" },
	{ "index.docker.io/alpine:3", 0, "docker.io/library/alpine:3", "docker.io", "3" },
	{ "docker.io/docker/sandbox-templates:shell", 0, "docker.io/docker/sandbox-templates:shell",
	  "docker.io", "shell" },
	{ "GHCR.io/a/b", 0, "ghcr.io/a/b:latest", "ghcr.io", "latest" },
	{ "LocalHost/a", 0, "localhost/a:latest", "localhost", "latest" },
	{ "localhost/a", 0, "localhost/a:latest", "localhost", "latest" },
	{ "localhost:5000/a/b:x", 0, "localhost:5000/a/b:x", "localhost:5000", "x" },
	{ "127.0.0.1:1/a", 0, "127.0.0.1:1/a:latest", "127.0.0.1:1", "latest" },
	{ "ghcr.io/a@sha256:" D, 0, "ghcr.io/a@sha256:" D, "ghcr.io", "" },
	{ "ghcr.io/a:1@sha256:" D, 0, "ghcr.io/a@sha256:" D, "ghcr.io", "1" },
	{ "a.b/c__d/e--f.g_h:_x.Y-1", 0, "a.b/c__d/e--f.g_h:_x.Y-1", "a.b", "_x.Y-1" },
	{ "a.b/c:" X64 X64, 0, "a.b/c:" X64 X64, "a.b", X64 X64 },
	/* no registry */
	{ "alpine", BARE },
	{ "alpine:3", BARE },
	{ "docker/sandbox-templates:shell", BARE },
	{ "a/b/c@sha256:" D, BARE },
	/* no name */
	{ "", BAD },
	{ "/", BAD },
	{ "a.b/", BAD },
	{ "a.b/c/", BAD },
	{ "a.b//c", BAD },
	{ "/a.b/c", BAD },
	{ "Mine/c", BAD },
	{ "a.b/C", BAD },
	{ "a.b/-c", BAD },
	{ "a.b/c-", BAD },
	{ "a.b/c..d", BAD },
	{ "a.b/c___d", BAD },
	{ "a.b/c._d", BAD },
	{ "a.b/../c", BAD },
	{ "a.b/c d", BAD },
	{ "a.b/c:", BAD },
	{ "a.b/c:-x", BAD },
	{ "a.b/c:x/y", BAD },
	{ "a.b/c:x y", BAD },
	{ "a.b/c:" X64 X64 "x", BAD },
	{ "a.b/c@", BAD },
	{ "a.b/c@sha256:12", BAD },
	{ "a.b/c@sha512:" D D, BAD },
	{ "a.b/c@sha256:" D "0", BAD },
	{ "a.b/c@sha256:" D "@sha256:" D, BAD },
	{ "a.b:/c", BAD },
	{ "a.b:0/c", BAD },
	{ "a.b:65536/c", BAD },
	{ "a.b:1x/c", BAD },
	{ "a.b:1:2/c", BAD },
	{ ".b/c", BAD },
	{ "a./c", BAD },
	{ "a..b/c", BAD },
	{ "-a.b/c", BAD },
	{ "a-.b/c", BAD },
	{ "u:p@a.b/c", BAD },
	{ "https://a.b/c", BAD },
	{ "docker://a.b/c", BAD },
	{ "--help", BAD },
	{ "a.b/--x", BAD },
};

static void test_rows(void)
{
	char text[IMAGE_REF_MAX + 1];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct image_ref r, again;
		struct err e = { 0 };
		int k = image_ref_parse(rows[i].in, &r, &e);

		if (k != rows[i].r)
			(void)fprintf(stderr, "'%s': %d\n", rows[i].in, k);
		check(k == rows[i].r);
		check((k < 0) == (e.msg[0] != 0));
		if (k != 0)
			continue;
		check(streq(image_ref_text(&r, text), rows[i].out));
		check(streq(r.domain, rows[i].domain) && streq(r.tag, rows[i].tag));
		check(image_ref_parse(text, &again, &e) == 0);
		check(streq(again.path, r.path) && streq(again.digest, r.digest));
	}
}

static void test_long(void)
{
	char s[IMAGE_REF_NAME_MAX + 16] = "a.b/";
	struct image_ref r;
	struct err e;

	memset(s + 4, 'x', IMAGE_REF_NAME_MAX - 4);
	check(image_ref_parse(s, &r, &e) == 0);
	s[IMAGE_REF_NAME_MAX] = 'x';
	check(image_ref_parse(s, &r, &e) == -EINVAL);
}

static void test_loopback(void)
{
	static const struct {
		const char *in;
		bool is;
	} v[] = { { "localhost/a", true },        { "localhost:5000/a", true },
		  { "127.0.0.1/a", true },        { "127.9.9.9:80/a", true },
		  { "127.example.org/a", false }, { "localhost.example/a", false },
		  { "192.168.0.1/a", false },     { "ghcr.io/a", false } };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(v); i++) {
		struct image_ref r;
		struct err e;

		check(image_ref_parse(v[i].in, &r, &e) == 0);
		check(image_ref_loopback(&r) == v[i].is);
	}
}

int main(void)
{
	test_rows();
	test_long();
	test_loopback();
	return 0;
}
