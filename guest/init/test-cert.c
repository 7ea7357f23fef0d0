/* Certificates and bundles. */
#include "base/check.h"
#include "guest/init/cert.h"
#include "guest/init/test-pem.h"

#include <stdio.h>

static struct cert_set none, first, second, user;

static bool hash_is(const char *pem, const char *want)
{
	struct cert_set s;
	char text[16];
	uint32_t hash;

	check(cert_set_read(&s, pem, strlen(pem)) == 0 && s.n == 1);
	if (!cert_name_hash(&s.v[0], &hash))
		return false;
	(void)snprintf(text, sizeof(text), "%08x", hash);
	return streq(text, want);
}

static void hashes(void)
{
	check(hash_is(pem_first, HASH_FIRST));
	check(hash_is(pem_second, HASH_FIRST));
	check(hash_is(pem_odd, HASH_ODD));
	check(hash_is(pem_user, HASH_USER));
	check(!hash_is(pem_double, ""));
}

static void subjects(void)
{
	check(first.n == 1 && first.v[0].n_subject < first.v[0].n);
	check(cert_set_has(&first, &second.v[0]));
	check(!cert_set_has(&first, &user.v[0]));
	check(!cert_set_has(&none, &user.v[0]));
}

/* What is cut off, or bent, is no certificate. */
static void damaged(void)
{
	uint8_t bent[CERT_DER_MAX];
	struct cert c = first.v[0], got;
	size_t i;

	for (i = 0; i < c.n; i++) {
		got = (struct cert) { .der = c.der, .n = i };
		check(!cert_find_subject(&got));
	}
	/* any answer will do, but for reading outside */
	for (i = 0; i < MIN(c.n, (size_t)200); i++) {
		uint8_t *copy = malloc(c.n);
		uint32_t hash;

		check(copy);
		memcpy(copy, c.der, c.n);
		copy[i] ^= 0x85;
		got = (struct cert) { .der = copy, .n = c.n };
		if (cert_find_subject(&got))
			(void)cert_name_hash(&got, &hash);
		free(copy);
	}
	check(sizeof(bent) > c.n);
}

static const struct {
	const char *name;
	const char *text[3];
	int want; /* certificates, or -errno */
} sets[] = {
	{ "one", { pem_first }, 1 },
	{ "two", { pem_first, pem_user }, 2 },
	{ "comments", { "# ours\n\n", pem_first, "\r\n# end" }, 1 },
	{ "nothing", { "" }, -EBADMSG },
	{ "text before", { "text\n", pem_first }, -EBADMSG },
	{ "text between", { pem_first, "-----BEGIN X-----\n", pem_user }, -EBADMSG },
	{ "text behind", { pem_first, "text" }, -EBADMSG },
	{ "no end", { pem_first, "-----BEGIN CERTIFICATE-----\nMIIB" }, -EBADMSG },
	{ "not base64",
	  { "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n" },
	  -EBADMSG },
	{ "not DER",
	  { "-----BEGIN CERTIFICATE-----\nZm9v\n-----END CERTIFICATE-----\n" },
	  -EBADMSG },
	{ "empty", { "-----BEGIN CERTIFICATE----------END CERTIFICATE-----\n" }, -EBADMSG },
};

static void read_sets(void)
{
	struct buf b = BUF_INIT(65536);
	struct cert_set s;
	size_t i, k;
	int r;

	for (i = 0; i < ARRAY_SIZE(sets); i++) {
		b.n = b.off = 0;
		for (k = 0; k < 3 && sets[i].text[k]; k++)
			check(buf_add(&b, sets[i].text[k], strlen(sets[i].text[k])) == 0);
		r = cert_set_read(&s, buf_str(&b), b.n);
		if ((r < 0 ? r : (int)s.n) != sets[i].want) {
			(void)fprintf(stderr, "%s: %d\n", sets[i].name, r);
			abort();
		}
	}
	b.n = b.off = 0;
	for (i = 0; i <= CERT_SET_MAX; i++)
		check(buf_add(&b, pem_user, strlen(pem_user)) == 0);
	check(cert_set_read(&s, buf_str(&b), b.n) == -ENOBUFS);
	buf_done(&b);
}

/* What is before, and what becomes of it: texts one after the other. */
static const struct {
	const char *name;
	const char *before[5], *after[5];
} edits[] = {
	{ "nothing there", { NULL }, { pem_second } },
	{ "others stay", { pem_user, pem_odd }, { pem_user, pem_odd, pem_second } },
	{ "an earlier one is replaced", { pem_first, pem_user }, { pem_user, pem_second } },
	{ "the same", { pem_user, pem_second }, { pem_user, pem_second } },
	{ "several of them",
	  { pem_first, pem_user, pem_second, pem_first },
	  { pem_user, pem_second } },
	{ "no line end", { pem_user, "# the end" }, { pem_user, "# the end\n", pem_second } },
	{ "comments stay",
	  { "# a\n", pem_user, "# b\n", pem_first, "# c\n" },
	  { "# a\n", pem_user, "# b\n", "# c\n", pem_second } },
	{ "half a certificate",
	  { pem_first, "-----BEGIN CERTIFICATE-----\nMII\n" },
	  { "-----BEGIN CERTIFICATE-----\nMII\n", pem_second } },
	{ "what cannot be read stays",
	  { "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n" },
	  { "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n", pem_second } },
};

static void join(struct buf *b, const char *const *v)
{
	size_t i;

	b->n = b->off = 0;
	for (i = 0; i < 5 && v[i]; i++)
		check(buf_add(b, v[i], strlen(v[i])) == 0);
}

static void bundles(void)
{
	struct buf before = BUF_INIT(65536), after = BUF_INIT(65536), got = BUF_INIT(65536);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(edits); i++) {
		join(&before, edits[i].before);
		join(&after, edits[i].after);
		got.n = got.off = 0;
		check(cert_bundle(&got, buf_str(&before), before.n, &none, &second, pem_second,
				  strlen(pem_second)) == 0);
		if (!streq(buf_str(&got), buf_str(&after))) {
			(void)fprintf(stderr, "%s:\n%s\n", edits[i].name, buf_str(&got));
			abort();
		}
	}
	/* an earlier one of another name; none any more */
	join(&before, edits[2].before);
	got.n = got.off = 0;
	check(cert_bundle(&got, buf_str(&before), before.n, &first, &none, "", 0) == 0);
	check(streq(buf_str(&got), pem_user));
	buf_done(&before);
	buf_done(&after);
	buf_done(&got);
}

int main(void)
{
	check(cert_set_read(&first, pem_first, strlen(pem_first)) == 0);
	check(cert_set_read(&second, pem_second, strlen(pem_second)) == 0);
	check(cert_set_read(&user, pem_user, strlen(pem_user)) == 0);
	hashes();
	subjects();
	damaged();
	read_sets();
	bundles();
	return 0;
}
