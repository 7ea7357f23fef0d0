/* The JSON of images, by each of its parsers. The first byte says which. */
#include "base/check.h"
#include "image/oci.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void config(const char *text, size_t n)
{
	struct oci_config c;
	struct err e;
	size_t i;

	if (oci_config_parse(text, n, "amd64", &c, &e) < 0)
		return;
	check(c.n >= 1 && c.n <= OCI_LAYERS_MAX);
	for (i = 0; i < c.n; i++)
		check(strlen(c.diffs[i]) == IMAGE_DIGEST_MAX);
	for (i = 0; c.config.env[i]; i++)
		check(strchr(c.config.env[i], '=') > c.config.env[i]);
	check(i <= OCI_ENV_MAX && (!*c.config.workdir || c.config.workdir[0] == '/'));
	oci_config_done(&c);
}

static void manifest(const char *text, size_t n)
{
	struct oci_manifest m;
	struct err e;

	if (oci_manifest_parse(text, n, &m, &e) < 0)
		return;
	check(m.n >= 1 && m.n <= OCI_LAYERS_MAX && m.config.digest[0]);
	oci_manifest_done(&m);
}

static void docker(const char *text, size_t n)
{
	struct oci_docker *v;
	struct err e;
	size_t len, i, k;

	if (oci_docker_parse(text, n, &v, &len, &e) < 0)
		return;
	check(len >= 1 && len <= OCI_IMAGES_MAX);
	for (i = 0; i < len; i++)
		for (k = 0; v[i].layers[k]; k++)
			check(v[i].layers[k][0] != '/' && !starts_with(v[i].layers[k], "../"));
	oci_docker_done(v, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	struct oci_index x;
	struct err e;

	if (size < 1)
		return 0;
	switch (data[0]) {
	case 'c':
		config(text, size - 1);
		break;
	case 'm':
		(void)!oci_kind(text, size - 1, "", &e);
		manifest(text, size - 1);
		break;
	case 'd':
		docker(text, size - 1);
		break;
	default:
		if (oci_index_parse(text, size - 1, &x, &e) == 0)
			oci_index_done(&x);
		break;
	}
	return 0;
}
