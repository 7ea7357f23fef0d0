#pragma once
/* Templates that come from a registry. */
#include "base/opt.h"
#include "cli/ctx.h"
#include "image/image.h"

struct template_pull_args {
	const char *platform; /* OS/ARCH[/VARIANT]; NULL: this machine's */
	bool quiet, json;
};

/* Pull REGISTRY/PATH[:TAG][@DIGEST]. *ret_fetched: something came over the network. 0, or -Exxx with a message; -EINTR: a signal
 * ended it, and progress_signal() is the status to end with. */
int template_pull(struct ctx *c, const char *text, const struct template_pull_args *o,
		  struct image_template *ret, bool *ret_fetched, struct err *e) _must_check_;

/* NULL, "missing", "always" or "never"? 0 or -EINVAL with a message. */
int template_check_pull(const char *pull, struct err *e) _must_check_;

/* The template that -t names (NULL: "default"), by --pull: "missing" (also NULL) takes what is here, and pulls what is not; "always"
 * pulls first, and takes what is here if that fails, which is said; "never" takes what is here. 0 or -Exxx with a message. */
int template_get(struct ctx *c, const char *ref, const char *pull, bool quiet,
		 struct image_template *ret, struct err *e) _must_check_;

/* bac template pull */
enum { TEMPLATE_PULL_OPTS = 3 };
extern const struct opt template_pull_opts[TEMPLATE_PULL_OPTS];
int template_run_pull(void *opt, struct args *args, struct err *e);
