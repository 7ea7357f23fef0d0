/* The names that are known for a minute. */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "io/fd.h"
#include "state/known.h"
#include "sys/dirs.h"

static char root[] = "/tmp/test-bac-known-XXXXXX";
static const char one[] = "0123456789ab", two[] = "ba9876543210";

static bool is(const char *name, const char *id)
{
	char got[KNOWN_ID + 1];

	return known_find(root, name, got) == 0 && streq(got, id);
}

static bool unknown(const char *name)
{
	char got[KNOWN_ID + 1] = "";

	return known_find(root, name, got) == -ENOENT && !got[0];
}

static void set_age(int fd, const char *link, time_t age)
{
	struct timespec ts[2] = { { .tv_sec = time(NULL) - age }, { .tv_sec = time(NULL) - age } };

	check(utimensat(fd, link, ts, AT_SYMLINK_NOFOLLOW) == 0);
}

static void test_life(int fd)
{
	check(unknown("a"));
	known_put(fd, "a", one);
	check(is("a", one) && unknown("b"));
	known_put(fd, "a", two);
	known_put(fd, "b.c-1", one);
	check(is("a", two) && is("b.c-1", one));
	known_forget(fd, "a");
	known_forget(fd, "a");
	check(unknown("a") && is("b.c-1", one));
	known_forget_all(fd);
	check(unknown("b.c-1"));
}

static void test_age(int fd)
{
	known_put(fd, "a", one);
	set_age(fd, "names/a", KNOWN_SECONDS - 2);
	check(is("a", one));
	set_age(fd, "names/a", KNOWN_SECONDS);
	check(unknown("a"));
	set_age(fd, "names/a", -3600); /* the clock was set back since */
	check(unknown("a"));
	known_put(fd, "a", one);
	check(is("a", one));
}

/* Whatever else may lie there. */
static void test_foreign(int fd)
{
	static const char *const texts[] = { "/etc/passwd", "0123456789AB", "0123456789a",
					     "0123456789abc", "../../../x.y" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		(void)unlinkat(fd, "names/x", 0);
		check(symlinkat(texts[i], fd, "names/x") == 0);
		check(unknown("x"));
	}
	(void)unlinkat(fd, "names/x", 0);
	check(mkdirat(fd, "names/x", 0700) == 0);
	check(unknown("x"));
	known_put(fd, "x", one); /* cannot, and is silent */
	check(unknown("x"));
	check(symlinkat(one, fd, "outside") == 0);
	check(unknown("../outside") && unknown("..") && unknown("") && unknown("/"));
	known_put(fd, "../made", one);
	check(faccessat(fd, "made", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
	known_forget(fd, "../outside");
	check(faccessat(fd, "outside", F_OK, AT_SYMLINK_NOFOLLOW) == 0);
}

int main(void)
{
	int fd;

	check(mkdtemp(root));
	fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(fd >= 0);
	test_life(fd);
	test_age(fd);
	test_foreign(fd);
	(void)fd_close(fd);
	check(dirs_remove(AT_FDCWD, root) == 0);
	return 0;
}
