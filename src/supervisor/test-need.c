/* Two texts, and what of them a supervisor must know. */
#include "supervisor/need.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "io/fd.h"

static bool cred(const char *s)
{
	return need_cred(s, strlen(s));
}

static bool net(const char *s)
{
	return need_net(s, strlen(s));
}

static void needs(void)
{
	check(!cred("") && !cred("bac-credentials 1\n") && !cred("bac-credentials 1\nend 0\n"));
	check(!cred("bac-credentials 1\nend 0\nenv A=b\n"));
	check(cred("bac-credentials 1\nu1\theader\n") && cred("bac-credentials 1\nend\theader"));
	check(!net("") && !net("bac-net-policy 1\nend 0\n"));
	check(!net("bac-net-policy 1\nr\tglobal\tallow\t-\t-\ta.example\nend 1\n"));
	check(net("bac-net-policy "
		  "1\nr\tglobal\tallow\t-\t-\ta.example\nr\tglobal\tdeny\tGET\t-\tb\nend 2\n"));
}

static void env(const char *text, const char *want)
{
	char copy[512], got[512] = "";
	struct wire_env e;
	size_t n = 0;

	(void)snprintf(copy, sizeof(copy), "%s", text);
	check(need_env(copy, strlen(copy), &e) == 0);
	for (uint32_t i = 0; i < e.n; i++)
		n += (size_t)snprintf(got + n, sizeof(got) - n, "[%s]", e.v[i]);
	check(!e.v[e.n]);
	check(streq(got, want));
	wire_env_done(&e);
}

static void environments(void)
{
	env("", "");
	env("bac-credentials 1\nend 0\n", "");
	env("bac-credentials 1\nend 0\nenv A=b\nenv C=d=e f\n", "[A=b][C=d=e f]");
	env("bac-credentials 1\nenv X=1\nend 0\nenv A=", "[A=]");
	env("bac-credentials 1\nend 0\nenv =b\nenv A\nenvA=b\n\nenv B=c", "[B=c]");
}

static void many(void)
{
	struct buf b = BUF_INIT(1 << 20);
	struct wire_env e;

	check(buf_printf(&b, "bac-credentials 1\nend 0\n") == 0);
	for (unsigned i = 0; i < WIRE_DEFAULTS_MAX + 9; i++)
		check(buf_printf(&b, "env V%u=x\n", i) == 0);
	check(buf_str(&b) && need_env((char *)b.p + b.off, b.n, &e) == 0);
	check(e.n == WIRE_DEFAULTS_MAX);
	wire_env_done(&e);
	buf_done(&b);
}

int main(void)
{
	needs();
	environments();
	many();
	return 0;
}
