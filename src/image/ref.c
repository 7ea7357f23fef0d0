/* Names of images in registries. */
#include "image/ref.h"

#include <stdio.h>

enum { PORT_DIGITS = 5, PORT_MAX = 65535 };

static bool is_lower(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
	return is_lower(c) || (c >= 'A' && c <= 'Z');
}

const char *image_ref_digest(const char *text)
{
	size_t i;

	if (!starts_with(text, "sha256:"))
		return NULL;
	text += 7;
	for (i = 0; i < IMAGE_REF_HEX; i++)
		if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
			return NULL;
	return text[i] ? NULL : text;
}

/* ---- parts: n bytes at s ---- */

static bool port_ok(const char *s, size_t n)
{
	unsigned v = 0;
	size_t i;

	if (n == 0 || n > PORT_DIGITS)
		return false;
	for (i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		v = v * 10 + (unsigned)(s[i] - '0');
	}
	return v > 0 && v <= PORT_MAX;
}

/* Labels of letters, digits and inner '-', with dots between them; maybe a port. */
static bool domain_ok(const char *s, size_t n)
{
	const char *colon = memchr(s, ':', n);
	size_t len = colon ? (size_t)(colon - s) : n, i;

	if (colon && !port_ok(colon + 1, n - len - 1))
		return false;
	for (i = 0; i < len; i++) {
		bool edge = i == 0 || i == len - 1 || s[i - 1] == '.' || s[i + 1] == '.';

		if (!is_alnum(s[i]) && (edge || (s[i] != '-' && s[i] != '.')))
			return false;
	}
	return len > 0;
}

/* Runs of lower-case letters and digits; between two of them ".", "_", "__" or any number of "-". */
static bool component_ok(const char *s, size_t n)
{
	size_t i = 0;

	if (n == 0 || !is_lower(s[0]) || !is_lower(s[n - 1]))
		return false;
	while (i < n) {
		size_t k = i;

		if (is_lower(s[i])) {
			i++;
			continue;
		}
		while (k < n && s[k] == s[i])
			k++;
		if (s[i] == '.' ? k - i > 1 : s[i] == '_' ? k - i > 2 : s[i] != '-')
			return false;
		if (!is_lower(s[k])) /* k < n: the last one is */
			return false;
		i = k;
	}
	return true;
}

static bool path_ok(const char *s, size_t n)
{
	while (n) {
		const char *slash = memchr(s, '/', n);
		size_t len = slash ? (size_t)(slash - s) : n;

		if (!component_ok(s, len) || (slash && len + 1 == n))
			return false;
		s += len + (slash != NULL);
		n -= len + (slash != NULL);
	}
	return true;
}

static bool tag_ok(const char *s, size_t n)
{
	size_t i;

	if (n == 0 || n > IMAGE_REF_TAG_MAX || s[0] == '.' || s[0] == '-')
		return false;
	for (i = 0; i < n; i++)
		if (!is_alnum(s[i]) && !memchr("_.-", s[i], 3))
			return false;
	return true;
}

/* The first component is a registry if it cannot be part of a path. (Docker also takes one with capital letters for one; it would
 * have another meaning in small ones.) */
static bool names_domain(const char *s, size_t n)
{
	size_t i;

	if (n == strlen("localhost") && strncasecmp(s, "localhost", n) == 0)
		return true;
	for (i = 0; i < n; i++)
		if (s[i] == '.' || s[i] == ':')
			return true;
	return false;
}

