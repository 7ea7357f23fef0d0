/* bac template pull, and what create and run do with -t and --pull. */
#include "cli/template-pull.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "base/text.h"
#include "cli/cmds.h"
#include "cli/progress.h"
#include "cli/registry.h"
#include "cli/template-build.h"
#include "cli/template.h"
#include "image/pull.h"

#define O(kind, field, letter, name, arg, help) \
	{ \
		name, letter, kind, offsetof(struct template_pull_args, field), arg, help \
	}
const struct opt template_pull_opts[TEMPLATE_PULL_OPTS] = {
	O(OPT_FLAG, json, 0, "json", NULL, "print JSON"),
	O(OPT_STR, platform, 0, "platform", "OS/ARCH",
	  "of an image for several machines, the one for this (default: this machine's)"),
	O(OPT_FLAG, quiet, 'q', "quiet", NULL, "show no progress, print the digest only"),
};

/* ---- pull ---- */

/* A pull may be a part of a command that goes on: the signals that progress takes are given back. */
static const int taken[] = { SIGINT, SIGTERM, SIGHUP };

struct signals {
	struct sigaction old[ARRAY_SIZE(taken)];
};

static void keep_signals(struct signals *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		(void)sigaction(taken[i], NULL, &s->old[i]);
}

static void give_signals(const struct signals *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		(void)sigaction(taken[i], &s->old[i], NULL);
}

/* What failed for a reason of its own may work the next time with what is there; what is damaged may not. */
static bool may_resume(int r)
{
	return r == -EINTR || r == -ENOSPC || r == -EDQUOT;
}

static int load(const struct image_build *b, const struct image_ref *ref,
		const struct image_pulled *p, struct image_template *ret, struct err *e)
{
	char text[IMAGE_REF_MAX + 1], tag[IMAGE_REF_MAX + 1];

	/* a digest is no tag: such an image has only its reference */
	(void)snprintf(tag, sizeof(tag), "%s/%s:%s", ref->domain, ref->path, ref->tag);
	return image_load_layout(b, p->layout, NULL, ref->digest[0] ? NULL : tag,
				 image_ref_text(ref, text), ret, e);
}

/* The store's limit, where this one is new. */
static int fit(struct ctx *c, const struct image_template *before, size_t n,
	       const struct image_template *t, struct err *e)
{
	bool fresh = true;

	for (size_t i = 0; i < n; i++)
		fresh &= !streq(before[i].digest, t->digest);
	return template_fit(c, t, fresh, e);
}

static int pull_with(struct ctx *c, const struct image_ref *ref, const struct image_platform *to,
		     const struct registry *reg, const struct image_progress *progress,
		     struct image_template *ret, bool *ret_fetched, struct err *e)
{
	const struct image_pull p = { .ref = ref,
				      .platform = to,
				      .user = reg->user,
				      .password = reg->password,
				      .endpoint = reg->endpoint,
				      .ca = reg->ca,
				      .env = (const char *const *)reg->env,
				      .progress = progress };
	struct image_template *before;
	struct image_pulled pulled;
	struct template_build b;
	size_t n;
	int r = template_build_begin(c, progress, &b, e);

	if (r < 0)
		return r;
	r = image_pull(c->dirs.cache, &p, &pulled, e);
	if (r == 0) {
		*ret_fetched = !pulled.reused;
		r = image_template_ls(c->dirs.cache, &before, &n, e);
		if (r == 0) {
			r = load(&b.b, ref, &pulled, ret, e);
			if (r == 0)
				r = fit(c, before, n, ret, e);
			while (n)
				image_template_done(&before[--n]);
			free(before);
		}
		if (r == 0 && pulled.plain)
			say("note: registry %s is used without TLS, since it is on this machine",
			    ref->domain);
		image_pulled_done(&pulled, may_resume(r));
	}
	template_build_done(&b);
	return r;
}

int template_pull(struct ctx *c, const char *text, const struct template_pull_args *o,
		  struct image_template *ret, bool *ret_fetched, struct err *e)
{
	struct image_platform platform;
	struct progress progress;
	struct signals signals;
	struct image_ref ref;
	struct registry reg = { .user = NULL };
	int r = image_ref_parse(text, &ref, e);

	if (r == 1)
		r = err_set(e, -EINVAL,
			    "'%.100s' does not say which registry: docker.io/%.100s, perhaps?",
			    text, text);
	if (r == 0)
		r = image_platform_parse(o->platform, &platform, e);
	if (r < 0)
		return r;
	/* nobody looks into a process that has a password */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	r = registry_get(c, ref.domain, &reg, e);
	if (r == 0) {
		keep_signals(&signals);
		progress_begin(&progress, o->quiet);
		r = pull_with(c, &ref, &platform, &reg, &progress.p, ret, ret_fetched, e);
		progress_end(&progress);
		give_signals(&signals);
	}
	registry_done(&reg);
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	return r;
}

