/* Defaults of the environment. */
#include "base/check.h"
#include "guest/init/env.h"

int main(void)
{
	static const char *const a[] = { "A=1", "B=2", "A=3" }, *const b[] = { "B=", "BB=4" };
	struct env *e = env_new(a, 3, b, 2), *same;

	check(e && e->n == 3 && !e->v[3]);
	check(streq(e->v[0], "A=3") && streq(e->v[1], "B=") && streq(e->v[2], "BB=4"));
	same = env_hold(e);
	check(!env_drop(e) && streq(same->v[2], "BB=4"));
	check(!env_drop(same) && !env_drop(NULL) && !env_hold(NULL));
	e = env_new(NULL, 0, NULL, 0);
	check(e && e->n == 0 && !e->v[0]);
	check(!env_drop(e));
	check(env_same_name("A=1", "A=2") && !env_same_name("A=1", "AB=1") &&
	      !env_same_name("AB=1", "A=1"));
	return 0;
}
