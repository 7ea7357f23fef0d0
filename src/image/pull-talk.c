/* The conversation with a registry, and what its failures mean.
 *
 * skopeo's words are for people who know registries, and differ with the registry. What is known of them is told by a table;
 * the rest is passed on. */
#include "image/pull-priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base64.h"
#include "io/fd.h"

enum { LIST_MAX = 4 << 20, AUTH_MAX = 64 * 1024 };

enum cause {
	OTHER,
	WANTS_USER,
	DENIED,
	NO_MANIFEST,
	NO_REPOSITORY,
	NO_HOST,
	NOBODY_THERE,
	NOT_TRUSTED,
	NOT_HTTPS,
	MISMATCH,
	TRUNCATED,
	BLOB_MISSING,
	DISK_FULL,
	TOO_MANY,
	BUSY,
};

/* The first that is found counts: what is more telling comes first. */
static const struct {
	const char *has;
	enum cause cause;
} words[] = {
	{ "no space left on device", DISK_FULL },
	{ "disk quota exceeded", DISK_FULL },
	{ "server gave HTTP response to HTTPS client", NOT_HTTPS },
	{ "does not look like a TLS handshake", NOT_HTTPS },
	{ "no such host", NO_HOST },
	{ "server misbehaving", NO_HOST },
	{ "Temporary failure in name resolution", NO_HOST },
	{ "x509:", NOT_TRUSTED },
	{ "tls: ", NOT_TRUSTED },
	{ "toomanyrequests:", TOO_MANY },
	{ "too many requests", TOO_MANY },
	{ "429 (", TOO_MANY },
	{ "invalid username/password", WANTS_USER },
	{ "unauthorized:", WANTS_USER },
	{ "authentication required", WANTS_USER },
	{ "401 (", WANTS_USER },
	{ "denied:", DENIED },
	{ "is denied", DENIED },
	{ "403 (", DENIED },
	{ "name unknown", NO_REPOSITORY },
	{ "repository name not known", NO_REPOSITORY },
	{ "Digest did not match", MISMATCH },
	{ "unexpected EOF", TRUNCATED },
	{ "connection reset", TRUNCATED },
	{ "Error fetching blob", BLOB_MISSING },
	{ "blob unknown", BLOB_MISSING },
	{ "manifest unknown", NO_MANIFEST },
	{ "404 (", NO_MANIFEST },
	{ "connection refused", NOBODY_THERE },
	{ "network is unreachable", NOBODY_THERE },
	{ "no route to host", NOBODY_THERE },
	{ "i/o timeout", NOBODY_THERE },
	{ "context deadline exceeded", NOBODY_THERE },
	{ "503 (", BUSY },
	{ "502 (", BUSY },
	{ "500 (", BUSY },
};

static enum cause cause_of(const char *msg)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (strcasestr(msg, words[i].has))
			return words[i].cause;
	return OTHER;
}

int pull_about(const struct image_pull *p, struct err *e)
{
	const struct image_ref *r = p->ref;

	return err_ctx(e, "registry %.100s: '%.150s%s%s'", r->domain, r->path,
		       r->digest[0] ? "@sha256:" : ":", r->digest[0] ? r->digest : r->tag);
}

char *pull_name(const struct image_ref *r, const char *digest)
{
	const char *hex = digest ? digest : r->digest[0] ? r->digest : NULL;
	char *s;

	if (asprintf(&s, "docker://%s/%s%s%s", r->domain, r->path, hex ? "@sha256:" : ":",
		     hex ? hex : r->tag) < 0)
		return NULL;
	return s;
}

/* ---- passwords ---- */

