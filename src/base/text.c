/* Text to values and back. */
#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

int text_u64(const char *s, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (!*s)
		return -EINVAL;
	for (; *s; s++) {
		unsigned d = (unsigned)*s - '0';

		if (d > 9)
			return -EINVAL;
		if (v > (UINT64_MAX - d) / 10)
			return -ERANGE;
		v = v * 10 + d;
	}
	if (v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

/* The shift that a unit means, or -1. */
static int unit_shift(const char *u)
{
	static const char units[] = "bkmgt";
	const char *at;
	char c = (char)tolower((unsigned char)*u);

	if (!c)
		return 0;
	at = strchr(units, c);
	if (!at)
		return -1;
	u++;
	if (c != 'b') {
		if (tolower((unsigned char)*u) == 'i')
			u++;
		if (tolower((unsigned char)*u) == 'b')
			u++;
	}
	return *u ? -1 : (int)(at - units) * 10;
}

int text_size(const char *s, uint64_t *ret)
{
	size_t digits = strspn(s, "0123456789");
	char num[24];
	uint64_t v;
	int shift, r;

	if (!digits)
		return -EINVAL;
	if (digits >= sizeof(num))
		return -ERANGE;
	memcpy(num, s, digits);
	num[digits] = '\0';
	shift = unit_shift(s + digits);
	if (shift < 0)
		return -EINVAL;
	r = text_u64(num, UINT64_MAX, &v);
	if (r < 0)
		return r;
	if (v > UINT64_MAX >> shift)
		return -ERANGE;
	*ret = v << shift;
	return 0;
}

static const struct {
	const char *unit;
	uint64_t us;
} time_units[] = {
	{ "ms", 1000 },    { "us", 1 },      { "h", 3600000000 },
	{ "m", 60000000 }, { "s", 1000000 }, { "d", 86400000000 },
};

/* One "12.5h": microseconds, and where it ended. 0 or -EINVAL. */
static int one_duration(const char **s, uint64_t *ret)
{
	uint64_t whole = 0, frac = 0, scale = 1;
	const char *p = *s;
	size_t i;

	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	for (; isdigit((unsigned char)*p); p++) {
		whole = whole * 10 + (uint64_t)(*p - '0');
		if (whole > 1000000000000)
			return -ERANGE;
	}
	if (*p == '.')
		for (p++; isdigit((unsigned char)*p); p++)
			if (scale < 1000000) {
				frac = frac * 10 + (uint64_t)(*p - '0');
				scale *= 10;
			}
	for (i = 0; i < ARRAY_SIZE(time_units); i++) {
		size_t len = strlen(time_units[i].unit);
		uint64_t us = time_units[i].us;

		if (strncmp(p, time_units[i].unit, len) != 0)
			continue;
		if (whole > UINT64_MAX / 4 / us)
			return -ERANGE;
		*ret = whole * us + frac * us / scale;
		*s = p + len;
		return 0;
	}
	return -EINVAL;
}

int text_duration_ms(const char *s, uint64_t *ret)
{
	const uint64_t max_us = 10ULL * 366 * 86400 * 1000000;
	uint64_t total = 0, one;
	int r;

	if (*s && !s[strspn(s, "0123456789")]) {
		r = text_u64(s, max_us / 1000000, &one);
		if (r == 0)
			*ret = one * 1000;
		return r;
	}
	if (!*s)
		return -EINVAL;
	while (*s) {
		r = one_duration(&s, &one);
		if (r < 0)
			return r;
		if (one > max_us || total > max_us - one)
			return -ERANGE;
		total += one;
	}
	*ret = total / 1000;
	return 0;
}

const char *text_from_size(char *dst, size_t max, uint64_t bytes)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	uint64_t rest = 0;
	size_t u = 0;

	while (bytes >= 1024 && u + 1 < ARRAY_SIZE(unit)) {
		rest = bytes % 1024;
		bytes /= 1024;
		u++;
	}
	if (bytes < 10 && rest * 10 / 1024)
		(void)snprintf(dst, max, "%" PRIu64 ".%" PRIu64 " %s", bytes, rest * 10 / 1024,
			       unit[u]);
	else
		(void)snprintf(dst, max, "%" PRIu64 " %s", bytes, unit[u]);
	return dst;
}

const char *text_from_ms(char *dst, size_t max, uint64_t ms)
{
	static const struct {
		uint64_t ms;
		const char *unit;
	} steps[] = {
		{ 86400000, "day" },
		{ 3600000, "hour" },
		{ 60000, "minute" },
		{ 1000, "second" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		uint64_t n = ms / steps[i].ms;

		if (!n)
			continue;
		(void)snprintf(dst, max, "%" PRIu64 " %s%s", n, steps[i].unit, n == 1 ? "" : "s");
		return dst;
	}
	(void)snprintf(dst, max, "0 seconds");
	return dst;
}

char *text_dup(const void *p, size_t n)
{
	char *s = malloc(n + 1);

	if (!s)
		return NULL;
	if (n)
		memcpy(s, p, n);
	s[n] = '\0';
	return s;
}

int text_copy(char *dst, size_t max, const char *src)
{
	size_t len = strlen(src);

	if (len >= max)
		return -ENAMETOOLONG;
	memcpy(dst, src, len + 1);
	return 0;
}

enum { DIST_MAX = 63 };

unsigned text_distance(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b), i, j;
	uint8_t d[3][DIST_MAX + 1];

	if (la > DIST_MAX || lb > DIST_MAX)
		return 255;
	for (j = 0; j <= lb; j++)
		d[0][j] = (uint8_t)j;
	for (i = 1; i <= la; i++) {
		uint8_t *now = d[i % 3], *up = d[(i + 2) % 3], *up2 = d[(i + 1) % 3];

		now[0] = (uint8_t)i;
		for (j = 1; j <= lb; j++) {
			unsigned cost = a[i - 1] != b[j - 1];
			unsigned v = MIN(up[j] + 1U, now[j - 1] + 1U);

			v = MIN(v, up[j - 1] + cost);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				v = MIN(v, up2[j - 2] + 1U);
			now[j] = (uint8_t)v;
		}
	}
	return d[la % 3][lb];
}

const char *text_nearest(const char *word, const void *list, size_t n, size_t stride)
{
	unsigned best = 255, limit = (unsigned)strlen(word) / 3 + 1;
	const char *found = NULL;
	size_t i;

	for (i = 0; i < n; i++) {
		const char *name = *(const char *const *)((const char *)list + i * stride);
		unsigned d;

		if (!name)
			continue;
		d = text_distance(word, name);
		if (strlen(word) >= 2 && starts_with(name, word))
			d = MIN(d, 1U);
		if (d < best) {
			best = d;
			found = name;
		}
	}
	return best <= limit ? found : NULL;
}

static bool is_name_end(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

const char *text_name_fault(const char *name)
{
	size_t len = strlen(name), i;

	if (!len)
		return "is empty";
	if (len > 63)
		return "is too long (63 characters or fewer)";
	if (!is_name_end(name[0]))
		return "must start with a letter or a digit";
	for (i = 0; i < len; i++)
		if (!is_name_end(name[i]) && !strchr("-.", name[i]))
			return "may hold only letters, digits, '-' and '.'";
	if (!is_name_end(name[len - 1]))
		return "must end with a letter or a digit";
	if (streq(name, "default"))
		return "is reserved";
	return NULL;
}

void text_to_name(char *dst, size_t max, const char *src)
{
	size_t n = 0, limit = MIN(max - 1, (size_t)63);

	for (; *src && n < limit; src++) {
		if (is_name_end(*src))
			dst[n++] = *src;
		else if (n && dst[n - 1] != '-')
			dst[n++] = *src == '.' ? '.' : '-';
	}
	while (n && !is_name_end(dst[n - 1]))
		n--;
	dst[n] = '\0';
	if (text_name_fault(dst)) {
		char name[64];

		(void)snprintf(name, sizeof(name), "sandbox%s%.50s", n ? "-" : "", dst);
		(void)snprintf(dst, max, "%s", name);
	}
}

bool text_is_utf8(const char *str, size_t n)
{
	const uint8_t *s = (const uint8_t *)str, *end = s + n;

	while (s < end) {
		uint32_t c = *s++, min;
		int more;

		if (c < 0x80)
			continue;
		if (c >= 0xc2 && c < 0xe0)
			more = 1, min = 0x80, c &= 0x1f;
		else if (c >= 0xe0 && c < 0xf0)
			more = 2, min = 0x800, c &= 0x0f;
		else if (c >= 0xf0 && c < 0xf5)
			more = 3, min = 0x10000, c &= 0x07;
		else
			return false;
		if (end - s < more)
			return false;
		for (; more; more--, s++) {
			if ((*s & 0xc0) != 0x80)
				return false;
			c = c << 6 | (*s & 0x3f);
		}
		if (c < min || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
			return false;
	}
	return true;
}
