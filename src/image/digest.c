/* SHA-256, by OpenSSL. */
#include "image/digest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fd.h"

enum { PART = 64 * 1024 };

void image_digest_init(struct image_digest *d)
{
	d->ctx = EVP_MD_CTX_new();
	d->r = d->ctx && EVP_DigestInit_ex(d->ctx, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;
}

static void update(struct image_digest *d, const void *p, size_t n)
{
	if (d->r == 0 && EVP_DigestUpdate(d->ctx, p, n) != 1)
		d->r = -EIO;
}

static void length(struct image_digest *d, char kind, uint64_t n)
{
	char head[32];
	int len = snprintf(head, sizeof(head), "%c%llu:", kind, (unsigned long long)n);

	update(d, head, (size_t)len);
}

void image_digest_bytes(struct image_digest *d, const void *p, size_t n)
{
	length(d, 'b', n);
	update(d, p, n);
}

void image_digest_text(struct image_digest *d, const char *s)
{
	length(d, s ? 't' : 'n', s ? strlen(s) : 0);
	if (s)
		update(d, s, strlen(s));
}

static void content(struct image_digest *d, int fd)
{
	_free_ char *part = malloc(PART);
	ssize_t n = part ? 0 : -ENOMEM;

	while (part && (n = fd_read_all(fd, part, PART)) > 0)
		update(d, part, (size_t)n);
	if (n < 0)
		d->r = (int)n;
}

void image_digest_file(struct image_digest *d, int dir, const char *path)
{
	_close_ int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (d->r < 0)
		return;
	if (fd < 0 || fstat(fd, &st) < 0) {
		d->r = -errno;
		return;
	}
	length(d, 'f', (uint64_t)st.st_size);
	content(d, fd);
}

static void to_hex(const unsigned char *raw, size_t n, char *hex)
{
	static const char digits[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < n; i++) {
		hex[2 * i] = digits[raw[i] >> 4];
		hex[2 * i + 1] = digits[raw[i] & 15];
	}
	hex[2 * i] = '\0';
}

int image_digest_plain(const void *p, size_t n, char hex[IMAGE_DIGEST_MAX + 1])
{
	unsigned char raw[EVP_MAX_MD_SIZE];
	unsigned len = 0;

	if (EVP_Digest(p, n, raw, &len, EVP_sha256(), NULL) != 1 || len != IMAGE_DIGEST_MAX / 2)
		return -EIO;
	to_hex(raw, len, hex);
	return 0;
}

int image_digest_end(struct image_digest *d, char hex[IMAGE_DIGEST_MAX + 1])
{
	unsigned char raw[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	if (d->r == 0 && (EVP_DigestFinal_ex(d->ctx, raw, &n) != 1 || n != IMAGE_DIGEST_MAX / 2))
		d->r = -EIO;
	EVP_MD_CTX_free(d->ctx);
	d->ctx = NULL;
	if (d->r < 0)
		return d->r;
	to_hex(raw, n, hex);
	return 0;
}
