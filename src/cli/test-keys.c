/* The keys that leave a command running. */
#include "cli/keys.h"

#include "base/check.h"

static const struct {
	const char *keys, *typed, *passed;
	bool left;
} rows[] = {
	{ KEYS_DEFAULT, "abc", "abc", false },
	{ KEYS_DEFAULT, "ab\x1c", "ab", true },
	{ KEYS_DEFAULT, "\x1c", "", true },
	{ KEYS_DEFAULT, "x\x1b[92;5u", "x", true },
	{ KEYS_DEFAULT, "\x1b[92;5:1u", "", true },
	{ KEYS_DEFAULT, "\x1b[92::92;5u", "", true },
	{ KEYS_DEFAULT, "\x1b[92;133u", "", true },
	{ KEYS_DEFAULT, "\x1b[27;5;92~", "", true },
	{ KEYS_DEFAULT, "\x1b[92;5:3u", "\x1b[92;5:3u", false },
	{ KEYS_DEFAULT, "\x1b[92u", "\x1b[92u", false },
	{ KEYS_DEFAULT, "\x1b[92;6u", "\x1b[92;6u", false },
	{ KEYS_DEFAULT, "\x1b[1;5D", "\x1b[1;5D", false },
	{ KEYS_DEFAULT, "\x1b", "\x1b", false },
	{ KEYS_DEFAULT, "\x1b[9", "\x1b[9", false },
	{ KEYS_DEFAULT, "\x1b[1;2;3;4u", "\x1b[1;2;3;4u", false },
	{ "none", "\x1c\x10\x11", "\x1c\x10\x11", false },
	{ "ctrl-p,ctrl-q", "a\x10\x11", "a", true },
	{ "ctrl-p,ctrl-q", "\x10z\x11", "\x10z\x11", false },
	{ "ctrl-p,ctrl-q", "\x10\x10\x11", "\x10", true },
	{ "ctrl-p,ctrl-q", "\x1b[112;5u\x11", "", true },
	{ "ctrl-p,ctrl-q", "\x1b[112;5ux", "\x1b[112;5ux", false },
	{ "CTRL-A,d",
	  "\x01"
	  "d",
	  "", true },
};

static void row(size_t i, size_t piece)
{
	const uint8_t *p = (const uint8_t *)rows[i].typed;
	size_t n = strlen(rows[i].typed), at, total = 0, k;
	uint8_t out[64 + KEYS_HELD_MAX];
	char all[128] = "";
	bool left = false;
	struct keys keys;
	struct err e;

	check(keys_parse(rows[i].keys, &keys, &e) == 0);
	for (at = 0; at < n && !left; at += piece) {
		left = keys_feed(&keys, p + at, MIN(piece, n - at), out, &k);
		memcpy(all + total, out, k);
		total += k;
	}
	check(left == rows[i].left);
	check(total == strlen(rows[i].passed) && !memcmp(all, rows[i].passed, total));
}

static void texts(void)
{
	static const char *const wrong[] = { "",        "ctrl-", "ctrl-p,",          "p q",
					     "ctrl-pp", ",",     "a,b,c,d,e,f,g,h,i" };
	struct keys keys;
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		check(keys_parse(wrong[i], &keys, &e) == -EINVAL);
	check(keys_parse("ctrl-?,ctrl-@,ctrl-[", &keys, &e) == 0);
	check(keys.n == 3 && keys.seq[0] == 0x7f && keys.seq[1] == 0 && keys.seq[2] == 0x1b);
}

/* Keys that are held back for long pass on. */
static void held(void)
{
	uint8_t out[KEYS_HELD_MAX + 64];
	struct keys keys;
	struct err e;
	size_t k;

	check(keys_parse("a,a", &keys, &e) == 0);
	check(!keys_feed(&keys, "a", 1, out, &k) && k == 0);
	check(!keys_feed(&keys, "b", 1, out, &k) && k == 2 && !memcmp(out, "ab", 2));
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		row(i, 64);
	/* typed by hand each key comes alone */
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strchr(rows[i].typed, 0x1b))
			row(i, 1);
	texts();
	held();
	return 0;
}
