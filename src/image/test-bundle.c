/* The archive of one image: what libarchive finds in it, and that its names are the digests of what they name. */
#include "image/bundle.h"

#include <archive.h>
#include <archive_entry.h>
#include <jansson.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/sha256.h"
#include "io/fd.h"

static void digest(const char *p, size_t n, char hex[IMAGE_DIGEST_MAX + 1])
{
	uint8_t sum[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, p, n);
	sha256_end(&s, sum);
	for (size_t i = 0; i < sizeof(sum); i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", sum[i]);
}

static json_t *manifest, *config, *index_json;
static char layer_hex[IMAGE_DIGEST_MAX + 1];

/* One member; true once it is the layer. */
static bool take(const char *name, const char *p, size_t n, const char *layer)
{
	char hex[IMAGE_DIGEST_MAX + 1];
	json_t *j;

	digest(p, n, hex);
	if (starts_with(name, "blobs/sha256/"))
		check(streq(name + 13, hex));
	if (n == strlen(layer) && memcmp(p, layer, n) == 0) {
		memcpy(layer_hex, hex, sizeof(hex));
		return true;
	}
	j = json_loadb(p, n, 0, NULL);
	check(j);
	if (streq(name, "manifest.json"))
		manifest = json_incref(j);
	if (streq(name, "index.json"))
		index_json = json_incref(j);
	if (json_object_get(j, "rootfs"))
		config = json_incref(j);
	json_decref(j);
	return false;
}

static const char *at(json_t *j, const char *a, const char *b)
{
	j = json_object_get(j, a);
	return json_string_value(b ? json_object_get(j, b) : json_array_get(j, 0));
}

int main(void)
{
	static const char layer[] = "any bytes: it is not looked at";
	char *env[] = { (char *)"A=b", NULL }, *labels[] = { (char *)"l=v=w", NULL };
	const struct image_config c = { .env = env, .labels = labels, .user = (char *)"" };
	const struct image_bundle b = { .tag = "team/image",
					.config = &c,
					.user = "agent",
					.workdir = "/w",
					.comment = "x",
					.created = 86400 };
	_close_ int fd = memfd_create("bundle", MFD_CLOEXEC);
	struct archive *a = archive_read_new();
	struct archive_entry *en;
	size_t n = 0, layers = 0;
	char want[100];
	struct err e;

	check(fd >= 0 && image_bundle_finish(fd, &b, &e) < 0);
	check(pwrite(fd, layer, strlen(layer), IMAGE_BUNDLE_LAYER_AT) == (ssize_t)strlen(layer));
	check(image_bundle_finish(fd, &b, &e) == 0);
	check(lseek(fd, 0, SEEK_SET) == 0);
	check(archive_read_support_format_tar(a) == ARCHIVE_OK);
	check(archive_read_open_fd(a, fd, 512) == ARCHIVE_OK);
	while (archive_read_next_header(a, &en) == ARCHIVE_OK) {
		char text[4096];
		ssize_t len = archive_read_data(a, text, sizeof(text));

		if (archive_entry_filetype(en) == AE_IFDIR) {
			check(starts_with("blobs/sha256/", archive_entry_pathname(en)) && n < 2);
			n++;
			continue;
		}
		check(len > 0 && archive_entry_uid(en) == geteuid());
		layers += take(archive_entry_pathname(en), text, (size_t)len, layer);
		n++;
	}
	(void)archive_read_free(a);
	check(n == 8 && layers == 1 && manifest && config && index_json);
	(void)snprintf(want, sizeof(want), "sha256:%s", layer_hex);
	check(streq(json_string_value(json_array_get(
			    json_object_get(json_object_get(config, "rootfs"), "diff_ids"), 0)),
		    want));
	check(streq(at(config, "config", "User"), "agent"));
	check(streq(at(config, "config", "WorkingDir"), "/w"));
	check(streq(json_string_value(json_object_get(config, "created")), "1970-01-02T00:00:00Z"));
	check(streq(json_string_value(json_object_get(
			    json_object_get(json_object_get(config, "config"), "Labels"), "l")),
		    "v=w"));
	check(streq(at(json_array_get(manifest, 0), "RepoTags", NULL), "team/image:latest"));
	check(streq(at(json_array_get(json_object_get(index_json, "manifests"), 0), "annotations",
		       "org.opencontainers.image.ref.name"),
		    "latest"));
	json_decref(manifest);
	json_decref(config);
	json_decref(index_json);
	return 0;
}
