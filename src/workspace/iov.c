#include "workspace/iov.h"

size_t iov_len(const struct iovec *v, size_t n)
{
	size_t sum = 0, i;

	for (i = 0; i < n; i++)
		sum = v[i].iov_len > SIZE_MAX - sum ? SIZE_MAX : sum + v[i].iov_len;
	return sum;
}

/* One of get and put: where the bytes go to, or come from. */
static size_t copy(const struct iovec *v, size_t n, size_t skip, uint8_t *get, const uint8_t *put,
		   size_t len)
{
	size_t done = 0, i, part;
	uint8_t *there;

	for (i = 0; i < n && done < len; i++) {
		if (skip >= v[i].iov_len) {
			skip -= v[i].iov_len;
			continue;
		}
		part = MIN(v[i].iov_len - skip, len - done);
		there = (uint8_t *)v[i].iov_base + skip;
		if (get)
			memcpy(get + done, there, part);
		else
			memcpy(there, put + done, part);
		done += part;
		skip = 0;
	}
	return done;
}

size_t iov_get(const struct iovec *v, size_t n, size_t skip, void *dst, size_t len)
{
	return copy(v, n, skip, dst, NULL, len);
}

size_t iov_put(const struct iovec *v, size_t n, size_t skip, const void *src, size_t len)
{
	return copy(v, n, skip, NULL, src, len);
}

size_t iov_cut(struct iovec *dst, size_t max, const struct iovec *v, size_t n, size_t skip,
	       size_t len, size_t *ret_len)
{
	size_t k = 0, i, part, sum = 0;

	for (i = 0; i < n && k < max && sum < len; i++) {
		if (skip >= v[i].iov_len) {
			skip -= v[i].iov_len;
			continue;
		}
		part = MIN(v[i].iov_len - skip, len - sum);
		dst[k++] = (struct iovec) { .iov_base = (uint8_t *)v[i].iov_base + skip,
					    .iov_len = part };
		sum += part;
		skip = 0;
	}
	*ret_len = sum;
	return k;
}
