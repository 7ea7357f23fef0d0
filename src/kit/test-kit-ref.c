/* References of kits: each form, and what is not one. */
#include "base/check.h"
#include "kit/kit-ref.h"

#define SHA1   "0123456789abcdef0123456789abcdef01234567"
#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
	const char *text, *want; /* canonical, or part of the message */
	uint8_t kind;            /* 0: refused */
	bool local;
} refs[] = {
	{ "claude", "claude", KIT_REF_NAME, false },
	{ "docker-agent", "docker-agent", KIT_REF_NAME, false },
	{ ".", ".", KIT_REF_DIR, true },
	{ "./a b", "./a b", KIT_REF_DIR, true },
	{ "../k", "../k", KIT_REF_DIR, true },
	{ "/k", "/k", KIT_REF_DIR, true },
	{ "k.zip", "k.zip", KIT_REF_ZIP, true },
	{ "./d/k.ZIP", "./d/k.ZIP", KIT_REF_ZIP, true },
	{ "/git+https://x.zip", "git+https://, git+ssh:// or oci://", KIT_REF_DIR, true },
	{ "git+https://GitHub.com/a/b", "git+https://github.com/a/b", KIT_REF_GIT, false },
	{ "git+https://h:8443/a/b.git/", "git+https://h:8443/a/b.git", KIT_REF_GIT, false },
	{ "git+https://h/a#ref=v1.0&dir=kits/x", "git+https://h/a#ref=v1.0&dir=kits/x", KIT_REF_GIT,
	  false },
	{ "git+https://h/a#dir=x&ref=feature/y", "git+https://h/a#ref=feature/y&dir=x", KIT_REF_GIT,
	  false },
	{ "git+https://h/a#dir=x", "git+https://h/a#dir=x", KIT_REF_GIT, false },
	{ "git+https://h/a#ref=" SHA1, "git+https://h/a#ref=" SHA1, KIT_REF_GIT, false },
	{ "git+ssh://git@H/a/b", "git+ssh://git@h/a/b", KIT_REF_GIT, false },
	{ "git+ssh://h:22/~me/b", "git+ssh://h:22/~me/b", KIT_REF_GIT, false },
	{ "git+file:///srv/a.git", "git+file:///srv/a.git", KIT_REF_GIT, true },
	{ "git+https://h/a#", "git+https://h/a", KIT_REF_GIT, false },
	{ "ns/kit:1.0", "oci://docker.io/ns/kit:1.0", KIT_REF_OCI, false },
	{ "oci://ns/kit", "oci://docker.io/ns/kit:latest", KIT_REF_OCI, false },
	{ "oci://kit:1", "oci://docker.io/library/kit:1", KIT_REF_OCI, false },
	{ "docker.io/ns/kit:1", "oci://docker.io/ns/kit:1", KIT_REF_OCI, false },
	{ "index.docker.io/ns/kit:1", "oci://docker.io/ns/kit:1", KIT_REF_OCI, false },
	{ "localhost:5000/kit:1", "oci://localhost:5000/kit:1", KIT_REF_OCI, false },
	{ "r.example/a/b/c@sha256:" DIGEST, "oci://r.example/a/b/c@sha256:" DIGEST, KIT_REF_OCI,
	  false },
	{ "r.example/a:t@sha256:" DIGEST, "oci://r.example/a@sha256:" DIGEST, KIT_REF_OCI, false },
	/* refused */
	{ "", "is empty", 0, false },
	{ "-x", "neither an agent", 0, false },
	{ "x-", "neither an agent", 0, false },
	{ "Claude", "neither an agent", 0, false },
	{ "a\nb", "control characters", 0, false },
	{ "dir/kit", "a folder is written './dir/kit'", 0, false },
	{ "https://h/a", "git+https://, git+ssh:// or oci://", 0, false },
	{ "git+http://h/a", "git+https://, git+ssh:// or oci://", 0, false },
	{ "git+ext::sh -c id", "neither an agent", 0, false },
	{ "git+https://", "the URL has no repository", 0, false },
	{ "git+https://h", "the URL has no repository", 0, false },
	{ "git+https://h/", "the URL has no repository", 0, false },
	{ "git+https:///a", "'' is not a host", 0, false },
	{ "git+https://-oProxyCommand=id/a", "is not a host", 0, false },
	{ "git+ssh://-oProxyCommand=id@h/a", "is not a user's name", 0, false },
	{ "git+ssh://-oProxyCommand=id/a", "is not a host", 0, false },
	{ "git+ssh://h/-x", "is not a plain path", 0, false },
	{ "git+https://me:pw@h/a", "holds a name or password", 0, false },
	{ "git+https://good@evil/a", "holds a name or password", 0, false },
	{ "git+https://h/a/../../b", "is not a plain path", 0, false },
	{ "git+https://h/a//b", "is not a plain path", 0, false },
	{ "git+https://h/a%2e%2e/b", "is not a plain path", 0, false },
	{ "git+https://h/a?x=y", "is not a plain path", 0, false },
	{ "git+https://h:0/a", "is not a host", 0, false },
	{ "git+https://h:x/a", "is not a host", 0, false },
	{ "git+https://h..x/a", "is not a host", 0, false },
	{ "git+file://host/a", "the URL has no repository", 0, false },
	{ "git+https://h/a#main", "neither ref=REF nor dir=FOLDER", 0, false },
	{ "git+https://h/a#ref=a&ref=b", "ref= comes twice", 0, false },
	{ "git+https://h/a#ref=--upload-pack=id", "is not a branch, tag or commit", 0, false },
	{ "git+https://h/a#ref=a:b", "is not a branch, tag or commit", 0, false },
	{ "git+https://h/a#ref=a..b", "is not a branch, tag or commit", 0, false },
	{ "git+https://h/a#ref=a@{1}", "is not a branch, tag or commit", 0, false },
	{ "git+https://h/a#ref=", "is not a branch, tag or commit", 0, false },
	{ "git+https://h/a#dir=../x", "is not a folder of the repository", 0, false },
	{ "git+https://h/a#dir=/x", "is not a folder of the repository", 0, false },
	{ "git+https://h/a#dir=-x", "is not a folder of the repository", 0, false },
	{ "git+https://h/a#dir=:(glob)x", "is not a folder of the repository", 0, false },
	{ "oci://", "is not the name of a repository", 0, false },
	{ "oci://NS/kit:1", "is not the name of a repository", 0, false },
	{ "oci://ns/kit:-x", "is not a tag", 0, false },
	{ "ns/kit:", "is not a tag", 0, false },
	{ "ns/kit@sha256:12", "is not sha256: and 64 hex digits", 0, false },
	{ "ns/kit@md5:" DIGEST, "is not sha256: and 64 hex digits", 0, false },
	{ "ns/../kit:1", "is not the name of a repository", 0, false },
	{ "-r.example/kit:1", "is not a registry", 0, false },
};

