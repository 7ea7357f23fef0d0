#include "kit/old.h"

bool old_is_short(const struct yaml *tree)
{
	return take_get(tree, "network") || take_get(tree, "secrets") || take_get(tree, "install");
}

int old_renew(struct take *t, struct yaml *tree)
{
	(void)t;
	(void)tree;
	return 0;
}

const char *take_moved(const char *path)
{
	(void)path;
	return NULL;
}
