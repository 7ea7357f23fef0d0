/* The agent's lines: in roots that know it, that gave its number to somebody, that are nearly empty, that are damaged. */
#include "guest/init/account.h"

#include "base/check.h"

static struct buf out = BUF_INIT(ACCOUNT_FILE_MAX);

static const char *passwd(const char *text, uint32_t gid, int want)
{
	buf_consume(&out, out.n);
	check(account_passwd(&out, text, strlen(text), gid, "/bin/sh", true) == want);
	return buf_str(&out);
}

static const char *group(const char *text, uint32_t want_gid, int want)
{
	uint32_t gid = 7;

	buf_consume(&out, out.n);
	check(account_group(&out, text, strlen(text), &gid) == want);
	check(gid == want_gid);
	return buf_str(&out);
}

static void users(void)
{
	check(streq(passwd("root:x:0:0::/root:/bin/sh\n", 1000, 0),
		    "root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n"));
	/* no newline at the end; 1000 belongs to somebody */
	check(streq(passwd("root:x:0:0::/root:/bin/sh\nubuntu:x:1000:100:U:/home/ubuntu:/bin/bash",
			   100, 0),
		    "root:x:0:0::/root:/bin/sh\nagent:x:1000:100::/home/agent:/bin/sh\n"
		    "ubuntu:x:1000:100:U:/home/ubuntu:/bin/bash\n"));
	check(streq(passwd("a\n::\nagents:x:1:1\nx:x:01000x:1\n", 1, 0),
		    "a\n::\nagents:x:1:1\nx:x:01000x:1\nagent:x:1000:1::/home/agent:/bin/sh\n"));
	check(streq(passwd("", 1, 0), "agent:x:1000:1::/home/agent:/bin/sh\n"));
	(void)passwd("agent:x:1001:1::/a:/bin/sh\n", 1, 1);
	buf_consume(&out, out.n);
	check(account_passwd(&out, "", 0, 5, "/bin/bash", false) == 0);
	check(streq(buf_str(&out), "agent:*:1000:5::/home/agent:/bin/bash\n"));
}

static void groups(void)
{
	check(streq(group("root:x:0:\n", 1000, 0), "root:x:0:\nagent:x:1000:\n"));
	check(streq(group("sudo:x:27:\nwheel:x:10:root\nubuntu:x:1000:\n", 1000, 0),
		    "sudo:x:27:agent\nwheel:x:10:root,agent\nagent:x:1000:\nubuntu:x:1000:\n"));
	check(streq(group("agent:x:55:\ndocker:x:9:x", 55, 0),
		    "agent:x:55:\ndocker:x:9:x,agent\n"));
	(void)group("agent:x:55:\ndocker:x:9:x,agent,y\nsudo:x\n", 55, 1);
	(void)group("agent:x:55:\ndocker:x:9:x,agentx\n", 55, 0);
	check(strstr(buf_str(&out), "agentx,agent\n"));
	check(streq(group("agent:x:many:\n", 1000, 0), "agent:x:many:\nagent:x:1000:\n"));
}

static void shadows(void)
{
	buf_consume(&out, out.n);
	check(account_shadow(&out, "root:*:1:::::", 13) == 0);
	check(streq(buf_str(&out), "root:*:1:::::\nagent:!:20000:0:99999:7:::\n"));
	check(account_shadow(&out, "agent:!::::::\n", 14) == 1);
}

int main(void)
{
	users();
	groups();
	shadows();
	buf_done(&out);
	return 0;
}
