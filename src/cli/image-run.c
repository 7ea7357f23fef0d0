/* What 'bac run' runs in a sandbox of an image. */
#include "cli/image-run.h"

#include "image/image.h"

/* An image may have no bash. Words of the user's become the shell's arguments. */
static const char *const shell[] = {
	"sh", "-c", "command -v bash >/dev/null && exec bash -l \"$@\"; exec sh -l \"$@\"", "sh"
};

void image_run_done(struct image_run_words *w)
{
	free(w->argv);
	if (w->t)
		image_template_done(w->t);
	free(w->t);
	*w = (struct image_run_words) { 0 };
}

static size_t length(char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

static void add(struct image_run_words *w, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		w->argv[w->argc++] = v[i];
}

static void fill(struct image_run_words *w, bool own, const char **extra, size_t n)
{
	const struct image_config *x = &w->t->config;
	size_t entry = length(x->entrypoint), cmd = length(x->cmd);

	if (own && entry + cmd) {
		add(w, (const char *const *)x->entrypoint, entry);
		if (n)
			add(w, extra, n);
		else
			add(w, (const char *const *)x->cmd, cmd);
		w->user = *x->user ? x->user : NULL;
		return;
	}
	if (!n || extra[0][0] == '-')
		add(w, shell, ARRAY_SIZE(shell));
	add(w, extra, n);
}

int image_run_words(struct ctx *c, const struct sandbox *b, bool own, const char **extra, size_t n,
		    struct image_run_words *ret, struct err *e)
{
	struct image_run_words w = { .t = calloc(1, sizeof(*w.t)) };
	int r;

	if (!w.t)
		return err_errno(e, -ENOMEM, "cannot run '%s'", b->name);
	r = image_template_find(c->dirs.cache, b->tmpl, w.t, e);
	if (r == 0 && !w.t->layers)
		r = 1;
	if (r == 0) {
		w.argv = calloc(length(w.t->config.entrypoint) + length(w.t->config.cmd) + n +
					ARRAY_SIZE(shell) + 1,
				sizeof(*w.argv));
		r = w.argv ? 0 : err_errno(e, -ENOMEM, "cannot run '%s'", b->name);
	}
	if (r != 0) {
		image_run_done(&w);
		return r;
	}
	fill(&w, own, extra, n);
	*ret = w;
	return 0;
}
