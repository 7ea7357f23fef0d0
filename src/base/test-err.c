/* Errors for people: one line, clean, and the cause is never lost. */
#include "base/err.h"

#include "base/check.h"

static char longer[3 * ERR_MSG_MAX];

static void sets(void)
{
	struct err e;

	check(err_set(&e, -EINVAL, "line %d: '%s'", 7, "x") == -EINVAL);
	check(e.code == -EINVAL && streq(e.msg, "line 7: 'x'"));
	check(err_set(&e, -EIO, "%s", longer) == -EIO);
	check(strlen(e.msg) == ERR_MSG_MAX - 1);
	check(err_errno(&e, -ENOENT, "cannot open '%s'", "/x") == -ENOENT);
	check(streq(e.msg, "cannot open '/x': No such file or directory"));
	check(err_errno(&e, -ENOSPC, "%s", longer) == -ENOSPC);
	check(streq(e.msg + strlen(e.msg) - 25, ": No space left on device"));
	check(strlen(e.msg) <= ERR_MSG_MAX - 1);
	check(err_errno(&e, -4000, "x") == -4000 && streq(e.msg, "x: unknown error"));
	check(streq(err_text(EPERM), err_text(-EPERM)));
	check(streq(err_text(-EPERM), "Operation not permitted"));
	check(err_text(0) && err_text(-4000) && err_text(4000));
}

static void adds_context(void)
{
	char context[ERR_MSG_MAX];
	struct err e;
	size_t room;

	(void)err_set(&e, -EIO, "cause");
	check(err_ctx(&e, "cannot do %s", "it") == -EIO);
	check(streq(e.msg, "cannot do it: cause"));
	check(err_ctx(&e, "%s", longer) == -EIO);
	check(streq(e.msg, "cannot do it: cause")); /* no room: dropped */
	check(err_ctx(&e, "%s", "") == -EIO && streq(e.msg, "cannot do it: cause"));

	/* the longest context that fits, and one byte more */
	room = ERR_MSG_MAX - 1 - strlen("cause") - 2;
	memset(context, 'c', sizeof(context));
	context[room] = '\0';
	(void)err_set(&e, -EIO, "cause");
	(void)err_ctx(&e, "%s", context);
	check(strlen(e.msg) == ERR_MSG_MAX - 1 && streq(e.msg + room, ": cause"));
	context[room] = 'c';
	context[room + 1] = '\0';
	(void)err_set(&e, -EIO, "cause");
	(void)err_ctx(&e, "%s", context);
	check(streq(e.msg, "cause"));
}

/* What a guest says may contain anything, and the user's terminal must not obey it. */
static void is_printable(void)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "a\nb\tc\033[31m\177", "a?b?c?[31m?" },
		{ "gr\303\274n \342\202\254 \360\237\230\200",
		  "gr\303\274n \342\202\254 \360\237\230\200" },
		{ "\302\233"
		  "31m",
		  "??31m" },                            /* CSI of C1 in UTF-8 */
		{ "\302\237|\302\240", "??|\302\240" }, /* the last of C1, the first after it */
		{ "\233|\377\376", "?|??" },            /* raw C1, never UTF-8 */
		{ "\303", "?" },                        /* cut */
		{ "\342\202", "??" },
		{ "\303(", "?(" },
		{ "\300\257 \355\240\200 \364\220\200\200",
		  "?? ??? ????" }, /* overlong, surrogate, large */
	};
	struct err e;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		(void)err_set(&e, -EIO, "%s", rows[i].in);
		if (!streq(e.msg, rows[i].out))
			fprintf(stderr, "row %zu: '%s'\n", i, e.msg);
		check(streq(e.msg, rows[i].out));
		(void)err_set(&e, -EIO, "x");
		(void)err_ctx(&e, "%s", rows[i].in);
		check(!strncmp(e.msg, rows[i].out, strlen(rows[i].out)));
		(void)err_errno(&e, -EIO, "%s", rows[i].in);
		check(!strncmp(e.msg, rows[i].out, strlen(rows[i].out)));
	}
}

int main(void)
{
	memset(longer, 'l', sizeof(longer) - 1);
	sets();
	adds_context();
	is_printable();
	return 0;
}
