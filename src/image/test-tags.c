/* Tags of templates: given, taken away, found; and what a template of layers brings out of its file. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "image/make.h"
#include "io/fd.h"
#include "sys/dirs.h"

static char cache[64];
static char a[IMAGE_DIGEST_MAX + 1], b[IMAGE_DIGEST_MAX + 1], l[IMAGE_DIGEST_MAX + 1];
static struct err e;
static int dir = -1;

static void fill(char hex[IMAGE_DIGEST_MAX + 1], char c)
{
	memset(hex, c, IMAGE_DIGEST_MAX);
	hex[IMAGE_DIGEST_MAX] = '\0';
}

/* One as 'build' makes it, and one of an image. */
static void put(const char *digest, bool image, int created)
{
	json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i}", "inputs", digest, "tag",
			      image ? "" : "default", "kernel", image ? "" : b, "source", "x",
			      "user", "agent", "workdir", "/w", "created", created);
	char path[IMAGE_DIGEST_MAX + 32];

	if (image) {
		(void)json_object_set_new(j, "tags", json_array());
		(void)json_object_set_new(j, "layers", json_pack("[s]", l));
		(void)json_object_set_new(j, "config",
					  json_pack("{s:[s], s:s}", "env", "A=1", "user", "u"));
	}
	check(mkdirat(dir, digest, 0700) == 0);
	check(image_store_json(dir, digest, "template.json", j, &e) == 0);
	(void)snprintf(path, sizeof(path), "%s/root.erofs", digest);
	check(fd_replace_file(dir, path, 0600, "root", 4) == 0);
}

static bool has(const char *ref, const char *digest)
{
	struct image_template t = { 0 };
	bool found = image_template_find(cache, ref, &t, &e) == 0 && streq(t.digest, digest);

	image_template_done(&t);
	return found;
}

static void moved(void)
{
	struct image_template t = { 0 };

	put(a, true, 200);
	put(b, false, 100);
	check(has("default", b) && !has("x", a));
	check(image_tag_give(cache, dir, a, "x", &e) == 0 && has("x:latest", a));
	check(has("docker.io/library/x", a) && has("x", a) && !has("y", a));
	check(image_tag_give(cache, dir, a, "team/y:1", &e) == 0);
	check(image_template_find(cache, "x", &t, &e) == 0);
	check(streq(t.tag, "team/y:1") && streq(t.tags[1], "x") && !t.tags[2]);
	check(streq(t.layers[0], l) && !t.layers[1] && strstr(t.blobs[0], "/blob"));
	check(streq(t.config.env[0], "A=1") && streq(t.config.user, "u") && !t.config.cmd[0]);
	check(!t.reference && !t.manifest && t.used > 0);
	image_template_done(&t);
	/* the one of 'build' loses it, and gets it back */
	check(image_tag_give(cache, dir, a, "default", &e) == 0 && has("default", a));
	check(has(b, b));
	check(image_tag_give(cache, dir, b, "default", &e) == 0 && has("default", b));
	/* again changes nothing */
	check(image_tag_give(cache, dir, b, "default", &e) == 0 && has("default", b));
	check(image_tag_remove(cache, a, "x:latest", &e) == 0 && !has("x", a));
	check(image_tag_remove(cache, a, "x", &e) == 0);
	check(has("team/y:1", a));
	check(image_tag_remove(cache, a, "a b", &e) == -EINVAL);
}

static void base(void)
{
	char *root = NULL;

	check(image_template_base(cache, b, &root, &e) == 0 && strstr(root, b));
	free(root);
	check(image_template_base(cache, "other", &root, &e) == 0 && strstr(root, b));
	free(root);
	check(image_template_rm(cache, b, &e) == 0);
	check(image_template_base(cache, b, &root, &e) == 1);
}

/* A layer that nobody has goes with the last template that had it. */
static void layers(void)
{
	_free_ char *path = NULL;

	check(asprintf(&path, "%s/layers/%s", cache, l) > 0 && dirs_make(path) == 0);
	check(image_store_size(cache) > 0);
	check(image_template_prune_layers(cache, NULL, &e) == 0 && access(path, F_OK) == 0);
	check(image_template_rm(cache, a, &e) == 0);
	check(access(path, F_OK) < 0);
}

int main(void)
{
	fill(a, 'a');
	fill(b, 'b');
	fill(l, '1');
	(void)snprintf(cache, sizeof(cache), "/tmp/test-tags-XXXXXX");
	check(mkdtemp(cache));
	check(image_store_open(cache, IMAGE_TEMPLATES, &dir, &e) == 0);
	moved();
	base();
	layers();
	dir = fd_close(dir);
	check(dirs_remove(AT_FDCWD, cache) == 0);
	return 0;
}
