/* What image_load() and its kin are given by a command. */
#include "cli/template-build.h"

int template_build_begin(struct ctx *c, const struct image_progress *p, struct template_build *ret,
			 struct err *e)
{
	*ret = (struct template_build) { .init = dirs_join(c->dirs.libexec, "bac-init"),
					 .layer = dirs_join(c->dirs.libexec, "bac-layer") };
	if (!ret->init || !ret->layer) {
		template_build_done(ret);
		return err_errno(e, -ENOMEM, "cannot make a template");
	}
	ret->b = (struct image_build) { .cache = c->dirs.cache,
					.data = c->dirs.data,
					.init = ret->init,
					.layer = ret->layer,
					.progress = p };
	return 0;
}

void template_build_done(struct template_build *b)
{
	free(b->init);
	free(b->layer);
	*b = (struct template_build) { .init = NULL };
}
