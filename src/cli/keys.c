#include "cli/keys.h"

enum { ESC = 0x1b, CTRL = 4, LOCKS = 0xc0, SEQUENCE_MAX = 24 };

static int one_key(const char *p, size_t n, uint8_t *ret)
{
	if (n == 6 && strncasecmp(p, "ctrl-", 5) == 0 && p[5] >= '?' && p[5] < 0x7f) {
		*ret = p[5] == '?' ? 0x7f : (uint8_t)(p[5] & 0x1f);
		return 0;
	}
	if (n == 1 && *p > ' ' && *p < 0x7f) {
		*ret = (uint8_t)*p;
		return 0;
	}
	return -EINVAL;
}

int keys_parse(const char *text, struct keys *ret, struct err *e)
{
	struct keys k = { .n = 0 };
	const char *p = text;
	size_t len;

	if (streq(text, "none")) {
		*ret = k;
		return 0;
	}
	for (;; p += len + 1) {
		len = strcspn(p, ",");
		if (k.n == KEYS_MAX || one_key(p, len, &k.seq[k.n]) < 0)
			return err_set(e, -EINVAL,
				       "--detach-keys: '%.60s' is not a list of keys (a letter, or "
				       "ctrl-LETTER; %d at most), nor 'none'",
				       text, KEYS_MAX);
		k.n++;
		if (!p[len])
			break;
	}
	*ret = k;
	return 0;
}

/* Up to three numbers, "92;5" or "27;5;92" or "92:1;5:1". */
static size_t numbers(const uint8_t *p, size_t n, unsigned v[3])
{
	bool counts = true;
	size_t i, k = 0;

	v[0] = v[1] = v[2] = 0;
	for (i = 0; i < n && i < SEQUENCE_MAX; i++) {
		if (p[i] == ';') {
			if (++k == 3)
				return 0;
			counts = true;
		} else if (p[i] == ':') {
			counts = false; /* another form of the key; the event */
			if (k == 1 && i + 1 < n && p[i + 1] == '3')
				return 0; /* it is let go of */
		} else if (p[i] < '0' || p[i] > '9') {
			return i;
		} else if (counts) {
			v[k] = MIN(v[k] * 10 + (unsigned)(p[i] - '0'), 100000U);
		}
	}
	return 0;
}

/* How many bytes at p are one key, and which. */
static size_t key_at(const uint8_t *p, size_t n, uint8_t *ret)
{
	unsigned v[3], code = 0, mods = 0;
	size_t len = n > 2 && p[0] == ESC && p[1] == '[' ? numbers(p + 2, n - 2, v) : 0;

	*ret = p[0];
	if (!len)
		return 1;
	if (p[2 + len] == 'u') {
		code = v[0];
		mods = v[1];
	} else if (p[2 + len] == '~' && v[0] == 27) {
		code = v[2];
		mods = v[1];
	}
	if (!mods || ((mods - 1) & ~(unsigned)LOCKS) != CTRL || code < '?' || code >= 0x7f)
		return 1;
	*ret = code == '?' ? 0x7f : (uint8_t)(code & 0x1f);
	return len + 3;
}

static void pass(struct keys *k, uint8_t *out, size_t *n)
{
	memcpy(out + *n, k->held, k->n_held);
	*n += k->n_held;
	k->n_held = k->at = 0;
}

bool keys_feed(struct keys *k, const void *in, size_t n, uint8_t *out, size_t *ret_n)
{
	const uint8_t *p = in;
	size_t done = 0, len;
	uint8_t key;

	*ret_n = 0;
	for (; done < n; done += len) {
		len = key_at(p + done, n - done, &key);
		if (k->at && (key != k->seq[k->at] || k->n_held + len > KEYS_HELD_MAX))
			pass(k, out, ret_n);
		if (k->n && key == k->seq[k->at]) {
			memcpy(k->held + k->n_held, p + done, len);
			k->n_held += len;
			if (++k->at < k->n)
				continue;
			k->n_held = k->at = 0;
			return true;
		}
		memcpy(out + *ret_n, p + done, len);
		*ret_n += len;
	}
	return false;
}
