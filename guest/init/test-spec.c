/* What runc is told, and what it is told instead. */
#include <stdio.h>

#include "base/check.h"
#include "guest/init/spec.h"

static const char *const names[] = { "SSL_CERT_FILE", "PIP_CERT" };

#define WHERE "/dev/trust"
#define MOUNT "{\"destination\":\"/dev/trust\"}"

static int read_it(struct spec *s, enum spec_kind kind, const char *text)
{
	return spec_read(s, kind, text, strlen(text), names, ARRAY_SIZE(names), WHERE);
}

/* text, changed */
static void becomes(enum spec_kind kind, const char *text, const char *want)
{
	struct buf out = BUF_INIT(4096);
	struct spec s;

	check(read_it(&s, kind, text) == 0);
	check(spec_write(&out, &s, text, strlen(text), MOUNT, "\"A=1\",\"B=2\"") == 0);
	check(streq(buf_str(&out), want));
	buf_done(&out);
}

static void changes(void)
{
	becomes(SPEC_CONTAINER, "{\"mounts\":[],\"process\":{\"env\":[]}}",
		"{\"mounts\":[" MOUNT "],\"process\":{\"env\":[\"A=1\",\"B=2\"]}}");
	becomes(SPEC_CONTAINER,
		" {\"process\" : {\"args\":[\"a]\"], \"env\":[\"X=]\" ] } ,\n\"mounts\":[ {} ]}\n",
		" {\"process\" : {\"args\":[\"a]\"], \"env\":[\"X=]\" ,\"A=1\",\"B=2\"] } "
		",\n\"mounts\":[ {} ," MOUNT "]}\n");
	/* a list that is not there gets nothing */
	becomes(SPEC_CONTAINER, "{\"mounts\":null,\"process\":{}}",
		"{\"mounts\":null,\"process\":{}}");
	becomes(SPEC_PROCESS, "{\"cwd\":\"/\",\"env\":[\"A=0\"]}",
		"{\"cwd\":\"/\",\"env\":[\"A=0\",\"A=1\",\"B=2\"]}");
	/* only its own lists: not those of other names, or deeper */
	becomes(SPEC_CONTAINER,
		"{\"linux\":{\"mounts\":[1],\"process\":{\"env\":[1]}},\"env\":[2]}",
		"{\"linux\":{\"mounts\":[1],\"process\":{\"env\":[1]}},\"env\":[2]}");
}

static void looks(void)
{
	struct spec s;

	check(read_it(&s, SPEC_CONTAINER,
		      "{\"root\":{\"path\":\"/"
		      "a\\u002fb\\\"\\u00e9\\u20ac\",\"readonly\":true},\"mounts\":["
		      "{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"options\":[\"a\"]}],"
		      "\"process\":{\"env\":[\"PATH=/"
		      "bin\",\"PIP_CERT=\",\"SSL_CERT_FILES=1\"]}}") == 0);
	check(streq(s.root, "/a/b\"\xc3\xa9\xe2\x82\xac"));
	check(s.dev && !s.taken && s.has == 2 && s.env.there && !s.env.empty);
	check(read_it(&s, SPEC_CONTAINER,
		      "{\"mounts\":[{\"destination\":\"/dev\",\"type\":\"bind\"},"
		      "{\"type\":\"bind\",\"destination\":\"" WHERE "\"}]}") == 0);
	check(!s.dev && s.taken && !s.has && !*s.root);
	check(read_it(&s, SPEC_PROCESS, "{\"env\":[\"SSL_CERT_FILE\"]}") == 0);
	check(s.has == 1);
}

static void refuses(void)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{",
		"{}x",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"{,\"a\":1}",
		"{\"a\":[1,]}",
		"{\"a\":[1 2]}",
		"{\"a\":\"\\x\"}",
		"{\"a\":\"\\u12\"}",
		"{\"a\":\"\\u0000\"}",
		"{\"a\":\"\n\"}",
		"{\"a\":\"",
		"{\"a\":x}",
		"{\"mounts\":{}}",
		"{\"mounts\":[1]}",
		"{\"mounts\":[],\"mounts\":[]}",
		"{\"process\":[]}",
		"{\"process\":{\"env\":[1]}}",
		"{\"process\":{\"env\":{}}}",
		"{\"process\":{\"env\":[]},\"process\":{\"env\":[]}}",
		"{\"root\":1}",
		"{\"root\":{\"path\":1}}",
	};
	char deep[2 * SPEC_DEPTH + 16];
	struct spec s;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		check(read_it(&s, SPEC_CONTAINER, bad[i]) == -EBADMSG);
	check(spec_read(&s, SPEC_CONTAINER, "{}\0", 3, names, 2, WHERE) == -EBADMSG);
	check(spec_read(&s, SPEC_CONTAINER, "{}", (size_t)SPEC_MAX + 1, names, 2, WHERE) == -EFBIG);
	/* as deep as it may be, and one more */
	for (i = SPEC_DEPTH - 1; i <= SPEC_DEPTH; i++) {
		(void)snprintf(
			deep, sizeof(deep), "{\"a\":%.*s%.*s}", (int)i,
			"["
			"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
			(int)i,
			"]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
		check(read_it(&s, SPEC_CONTAINER, deep) == (i < SPEC_DEPTH ? 0 : -EBADMSG));
	}
}

/* A path that does not fit counts as none. */
static void long_path(void)
{
	struct buf text = BUF_INIT(3 * SPEC_PATH_MAX);
	struct spec s;
	int i, more;

	for (more = 0; more < 2; more++) {
		check(buf_add(&text, "{\"root\":{\"path\":\"", 17) == 0);
		for (i = 0; i < SPEC_PATH_MAX - 1 + more; i++)
			check(buf_add(&text, "p", 1) == 0);
		check(buf_add(&text, "\"}}", 3) == 0);
		check(read_it(&s, SPEC_CONTAINER, buf_str(&text)) == 0);
		check(strlen(s.root) == (more ? 0 : SPEC_PATH_MAX - 1));
		buf_consume(&text, text.n);
	}
	buf_done(&text);
}

static void quotes(void)
{
	struct buf out = BUF_INIT(64);

	check(spec_quote(&out, "a\"\\\n\x7f\xc3\xa9") == 0);
	check(streq(buf_str(&out), "\"a\\\"\\\\\\u000a\\u007f\xc3\xa9\""));
	buf_done(&out);
}

int main(void)
{
	changes();
	looks();
	refuses();
	long_path();
	quotes();
	return 0;
}
