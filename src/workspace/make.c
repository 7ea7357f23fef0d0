#include "workspace/make.h"

#include "workspace/place.h"
#include "workspace/ruling.h"

int make_in(struct fs *f, struct call *c, const char *name)
{
	int r = ruling_name(f, c->m.op, c->n, name);

	return r < 0 ? r : place_dir(f, c->n);
}

void make_umask(struct fs *f, uint32_t mask)
{
	mask &= 0777;
	if (mask == f->umask)
		return;
	(void)umask(mask);
	f->umask = mask;
}
