#include "kit/kit-ref.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#include "base/text.h"

enum { COMMIT_SHA1 = 40, COMMIT_SHA256 = 64 };

static const char *const schemes[] = { "git+https://", "git+ssh://", "git+file://" };

void kit_ref_done(struct kit_ref *r)
{
	free(r->text);
	free(r->where);
	free(r->rev);
	free(r->dir);
	free(r->digest);
	*r = (struct kit_ref) { 0 };
}

static bool all_of(const char *s, const char *more)
{
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr(more, *s))
			return false;
	return true;
}

static bool is_hex(const char *s, size_t n)
{
	return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

/* Parts between slashes; none empty, "." or "..", none like an option, no control characters. */
static bool parts_plain(const char *path, const char *more)
{
	if (!*path || !all_of(path, more))
		return false;
	for (;;) {
		size_t n = strcspn(path, "/");

		if (!n || path[0] == '-' || (n == 1 && path[0] == '.') ||
		    (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += n;
		if (!*path)
			return true;
		path++;
	}
}

bool kit_path_plain(const char *path)
{
	return parts_plain(path, "/._-+@~ ");
}

/* "host", "host:port", of letters, digits, '-' and '.'; made small. */
static bool take_host(char *host)
{
	char *colon = strchr(host, ':');
	uint64_t port;

	if (colon && (text_u64(colon + 1, 65535, &port) < 0 || !port))
		return false;
	if (colon)
		*colon = '\0';
	if (!*host || host[0] == '-' || host[0] == '.' || !all_of(host, "-.") || strstr(host, ".."))
		return false;
	for (char *p = host; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	if (colon)
		*colon = ':';
	return true;
}

/* ---- git ---- */

/* What git takes for a ref (git-check-ref-format(1)), and no more than a name or an id. */
static bool rev_plain(const char *rev)
{
	size_t n = strlen(rev);

	return n <= 200 && parts_plain(rev, "/._-+@") && !strstr(rev, "..") && !strstr(rev, "@{") &&
	       rev[n - 1] != '.' && !strstr(rev, ".lock") && rev[0] != '.';
}

static int git_fragment(struct kit_ref *k, char *frag, struct err *e)
{
	char *one, *rest = NULL;

	for (one = strtok_r(frag, "&", &rest); one; one = strtok_r(NULL, "&", &rest)) {
		bool ref = starts_with(one, "ref="), dir = starts_with(one, "dir=");
		char **to = ref ? &k->rev : &k->dir;

		if (!ref && !dir)
			return err_set(e, -EINVAL, "'%.80s' is neither ref=REF nor dir=FOLDER",
				       one);
		if (*to)
			return err_set(e, -EINVAL, "%.3s= comes twice", one);
		*to = strdup(one + 4);
		if (!*to)
			return err_errno(e, -ENOMEM, "cannot read it");
		if (ref && !rev_plain(*to))
			return err_set(e, -EINVAL, "'%.80s' is not a branch, tag or commit", *to);
		if (dir && !kit_path_plain(*to))
			return err_set(e, -EINVAL, "'%.80s' is not a folder of the repository",
				       *to);
	}
	k->commit = k->rev && (is_hex(k->rev, COMMIT_SHA1) || is_hex(k->rev, COMMIT_SHA256));
	return 0;
}

/* rest is behind "scheme://": [user@]host/path, or /path. */
static int git_url(const char *scheme, char *rest, bool *ret_local, char **ret, struct err *e)
{
	bool ssh = streq(scheme, "git+ssh://"), file = streq(scheme, "git+file://");
	char *at = strchr(rest, '@'), *host = rest, *path = strchr(rest, '/'), *out = NULL;
	size_t n = strlen(rest);

	while (n > 1 && rest[n - 1] == '/')
		rest[--n] = '\0';
	if (!path || (file && path != rest) || !path[1])
		return err_set(e, -EINVAL, "the URL has no repository: %shost/path", scheme);
	if (!parts_plain(path + 1, "/._-+~"))
		return err_set(e, -EINVAL, "'%.80s' is not a plain path", path);
	*path = '\0';
	if (at && at < path) {
		*at = '\0';
		host = at + 1;
		if (!ssh)
			return err_set(e, -EINVAL,
				       "the URL holds a name or password, which a "
				       "reference cannot have");
		if (!*rest || rest[0] == '-' || !all_of(rest, "._-"))
			return err_set(e, -EINVAL, "'%.40s' is not a user's name", rest);
	}
	if (!file && !take_host(host))
		return err_set(e, -EINVAL, "'%.80s' is not a host", host);
	if (asprintf(&out, "%s%s%s%s/%s", scheme + 4, host != rest ? rest : "",
		     host != rest ? "@" : "", host, path + 1) < 0)
		return err_errno(e, -ENOMEM, "cannot read it");
	*ret_local = file;
	*ret = out;
	return 0;
}

static int parse_git(const char *scheme, const char *text, struct kit_ref *k, struct err *e)
{
	_free_ char *copy = strdup(text + strlen(scheme));
	char *frag = copy ? strchr(copy, '#') : NULL;
	int r;

	if (!copy)
		return err_errno(e, -ENOMEM, "cannot read it");
	k->kind = KIT_REF_GIT;
	if (frag)
		*frag++ = '\0';
	r = git_url(scheme, copy, &k->local, &k->where, e);
	if (r == 0 && frag)
		r = git_fragment(k, frag, e);
	if (r < 0)
		return r;
	if (asprintf(&k->text, "git+%s%s%s%s%s%s", k->where, k->rev || k->dir ? "#" : "",
		     k->rev ? "ref=" : "", k->rev ? k->rev : "",
		     k->dir ? (k->rev ? "&dir=" : "dir=") : "", k->dir ? k->dir : "") < 0)
		return err_errno(e, -ENOMEM, "cannot read it");
	return 0;
}

/* ---- registries ---- */

/* A registry's name of a repository: small letters, digits, and '.', '_', '-' between them. */
static bool repo_plain(const char *s)
{
	for (const char *p = s; *p; p++)
		if (isupper((unsigned char)*p))
			return false;
	return parts_plain(s, "/._-") && strlen(s) <= 255;
}

static bool tag_plain(const char *s)
{
	return *s && strlen(s) <= 128 && *s != '.' && *s != '-' && all_of(s, "._-");
}

static bool is_registry(const char *first)
{
	return strchr(first, '.') || strchr(first, ':') || streq(first, "localhost");
}

/* Cuts "@sha256:..." and ":tag" off the end. */
static int oci_tail(char *s, struct kit_ref *k, struct err *e)
{
	char *at = strchr(s, '@'), *slash, *colon;

	if (at) {
		*at++ = '\0';
		if (!starts_with(at, "sha256:") || !is_hex(at + 7, KIT_DIGEST_DIGITS))
			return err_set(e, -EINVAL, "'%.80s' is not sha256: and 64 hex digits", at);
		k->digest = strdup(at + 7);
	}
	slash = strrchr(s, '/');
	colon = strchr(slash ? slash : s, ':');
	if (colon) {
		*colon++ = '\0';
		if (!tag_plain(colon))
			return err_set(e, -EINVAL, "'%.80s' is not a tag", colon);
	}
	if (!k->digest)
		k->rev = strdup(colon ? colon : "latest");
	return k->digest || k->rev ? 0 : err_errno(e, -ENOMEM, "cannot read it");
}

static int parse_oci(const char *text, struct kit_ref *k, struct err *e)
{
	_free_ char *copy = strdup(starts_with(text, "oci://") ? text + 6 : text);
	char *slash, *repo = copy;
	const char *host = "docker.io";
	int r;

	if (!copy)
		return err_errno(e, -ENOMEM, "cannot read it");
	k->kind = KIT_REF_OCI;
	r = oci_tail(copy, k, e);
	if (r < 0)
		return r;
	slash = strchr(copy, '/');
	if (slash) {
		*slash = '\0';
		if (is_registry(copy)) {
			if (!take_host(copy))
				return err_set(e, -EINVAL, "'%.80s' is not a registry", copy);
			host = streq(copy, "index.docker.io") ? "docker.io" : copy;
			repo = slash + 1;
		} else {
			*slash = '/';
		}
	}
	if (!repo_plain(repo))
		return err_set(e, -EINVAL, "'%.80s' is not the name of a repository", repo);
	if (asprintf(&k->where, "%s/%s%s", host,
		     streq(host, "docker.io") && !strchr(repo, '/') ? "library/" : "", repo) < 0)
		return err_errno(e, -ENOMEM, "cannot read it");
	if (asprintf(&k->text, "oci://%s%s%s", k->where, k->digest ? "@sha256:" : ":",
		     k->digest ? k->digest : k->rev) < 0)
		return err_errno(e, -ENOMEM, "cannot read it");
	return 0;
}

/* ---- which form it is ---- */

static int plain(uint8_t kind, const char *text, struct kit_ref *k, struct err *e)
{
	k->kind = kind;
	k->local = kind != KIT_REF_NAME;
	k->where = strdup(text);
	k->text = strdup(text);
	return k->where && k->text ? 0 : err_errno(e, -ENOMEM, "cannot read it");
}

static bool is_path(const char *s)
{
	return s[0] == '/' || streq(s, ".") || streq(s, "..") || starts_with(s, "./") ||
	       starts_with(s, "../");
}

static bool is_zip(const char *s)
{
	size_t n = strlen(s);

	return n > 4 && !strcasecmp(s + n - 4, ".zip") && !strstr(s, "://");
}

static bool is_name(const char *s)
{
	size_t n = strlen(s);

	return n >= 1 && n <= 64 && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n &&
	       s[0] != '-' && s[n - 1] != '-';
}

static int parse(const char *text, struct kit_ref *k, struct err *e)
{
	if (is_zip(text))
		return plain(KIT_REF_ZIP, text, k, e);
	if (is_path(text))
		return plain(KIT_REF_DIR, text, k, e);
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (starts_with(text, schemes[i]))
			return parse_git(schemes[i], text, k, e);
	if (starts_with(text, "oci://"))
		return parse_oci(text, k, e);
	if (strstr(text, "://"))
		return err_set(e, -EINVAL, "a kit comes by git+https://, git+ssh:// or oci://");
	if (is_name(text))
		return plain(KIT_REF_NAME, text, k, e);
	if (strchr(text, '/') && strpbrk(text, ":@"))
		return parse_oci(text, k, e);
	if (strchr(text, '/'))
		return err_set(
			e, -EINVAL,
			"a folder is written './%.80s', a registry's kit has a tag ('%.80s:TAG')",
			text, text);
	return err_set(e, -EINVAL,
		       "it is neither an agent, a folder (./DIR), a ZIP, git+https://... "
		       "nor NAMESPACE/KIT:TAG");
}

int kit_ref_parse(const char *text, struct kit_ref *ret, struct err *e)
{
	struct kit_ref k = { 0 };
	size_t n = strlen(text);
	int r = 0;

	if (!n || n > KIT_REF_MAX)
		return err_set(e, -EINVAL, "the reference of a kit is %s",
			       n ? "too long" : "empty");
	for (size_t i = 0; i < n && r == 0; i++)
		if (iscntrl((unsigned char)text[i]))
			r = err_set(e, -EINVAL, "it has control characters");
	if (r == 0)
		r = parse(text, &k, e);
	if (r < 0) {
		kit_ref_done(&k);
		return err_ctx(e, "kit '%.100s'", text);
	}
	*ret = k;
	return 0;
}

/* ---- the list of sources ---- */

static bool begins(const char *source, const char *entry, size_t n)
{
	if (!n || strncasecmp(source, entry, n) != 0)
		return false;
	return entry[n - 1] == '/' || !source[n] || source[n] == '/';
}

static bool entry_has(const struct kit_ref *r, const char *entry, size_t n)
{
	const char *rest = strstr(r->where, "://"), *at;

	if (n == 1 && *entry == '*')
		return true;
	if (r->kind == KIT_REF_OCI) {
		if (n > 6 && !strncmp(entry, "oci://", 6)) {
			entry += 6;
			n -= 6;
		}
		return begins(r->where, entry, n);
	}
	if (n > 4 && !strncmp(entry, "git+", 4)) {
		entry += 4;
		n -= 4;
	}
	if (begins(r->where, entry, n))
		return true;
	rest = rest ? rest + 3 : r->where;
	at = strchr(rest, '@');
	return begins(at ? at + 1 : rest, entry, n);
}

bool kit_ref_allowed(const struct kit_ref *r, const char *list)
{
	static const char between[] = "[]\", \t\n";

	while (*list) {
		size_t n;

		list += strspn(list, between);
		n = strcspn(list, between);
		if (n && entry_has(r, list, n))
			return true;
		list += n;
	}
	return false;
}
