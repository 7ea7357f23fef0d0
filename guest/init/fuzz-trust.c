/* Certificates, bundles and keystores, as they lie in a root that anybody may have written. The first byte says which. */
#include "guest/init/cert.h"
#include "guest/init/jks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void certificate(const uint8_t *p, size_t n)
{
	struct cert c = { .der = p, .n = n };
	uint32_t hash;

	if (cert_find_subject(&c) && !(c.subject >= p && c.n_subject <= n))
		abort();
	if (c.subject)
		(void)cert_name_hash(&c, &hash);
}

static void bundle(const char *p, size_t n)
{
	static struct cert_set set, none;
	struct buf out = BUF_INIT(1024 * 1024);

	if (cert_set_read(&set, p, n) < 0)
		set.n = 0;
	/* nothing of it is added, and what is ours is gone */
	if (cert_bundle(&out, p, n, &none, &set, "", 0) == 0 && out.n > n + 1)
		abort();
	buf_done(&out);
}

static void keystore(const uint8_t *p, size_t n)
{
	static const struct cert_set none;
	struct buf out = BUF_INIT(JKS_MAX);
	struct jks k;

	jks_begin(&k, &out, 0);
	if (jks_copy(&k, p, n, &none, &none) && (jks_end(&k) < 0 || out.n != n))
		abort();
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (!n)
		return 0;
	switch (data[0]) {
	case 'c':
		certificate(data + 1, n - 1);
		break;
	case 'b':
		bundle((const char *)data + 1, n - 1);
		break;
	case 'k':
		keystore(data + 1, n - 1);
		break;
	default:
		break;
	}
	return 0;
}
