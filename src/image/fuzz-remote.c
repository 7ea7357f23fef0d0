/* What a registry says, in any bytes: a manifest or index, and behind the first NUL a configuration. */
#include "base/check.h"
#include "image/remote.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct image_platform want = { "linux", "amd64", "" };
	const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
	size_t n = nul ? (size_t)(nul - data) : size;
	static struct image_remote m;
	struct image_blob child;
	struct err e = { 0 };
	int r = image_remote_manifest(data, n, &want, &m, &child, &e);

	check((r < 0) == (e.msg[0] != 0));
	if (r == 1)
		check(strlen(child.digest) == IMAGE_HEX);
	if (r != 0)
		return 0;
	check(m.n > 0 && m.n <= IMAGE_REMOTE_LAYERS_MAX && strlen(m.config.digest) == IMAGE_HEX);
	if (nul && image_remote_config(nul + 1, size - n - 1, &want, &m, &e) == 0)
		check(strlen(m.diffs[m.n - 1]) == IMAGE_HEX);
	return 0;
}