static void forms(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(refs); i++) {
		struct kit_ref k = { 0 }, again = { 0 };
		struct err e = { 0 };
		int r = kit_ref_parse(refs[i].text, &k, &e);
		bool fine = refs[i].kind
				    ? r == 0 && k.kind == refs[i].kind && k.local == refs[i].local
				    : r == -EINVAL && strstr(e.msg, refs[i].want);

		if (refs[i].kind && refs[i].text[0] != '/')
			fine = fine && streq(k.text, refs[i].want);
		if (!fine)
			(void)fprintf(stderr, "'%s': %d '%s' '%s'\n", refs[i].text, r,
				      k.text ? k.text : "", e.msg);
		check(fine);
		if (r == 0) {
			check(kit_ref_parse(k.text, &again, &e) == 0 && streq(again.text, k.text));
			kit_ref_done(&again);
			kit_ref_done(&k);
		}
	}
}

static void allowed(void)
{
	static const struct {
		const char *ref, *list;
		bool yes;
	} rows[] = {
		{ "ns/kit:1", "[\"docker.io/\"]", true },
		{ "ns/kit:1", "docker.io", true },
		{ "ns/kit:1", "docker.io/n", false },
		{ "ns/kit:1", "docker.io/ns", true },
		{ "ns/kit:1", "docker.io/ns/kit", true },
		{ "ns/kit:1", "oci://docker.io/ns/", true },
		{ "ns/kit:1", "", false },
		{ "ns/kit:1", "[]", false },
		{ "ns/kit:1", "[\"*\"]", true },
		{ "ns/kit:1", "*", true },
		{ "docker.io.evil.example/ns/kit:1", "docker.io", false },
		{ "docker.io.evil.example/ns/kit:1", "docker.io/", false },
		{ "quay.io/a/b:1", "[\"docker.io/\", \"quay.io/a\"]", true },
		{ "quay.io/ab/b:1", "docker.io/,quay.io/a", false },
		{ "git+https://github.com/a/b#ref=x", "docker.io/", false },
		{ "git+https://github.com/a/b#ref=x", "github.com/a/", true },
		{ "git+https://github.com/a/b", "https://github.com/a/b", true },
		{ "git+https://github.com/a/b", "git+https://github.com/", true },
		{ "git+https://github.com/a/bc", "github.com/a/b", false },
		{ "git+https://github.com/a/b.git", "github.com/a/b.git", true },
		{ "git+ssh://git@github.com/a/b", "github.com/a", true },
		{ "git+ssh://git@github.com/a/b", "git+ssh://git@github.com/a", true },
		{ "git+ssh://git@github.com/a/b", "https://github.com/a", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct kit_ref k;
		struct err e;

		check(kit_ref_parse(rows[i].ref, &k, &e) == 0);
		if (kit_ref_allowed(&k, rows[i].list) != rows[i].yes)
			(void)fprintf(stderr, "'%s' in '%s'\n", rows[i].ref, rows[i].list);
		check(kit_ref_allowed(&k, rows[i].list) == rows[i].yes);
		kit_ref_done(&k);
	}
}

int main(void)
{
	forms();
	allowed();
	return 0;
}