int pull_auth(const struct image_pull *p, int *ret_fd, struct err *e)
{
	static const char head[] = "{\"auths\":{\"%s\":{\"auth\":\"";
	char pair[24 * 1024], text[AUTH_MAX];
	_close_ int fd = -1;
	size_t at;
	int n, r;

	*ret_fd = -1;
	if (!p->user)
		return 0;
	n = snprintf(pair, sizeof(pair), "%s:%s", p->user, p->password);
	if (n < 0 || (size_t)n >= sizeof(pair))
		return err_set(e, -EINVAL, "the registry's password is too long");
	at = (size_t)snprintf(text, sizeof(text), head, p->ref->domain);
	at = (size_t)(base64_put(text + at, pair, (size_t)n, BASE64) - text);
	at += (size_t)snprintf(text + at, sizeof(text) - at, "\"}}}");
	fd = memfd_create("auth", MFD_CLOEXEC);
	r = fd < 0 ? -errno : fd_write_all(fd, text, at);
	explicit_bzero(pair, sizeof(pair));
	explicit_bzero(text, sizeof(text));
	if (r < 0)
		return err_errno(e, r, "cannot hand over the registry's password");
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Is a host of this URL the registry itself? Docker's has three names. */
static bool is_own(const struct image_ref *ref, const char *host, size_t n)
{
	static const char *const docker[] = { "registry-1.docker.io", "auth.docker.io",
					      "index.docker.io", "docker.io" };
	size_t own = strcspn(ref->domain, ":"), i;

	if (streq(ref->domain, "docker.io"))
		for (i = 0; i < ARRAY_SIZE(docker); i++)
			if (strlen(docker[i]) == n && strncasecmp(docker[i], host, n) == 0)
				return true;
	return own == n && strncasecmp(ref->domain, host, n) == 0;
}

static void on_request(void *user, const char *url)
{
	struct pull_talk *t = user;
	bool tls = starts_with(url, "https://");
	const char *host = url + (tls ? 8 : 7);

	if ((tls || t->s.plain) && is_own(t->p->ref, host, strcspn(host, ":/")))
		return;
	if (!tls && image_ref_loopback(t->p->ref) && is_own(t->p->ref, host, strcspn(host, ":/")))
		return; /* it tried */
	(void)snprintf(t->realm, sizeof(t->realm), "%s", url);
}

/* May the password go where it would go? */
static int check_realm(const struct pull_talk *t, struct err *e)
{
	const struct image_pull *p = t->p;

	if (!t->realm[0] || streq(t->realm, p->endpoint))
		return 0;
	if (!starts_with(t->realm, "https://"))
		return err_set(e, -EACCES,
			       "registry %.100s wants user '%.60s' to show the password to %.120s, "
			       "which has no TLS",
			       p->ref->domain, p->user, t->realm);
	return err_set(e, -EACCES,
		       "registry %.100s wants user '%.60s' to show the password to %.120s; if that "
		       "is right: bac secret set --registry %.100s --username %.60s "
		       "--password-stdin --registry-auth-endpoint %.120s",
		       p->ref->domain, p->user, t->realm, p->ref->domain, p->user, t->realm);
}

/* ---- failures ---- */

static int no_user(const struct pull_talk *t, struct err *e)
{
	const struct image_pull *p = t->p;
	const char *domain = p->ref->domain;

	if (!t->shown)
		return err_set(
			e, -EACCES,
			"registry %.100s does not give '%.150s' to everybody, and there is no "
			"password for it: bac secret set --registry %.100s --username NAME "
			"--password-stdin",
			domain, p->ref->path, domain);
	return err_set(e, -EACCES,
		       "registry %.100s refuses user '%.60s' (wrong password?): bac secret set "
		       "--registry %.100s --username %.60s --password-stdin",
		       domain, p->user, domain, p->user);
}

/* " (user 'x')" where the password was shown. */
static const char *as_user(const struct pull_talk *t, char dst[96])
{
	dst[0] = '\0';
	if (t->shown)
		(void)snprintf(dst, 96, " (user '%.80s')", t->p->user);
	return dst;
}

/* The registry does not know the tag; or has it never heard of the repository? */
static int no_manifest(struct pull_talk *t, bool surely, struct err *e)
{
	const struct image_ref *r = t->p->ref;
	struct buf list = BUF_INIT(LIST_MAX);
	char who[96], *name = NULL;
	struct err why = { 0 };
	bool known = !surely;

	if (known && asprintf(&name, "docker://%s/%s", r->domain, r->path) >= 0) {
		const char *const args[] = { "list-tags", name, NULL };

		known = image_skopeo(&t->s, args, &list, &why) != 1 ||
			(cause_of(why.msg) != NO_REPOSITORY && cause_of(why.msg) != NO_MANIFEST);
		free(name);
	}
	buf_done(&list);
	if (!known)
		return err_set(e, -ENOENT, "registry %.100s has no repository '%.150s'%s",
			       r->domain, r->path, as_user(t, who));
	return err_set(e, -ENOENT, "registry %.100s%s: '%.150s' has no %s '%s%s'", r->domain,
		       as_user(t, who), r->path, r->digest[0] ? "manifest" : "tag",
		       r->digest[0] ? "sha256:" : "", r->digest[0] ? r->digest : r->tag);
}

/* skopeo's words without what was said already. */
static const char *gist(const char *msg)
{
	const char *p = strstr(msg, "\": ");

	return starts_with(msg, "Error parsing image name") && p ? p + 3 : msg;
}

static const struct {
	int code;
	const char *text;
} plain_words[] = {
	[OTHER] = { -EIO, NULL },
	[NO_HOST] = { -EHOSTUNREACH, "its name cannot be looked up" },
	[NOBODY_THERE] = { -EHOSTUNREACH, "it cannot be reached" },
	[NOT_HTTPS] = { -EPROTO,
			"it does not speak TLS; only one on this machine (localhost) may" },
	[MISMATCH] = { -EBADMSG, "a layer is damaged: its content is not what its digest says" },
	[TRUNCATED] = { -EBADMSG, "a layer ended early; what came whole is kept, try again" },
	[BLOB_MISSING] = { -ENOENT, "a layer of the image is not there" },
	[DISK_FULL] = { -ENOSPC, "the disk is full; free some space, or set XDG_CACHE_HOME to "
				 "another disk" },
	[TOO_MANY] = { -EBUSY, "it has had too many requests from here; wait, or use a password" },
	[BUSY] = { -EBUSY, "it has a failure of its own" },
};

static int explain(struct pull_talk *t, struct err *e)
{
	const struct image_ref *r = t->p->ref;
	enum cause cause = cause_of(e->msg);
	bool elsewhere = t->realm[0] && (cause == NO_HOST || cause == NOBODY_THERE);
	char why[ERR_MSG_MAX], who[96];

	switch (cause) {
	case WANTS_USER:
		return no_user(t, e);
	case DENIED:
		if (!t->shown)
			return no_user(t, e);
		return err_set(e, -EACCES,
			       "registry %.100s does not let user '%.60s' pull '%.150s'", r->domain,
			       t->p->user, r->path);
	case NO_MANIFEST:
	case NO_REPOSITORY:
		return no_manifest(t, cause == NO_REPOSITORY, e);
	case NOT_TRUSTED:
		(void)snprintf(why, sizeof(why), "%s", gist(e->msg));
		return err_set(e, -EPROTO,
			       "registry %.100s%s: its certificate is not trusted (%.160s); name "
			       "its authority's file in the setting tls.extraCa",
			       r->domain, as_user(t, who), strstr(why, "x509: ") ?: why);
	default:
		(void)snprintf(why, sizeof(why), "%s",
			       plain_words[cause].text ? plain_words[cause].text : gist(e->msg));
		return err_set(e, plain_words[cause].code, "registry %.100s%s: %s%.120s%s%.250s",
			       r->domain, as_user(t, who),
			       elsewhere ? "the host of its tokens (" : "",
			       elsewhere ? t->realm : "", elsewhere ? "): " : "", why);
	}
}

/* ---- asking ---- */

static bool wants_password(const char *msg)
{
	enum cause c = cause_of(msg);

	/* some say so; others do not know what they do not show to everybody */
	return c == WANTS_USER || c == DENIED || c == NO_MANIFEST || c == NO_REPOSITORY;
}

int pull_ask(struct pull_talk *t, const char *const *args, struct buf *out, struct err *e)
{
	for (;;) {
		int r;

		t->s.request = t->auth >= 0 && !t->shown ? on_request : NULL;
		t->s.user = t;
		r = image_skopeo(&t->s, args, out, e);
		if (r == -EFBIG)
			return err_set(e, -EBADMSG, "registry %.100s: its answer is too long",
				       t->p->ref->domain);
		if (r <= 0)
			return r;
		if (out)
			buf_consume(out, out->n);
		if (cause_of(e->msg) == NOT_HTTPS && !t->s.plain && image_ref_loopback(t->p->ref)) {
			t->s.plain = true;
		} else if (t->auth >= 0 && !t->shown && (t->realm[0] || wants_password(e->msg))) {
			r = check_realm(t, e);
			if (r < 0)
				return r;
			t->s.auth = t->auth;
			t->shown = true;
		} else {
			return explain(t, e);
		}
	}
}
