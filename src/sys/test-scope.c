/* The words of systemd-run; whether it does as told can be seen on a machine with systemd only. */
#include "sys/scope.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"

static void words_of(const struct sys_systemd *m, const struct sys_scope *s, const char *want)
{
	char **argv = sys_scope_argv(m, s);
	char have[1024] = "";
	size_t n = 0;

	check(argv);
	for (char **a = argv; *a; a++)
		n += (size_t)snprintf(have + n, sizeof(have) - n, "%s%s", n ? " | " : "", *a);
	if (!streq(have, want))
		fprintf(stderr, "%s\n", have);
	check(streq(have, want));
	check(!sys_scope_free(argv));
}

static void words(void)
{
	char user_sock[] = "/x", program[] = "/usr/bin/systemd-run";
	struct sys_systemd user = { .socket = user_sock, .systemd_run = program };
	struct sys_systemd system = { .root = true, .socket = user_sock, .systemd_run = program };
	struct sys_scope s = { .id = "web-1",
			       .text = "sandbox web",
			       .memory_max = 1073741824,
			       .tasks_max = 512,
			       .cpu_percent = 250 };
	char longest[80];

	words_of(&user, &s,
		 "/usr/bin/systemd-run | --user | --scope | --quiet | --collect | "
		 "--unit=bac-web-1 | --description=sandbox web | --property=MemoryMax=1073741824 | "
		 "--property=TasksMax=512 | --property=CPUQuota=250% | --");
	words_of(&system, &(struct sys_scope) { .id = "a" },
		 "/usr/bin/systemd-run | --scope | --quiet | --collect | --unit=bac-a | --");
	check(!sys_scope_argv(NULL, &s));
	memset(longest, 'a', sizeof(longest));
	longest[79] = '\0';
	for (const char *const *id =
		     (const char *const[]) { "", "a b", "a/b", "a\nb", "a.b", longest, NULL };
	     *id; id++)
		check(!sys_scope_argv(&user, &(struct sys_scope) { .id = *id }));
}

/* A manager counts only while it answers. */
static void find(void)
{
	char dir[] = "/tmp/test-scope-XXXXXX", sub[64], path[96], prog[96];
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct sys_systemd m;
	int s;

	if (geteuid() == 0)
		return; /* root has the system's manager, which no test can make up */
	check(mkdtemp(dir));
	check(snprintf(sub, sizeof(sub), "%s/systemd", dir) > 0);
	check(snprintf(path, sizeof(path), "%s/private", sub) > 0);
	check(snprintf(prog, sizeof(prog), "%s/systemd-run", dir) > 0);
	check(mkdir(sub, 0700) == 0);
	check(setenv("XDG_RUNTIME_DIR", dir, 1) == 0);
	check(setenv("PATH", dir, 1) == 0);
	check(sys_systemd_find(&m) == 0);
	s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(s >= 0);
	memcpy(sa.sun_path, path, strlen(path));
	check(bind(s, (struct sockaddr *)&sa, sizeof(sa)) == 0);
	check(symlink("/bin/true", prog) == 0);
	check(sys_systemd_find(&m) == 0); /* nobody listens */
	check(listen(s, 1) == 0);
	check(sys_systemd_find(&m) == 1);
	check(!m.root && streq(m.socket, path) && streq(m.systemd_run, prog));
	sys_systemd_done(&m);
	check(close(s) == 0);
	check(sys_systemd_find(&m) == 0); /* left over */
	check(unlink(path) == 0 && unlink(prog) == 0 && rmdir(sub) == 0 && rmdir(dir) == 0);
}

int main(void)
{
	words();
	find();
	return 0;
}
