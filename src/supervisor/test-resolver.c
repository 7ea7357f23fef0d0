/* The host's resolver files are watched through links, renames and mounts: in an /etc of our own. */
#include "supervisor/resolver.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "io/fd.h"

enum { MAX = 64 };

static struct resolver v = RESOLVER_INIT;

static void put(const char *path, const char *text)
{
	_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	check(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
}

/* News of one of ours have come; afterwards it is watched anew, as the minder does. */
static void heard(void)
{
	struct pollfd p = { .fd = v.notes, .events = POLLIN };
	bool ours = false;

	while (!ours) {
		check(poll(&p, 1, 5000) == 1);
		ours = resolver_news(&v);
	}
	resolver_watch(&v);
}

static void is_conf(const char *want)
{
	_free_ char *text = resolver_conf(MAX);

	check(text && streq(text, want));
}

static void own_etc(void)
{
	char uids[64], gids[64];

	check(snprintf(uids, sizeof(uids), "0 %u 1", geteuid()) > 0);
	check(snprintf(gids, sizeof(gids), "0 %u 1", getegid()) > 0);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		skip("no user namespaces here");
	put("/proc/self/setgroups", "deny");
	put("/proc/self/uid_map", uids);
	put("/proc/self/gid_map", gids);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("etc", "/etc", "tmpfs", 0, "") < 0 || mount("run", "/tmp", "tmpfs", 0, "") < 0)
		skip("nothing can be mounted here");
}

int main(void)
{
	char longer[MAX + 8];

	own_etc();
	resolver_watch(&v);
	is_conf("");
	put("/etc/resolv.conf", "one");
	heard();
	is_conf("one");

	put("/etc/else", "x"); /* nobody's news */
	check(!resolver_news(&v));

	put("/etc/new", "two");
	check(rename("/etc/new", "/etc/resolv.conf") == 0);
	heard();
	is_conf("two");

	/* a link, whose target is replaced, and which is then led elsewhere */
	check(mkdir("/tmp/a", 0755) == 0 && mkdir("/tmp/b", 0755) == 0);
	put("/tmp/a/stub", "three");
	check(unlink("/etc/resolv.conf") == 0 && symlink("../tmp/a/stub", "/etc/resolv.conf") == 0);
	heard();
	is_conf("three");
	put("/tmp/a/new", "four");
	check(rename("/tmp/a/new", "/tmp/a/stub") == 0);
	heard();
	is_conf("four");
	put("/tmp/b/stub", "five");
	check(symlink("/tmp/b/stub", "/etc/next") == 0 &&
	      rename("/etc/next", "/etc/resolv.conf") == 0);
	heard();
	is_conf("five");

	/* a mount, whose file changes where it comes from */
	put("/tmp/b/mounted", "six");
	check(unlink("/etc/resolv.conf") == 0);
	put("/etc/resolv.conf", "");
	check(mount("/tmp/b/mounted", "/etc/resolv.conf", NULL, MS_BIND, NULL) == 0);
	resolver_watch(&v);
	is_conf("six");
	put("/tmp/b/mounted", "seven");
	heard();
	is_conf("seven");

	put("/etc/hosts", "127.0.0.1 here");
	heard();
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	put("/etc/hosts", longer);
	heard();
	_free_ char *hosts = resolver_hosts(MAX);
	check(hosts && streq(hosts, ""));
	return 0;
}
