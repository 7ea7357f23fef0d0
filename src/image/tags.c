/* Tags, and when a template was used.
 *
 * A tag stands in the template.json of who has it. Moving one writes two files, the loser's first: a command that is killed in between
 * leaves a tag that nobody has, never one that two have. All of it under the lock of the templates. */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "image/make.h"
#include "io/fd.h"
#include "sys/lock.h"

static bool is_name(const char *s)
{
	const char *p;

	for (p = s; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-/:", *p))
			return false;
	return isalnum((unsigned char)*s) && !strstr(s, "//") && !strstr(s, "::") &&
	       !strchr(":/", p[-1]);
}

static const char *without(const char *s, const char *prefix)
{
	return starts_with(s, prefix) ? s + strlen(prefix) : s;
}

int image_tag_plain(const char *tag, char dst[IMAGE_TAG_MAX + 1], struct err *e)
{
	static const char latest[] = ":latest";
	const char *s = tag;
	size_t n;

	s = without(s, "index.docker.io/");
	s = without(s, "docker.io/");
	if (s != tag)
		s = without(s, "library/");
	n = strlen(s);
	if (n > sizeof(latest) - 1 && streq(s + n - sizeof(latest) + 1, latest))
		n -= sizeof(latest) - 1;
	if (!n || n > IMAGE_TAG_MAX || !is_name(s))
		return err_set(e, -EINVAL,
			       "'%.80s' is not a tag (letters, digits and . _ - / : as in "
			       "team/image:1.2)",
			       tag);
	memcpy(dst, s, n);
	dst[n] = '\0';
	return 0;
}

/* The tags of a template.json: its list, or its one tag. A new reference, or NULL. */
static json_t *tags_of(const json_t *j)
{
	json_t *list = json_object_get(j, "tags"), *one;

	if (json_is_array(list))
		return json_copy(list);
	list = json_array();
	one = json_object_get(j, "tag");
	if (list && json_is_string(one) && json_string_length(one))
		(void)json_array_append(list, one);
	return list;
}

/* Take a tag out of a list; true if it was there. */
static bool take_out(json_t *list, const char *tag)
{
	char plain[IMAGE_TAG_MAX + 1];
	bool found = false;
	struct err e;
	size_t i;

	for (i = json_array_size(list); i-- > 0;) {
		const char *s = json_string_value(json_array_get(list, i));

		if (s && image_tag_plain(s, plain, &e) == 0 && streq(plain, tag)) {
			(void)json_array_remove(list, i);
			found = true;
		}
	}
	return found;
}

/* Writes template.json with the tag, or without it; if that is a change. */
static int set(int dir, const char *digest, const char *tag, bool has, struct err *e)
{
	json_t *j = image_store_meta(dir, digest, "template.json");
	json_t *list = j ? tags_of(j) : NULL;
	bool had = list && take_out(list, tag);
	int r = -ENOMEM;

	if (!j || (!had && !has)) {
		json_decref(list);
		json_decref(j);
		return 0;
	}
	if (list && has)
		(void)json_array_insert_new(list, 0, json_string(tag));
	if (list) {
		const char *first = json_string_value(json_array_get(list, 0));

		(void)json_object_set_new(j, "tag", json_string(first ? first : ""));
		(void)json_object_set_new(j, "tags", list);
		return image_store_json(dir, digest, "template.json", j, e);
	}
	json_decref(j);
	return err_errno(e, r, "cannot tag %.12s", digest);
}

int image_tag_give(const char *cache, int dir, const char *digest, const char *tag, struct err *e)
{
	struct image_template *v;
	size_t n, i;
	int r = image_template_ls(cache, &v, &n, e);

	if (r < 0)
		return r;
	for (i = 0; i < n && r == 0; i++)
		if (!streq(v[i].digest, digest))
			r = set(dir, v[i].digest, tag, false, e);
	if (r == 0)
		r = set(dir, digest, tag, true, e);
	for (i = 0; i < n; i++)
		image_template_done(&v[i]);
	free(v);
	return r;
}

int image_tag_remove(const char *cache, const char *digest, const char *tag, struct err *e)
{
	char plain[IMAGE_TAG_MAX + 1];
	_close_ int dir = -1, lock = -1;
	int r = image_tag_plain(tag, plain, e);

	if (r == 0)
		r = image_store_open(cache, IMAGE_TEMPLATES, &dir, e);
	if (r < 0)
		return r;
	r = lock_take(dir, ".lock", false, true, &lock);
	if (r < 0)
		return err_errno(e, r, "cannot lock the templates");
	return set(dir, digest, plain, false, e);
}

/* The time of template.json says it. */
void image_template_use(const char *cache, const char *digest)
{
	char path[IMAGE_DIGEST_MAX + 32];
	_close_ int dir = -1;
	struct err e;

	if (image_store_open(cache, IMAGE_TEMPLATES, &dir, &e) < 0)
		return;
	(void)snprintf(path, sizeof(path), "%.*s/template.json", IMAGE_DIGEST_MAX, digest);
	(void)utimensat(dir, path, NULL, AT_SYMLINK_NOFOLLOW);
}