static bool is_docker(const char *domain)
{
	static const char *const names[] = { "docker.io", "index.docker.io",
					     "registry-1.docker.io" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (streq(domain, names[i]))
			return true;
	return false;
}

/* ---- the whole ---- */

struct parts {
	const char *domain, *path, *tag;
	size_t n_domain, n_path, n_tag; /* tag NULL: none is given */
};

/* n: without a digest. */
static void split(const char *s, size_t n, struct parts *p)
{
	const char *slash = memchr(s, '/', n), *colon = memrchr(s, ':', n);

	*p = (struct parts) { .domain = s };
	if (slash && names_domain(s, (size_t)(slash - s)))
		p->n_domain = (size_t)(slash - s);
	p->path = p->n_domain ? slash + 1 : s;
	p->n_path = n - (size_t)(p->path - s);
	if (colon && colon >= p->path && !memchr(colon, '/', n - (size_t)(colon - s))) {
		p->tag = colon + 1;
		p->n_tag = n - (size_t)(p->tag - s);
		p->n_path = (size_t)(colon - p->path);
	}
}

static int fill(struct image_ref *r, const struct parts *p, struct err *e)
{
	const char *lib;

	(void)snprintf(r->domain, sizeof(r->domain), "%.*s", (int)p->n_domain, p->domain);
	for (char *c = r->domain; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	if (is_docker(r->domain))
		(void)snprintf(r->domain, sizeof(r->domain), "docker.io");
	lib = streq(r->domain, "docker.io") && !memchr(p->path, '/', p->n_path) ? "library/" : "";
	if (strlen(r->domain) + 1 + strlen(lib) + p->n_path > IMAGE_REF_NAME_MAX)
		return err_set(e, -EINVAL, "the image's name is too long (at most %d bytes)",
			       IMAGE_REF_NAME_MAX);
	(void)snprintf(r->path, sizeof(r->path), "%s%.*s", lib, (int)p->n_path, p->path);
	if (p->tag || !r->digest[0])
		(void)snprintf(r->tag, sizeof(r->tag), "%.*s", p->tag ? (int)p->n_tag : 6,
			       p->tag ? p->tag : "latest");
	return 0;
}

int image_ref_parse(const char *text, struct image_ref *ret, struct err *e)
{
	const char *at = strchr(text, '@'), *digest = at ? image_ref_digest(at + 1) : NULL;
	size_t n = at ? (size_t)(at - text) : strlen(text);
	struct image_ref r = { 0 };
	struct parts p;

	if (strstr(text, "://"))
		return err_set(e, -EINVAL, "'%.100s': an image is named without '%.*s'", text,
			       (int)(strstr(text, "://") - text) + 3, text);
	if (strlen(text) > IMAGE_REF_MAX)
		return err_set(e, -EINVAL, "the image's name is too long");
	if (at && !digest)
		return err_set(e, -EINVAL,
			       "'%.100s': behind '@' goes sha256: and 64 hexadecimal digits", text);
	split(text, n, &p);
	if (p.tag && !tag_ok(p.tag, p.n_tag))
		return err_set(e, -EINVAL, "'%.100s': '%.*s' is not a tag", text,
			       (int)MIN(p.n_tag, 60), p.tag);
	if (p.n_domain && !domain_ok(p.domain, p.n_domain))
		return err_set(e, -EINVAL, "'%.100s': '%.*s' is not a registry", text,
			       (int)MIN(p.n_domain, 60), p.domain);
	if (!p.n_path || !path_ok(p.path, p.n_path))
		return err_set(e, -EINVAL,
			       "'%.100s' is not the name of an image (REGISTRY/PATH[:TAG], path in "
			       "lower case)",
			       text);
	if (!p.n_domain)
		return 1;
	if (digest)
		memcpy(r.digest, digest, sizeof(r.digest));
	if (fill(&r, &p, e) < 0)
		return e->code;
	*ret = r;
	return 0;
}

const char *image_ref_text(const struct image_ref *r, char dst[IMAGE_REF_MAX + 1])
{
	(void)snprintf(dst, IMAGE_REF_MAX + 1, "%s/%s%s%s", r->domain, r->path,
		       r->digest[0] ? "@sha256:" : ":", r->digest[0] ? r->digest : r->tag);
	return dst;
}

bool image_ref_loopback(const struct image_ref *r)
{
	size_t n = strcspn(r->domain, ":"), i;

	if (n == strlen("localhost") && memcmp(r->domain, "localhost", n) == 0)
		return true;
	if (!starts_with(r->domain, "127."))
		return false;
	for (i = 0; i < n; i++)
		if (r->domain[i] != '.' && (r->domain[i] < '0' || r->domain[i] > '9'))
			return false; /* 127.example.org */
	return true;
}
