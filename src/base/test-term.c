/* What a program writes, and the modes that are left on. */
#include "base/term.h"

#include <string.h>

#include "base/check.h"

static const struct {
	const char *wrote, *put, *undo;
	bool draws;
} rows[] = {
	{ "", "", "", false },
	{ "plain\r\n\x1b[31mred\x1b[m", "", "", false },
	{ "\x1b[?2004h$ ", "\x1b[?2004h", "\x1b[?2004l", false },
	{ "\x1b[?2004h\x1b[?2004l", "", "", false },
	{ "\x1b[?1049h\x1b[?25l", "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l", true },
	{ "\x1b[?25l\x1b[?25h", "", "", false },
	{ "\x1b[?1000;1006h", "\x1b[?1000h\x1b[?1006h", "\x1b[?1006l\x1b[?1000l", false },
	{ "\x1b[>7u", "\x1b[>7u", "\x1b[<1u", true },
	{ "\x1b[>1u\x1b[>3u", "\x1b[>3u", "\x1b[<2u", true },
	{ "\x1b[>1u\x1b[<u", "", "", false },
	{ "\x1b[<9u", "", "", false },
	{ "\x1b[=5u", "\x1b[>5u", "\x1b[<1u", true },
	{ "\x1b[>4;2m", "\x1b[>4;2m", "\x1b[>4;0m", false },
	{ "\x1b[>4;2m\x1b[>4;0m", "", "", false },
	{ "\x1b[>4;2m\x1b[>4m", "", "", false },
	{ "\x1b[?7l", "\x1b[?7l", "\x1b[?7h", false },
	{ "\x1b[?1049h\x1b"
	  "c",
	  "", "", false },
	{ "\x1b[?1000h\x1b[!p", "", "", false },
	/* inside of strings nothing counts */
	{ "\x1b]0;\x1b[?25l\x07", "", "", false },
	{ "\x1b]0;t\x1b\\\x1b[?25l", "\x1b[?25l", "\x1b[?25h", true },
	{ "\x1bP\x1b[?1049h\x1b\\", "", "", false },
	/* too long, cut off, cancelled */
	{ "\x1b[?1111111111111111111111111111111111111;25l", "", "", false },
	{ "\x1b[?25", "", "", false },
	{ "\x1b[?25\x18l", "", "", false },
	{ "\x1b[?99999999999999999999h", "", "", false },
	{ "\x1b[?25\x1b[?2004h", "\x1b[?2004h", "\x1b[?2004l", false },
};

static void row(size_t i, size_t piece)
{
	struct buf put = BUF_INIT(TERM_TEXT_MAX), undo = BUF_INIT(TERM_TEXT_MAX);
	const char *p = rows[i].wrote;
	size_t n = strlen(p), at;
	struct term t = { 0 };
	char want[64];

	for (at = 0; at < n; at += piece)
		term_see(&t, p + at, MIN(piece, n - at));
	check(term_draws(&t) == rows[i].draws);
	check(term_put(&t, &put) == 0 && term_undo(&t, &undo) == 0);
	(void)snprintf(want, sizeof(want), "%s\x1b[0m", rows[i].undo);
	check(streq(buf_str(&put), rows[i].put));
	check(streq(buf_str(&undo), want));
	buf_done(&put);
	buf_done(&undo);
}

/* All modes at once fit. */
static void most(void)
{
	struct buf out = BUF_INIT(TERM_TEXT_MAX);
	struct term t = { .on = 0xffff, .kitty = 100, .flags = 31, .modify = true };

	check(term_put(&t, &out) == 0);
	buf_consume(&out, out.n);
	check(term_undo(&t, &out) == 0);
	buf_done(&out);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t piece = 1; piece < 40; piece += 6)
			row(i, piece);
	most();
	return 0;
}