/* ---- -t and --pull ---- */

int template_check_pull(const char *pull, struct err *e)
{
	static const char *const words[] = { "always", "missing", "never" };
	size_t i;

	for (i = 0; pull && i < ARRAY_SIZE(words); i++)
		if (streq(pull, words[i]))
			return 0;
	return pull ? err_set(e, -EINVAL, "--pull: '%.40s' is not always, missing or never", pull)
		    : 0;
}

/* By tag or digest, or by the reference that it was pulled by. */
static int find_here(struct ctx *c, const char *ref, const struct image_ref *parsed,
		     struct image_template *ret, struct err *e)
{
	struct err none = { 0 };
	struct image_template *v;
	char text[IMAGE_REF_MAX + 1];
	size_t n, i, found;
	int r;

	r = image_template_find(c->dirs.cache, ref, ret, e);
	if (r != -ENOENT || !parsed || !parsed->digest[0])
		return r;
	r = image_template_ls(c->dirs.cache, &v, &n, &none);
	if (r < 0)
		return e->code;
	(void)image_ref_text(parsed, text);
	for (found = 0; found < n; found++)
		if (streq(v[found].reference, text) ||
		    (v[found].manifest && streq(v[found].manifest + 7, parsed->digest)))
			break; /* content is content, whatever it was asked for by */
	for (i = 0; i < n; i++)
		if (i != found)
			image_template_done(&v[i]);
	if (found < n)
		*ret = v[found];
	free(v);
	return found < n ? 0 : e->code;
}

static int pull_first(struct ctx *c, const char *ref, bool quiet, struct image_template *ret,
		      struct err *e)
{
	const struct template_pull_args o = { .quiet = quiet };
	bool fetched;
	int r = template_pull(c, ref, &o, ret, &fetched, e);

	/* nothing was begun yet: the signal has its usual meaning again */
	if (r == -EINTR && progress_signal())
		(void)raise(progress_signal() - 128);
	return r;
}

int template_get(struct ctx *c, const char *ref, const char *pull, bool quiet,
		 struct image_template *ret, struct err *e)
{
	const char *name = ref ? ref : "default";
	struct image_ref parsed;
	struct err why = { 0 }, none = { 0 };
	bool remote = ref && image_ref_parse(ref, &parsed, &none) == 0;
	bool always = streq(pull, "always");
	int r;

	if (always && !remote)
		return err_set(e, -EINVAL, "--pull always: '%.100s' does not name a registry",
			       name);
	r = always ? pull_first(c, name, quiet, ret, &why) : -ENOENT;
	if (r == 0 || r == -EINTR) {
		*e = why;
		return r;
	}
	r = find_here(c, name, remote ? &parsed : NULL, ret, e);
	if (r == 0 && always)
		say("warning: %s; the template that is here is used (%.*s)", why.msg,
		    TEMPLATE_DIGITS, ret->digest);
	else if (r == -ENOENT && always)
		*e = why;
	if (r != -ENOENT || always)
		return r;
	if (remote && streq(pull, "never"))
		return err_set(e, r, "there is no template '%.100s' here, and --pull is never",
			       name);
	if (remote)
		return pull_first(c, name, quiet, ret, e);
	if (ref && image_ref_parse(ref, &parsed, &none) == 1 && strpbrk(ref, "/:"))
		return err_set(
			e, r,
			"there is no template '%.100s'; an image is named with its registry: "
			"docker.io/%.100s, perhaps?",
			ref, ref);
	return r;
}

/* ---- the command ---- */

static int show(const struct template_pull_args *o, const struct image_template *t,
		const char *text, bool fetched, struct err *e)
{
	char size[32];

	if (o->json) {
		json_t *j = template_json(t);

		(void)json_object_set_new(j, "fetched", json_boolean(fetched));
		return print_json(j, e);
	}
	if (o->quiet)
		(void)printf("%s\n", t->digest);
	else
		(void)printf("%s %s (template %.*s, %s)\n",
			     fetched ? "Pulled" : "Up to date:", text, TEMPLATE_DIGITS, t->digest,
			     text_from_size(size, sizeof(size), t->size));
	return flush_out(e);
}

int template_run_pull(void *opt, struct args *args, struct err *e)
{
	const struct template_pull_args *o = opt;
	struct image_template t = { 0 };
	bool fetched = false;
	struct ctx c;
	int r = ctx_open(&c, e);

	if (r == 0)
		r = template_pull(&c, args->v[0], o, &t, &fetched, e);
	if (r == 0)
		r = show(o, &t, args->v[0], fetched, e);
	image_template_done(&t);
	ctx_done(&c);
	if (r == -EINTR && progress_signal()) {
		say("%s", e->msg);
		return progress_signal();
	}
	return r;
}
