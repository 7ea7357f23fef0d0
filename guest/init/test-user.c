/* Who a command runs as. */
#include "base/check.h"
#include "guest/init/user.h"

static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
			     "# agent:x:5:5::/wrong:/wrong\n"
			     "short:x:7\n"
			     "\n"
			     "neg:x:-1:0::/:/bin/sh\n"
			     "max:x:4294967295:0::/:/bin/sh\n"
			     "1001:x:77:78::/numeric:/bin/sh\n"
			     "other:x:1001:1001::/home/other:\n"
			     "bare:x:50:50:::\n"
			     "agent:x:1000:1000:An agent,,:/home/agent:/bin/bash";

static const char group[] = "root:x:0:\n"
			    "sudo:x:27:agent\n"
			    "audio:x:29:other,agent\n"
			    "again:x:29:agent\n"
			    "own:x:1000:agent\n"
			    "near:x:30:agentx,xagent,age\n"
			    "bad:x:y:agent\n"
			    "empty:x:31:,,agent,\n"
			    "1234:x:55:\n";

static const struct user_files files = { .passwd = passwd,
					 .group = group,
					 .passwd_len = sizeof(passwd) - 1,
					 .group_len = sizeof(group) - 1 };

static struct user find(const char *spec)
{
	struct user u;
	struct err e;

	check(user_find(&u, &files, spec, &e) == 0);
	return u;
}

static void names(void)
{
	struct user u = find("");

	check(u.uid == 1000 && u.gid == 1000 && streq(u.name, "agent"));
	check(streq(u.home, "/home/agent") && streq(u.shell, "/bin/bash"));
	check(u.n_groups == 3 && u.groups[0] == 27 && u.groups[1] == 29 && u.groups[2] == 31);
	check(find("agent").uid == 1000);
	check(find("root").uid == 0 && find("0").uid == 0 && streq(find("0").name, "root"));
	u = find("other");
	check(u.uid == 1001 && streq(u.shell, "/bin/sh") && u.n_groups == 1);
	check(streq(find("bare").home, "/"));
}

static void numbers(void)
{
	struct user u = find("1001"); /* a name goes before a number */

	check(u.uid == 77 && streq(u.home, "/numeric"));
	u = find("1000");
	check(u.uid == 1000 && streq(u.name, "agent") && u.n_groups == 3);
	u = find("4242");
	check(u.uid == 4242 && u.gid == 0 && u.n_groups == 0 && streq(u.home, "/") &&
	      streq(u.name, "4242"));
	check(find("4294967294").uid == 4294967294U);
}

static void groups(void)
{
	struct user u = find("agent:audio");

	check(u.uid == 1000 && u.gid == 29 && u.n_groups == 0);
	check(find("agent:1234").gid == 55); /* a name goes before a number */
	check(find("7:8").uid == 7 && find("7:8").gid == 8);
	check(find(":sudo").uid == 1000 && find(":sudo").gid == 27);
}

static void refused(void)
{
	static const char *const bad[] = { "nobody-here", "neg:",  "-1",         "4294967295",
					   "max",         "short", "agent:nope", "agent:",
					   "agent:-1",    "a b",   "# agent" };
	char longest[400];
	struct user u = { .uid = 123 };
	struct err e;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		check(user_find(&u, &files, bad[i], &e) == -ENOENT && *e.msg);
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	check(user_find(&u, &files, longest, &e) == -EINVAL);
	check(u.uid == 123);
	check(user_find(&u, &files, "bob", &e) == -ENOENT);
	check(streq(e.msg, "there is no user 'bob' in the sandbox"));
}

static void no_files(void)
{
	struct user_files none = { .passwd = NULL };
	struct user u;
	struct err e;

	check(user_find(&u, &none, "", &e) == -ENOENT);
	check(user_find(&u, &none, "0", &e) == 0 && u.uid == 0);
}

static void reading(void)
{
	char small[4], big[64 * 1024];

	check(user_read("/no/such/file", big, sizeof(big)) == 0);
	check(user_read("/dev/zero", big, sizeof(big)) == 0);
	check(user_read("/", big, sizeof(big)) == 0);
	check(user_read("/proc/self/exe", small, sizeof(small)) == 0); /* too large */
	check(user_read("/etc/passwd", big, sizeof(big)) > 0);
}

int main(void)
{
	names();
	numbers();
	groups();
	refused();
	no_files();
	reading();
	return 0;
}
