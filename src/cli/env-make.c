/* Making an environment: bac's own commands, with the words that a person would have typed. */
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "cli/approve.h"
#include "cli/cmds.h"
#include "cli/env.h"
#include "cli/kit-load.h"
#include "policy/net.h"
#include "sys/spawn.h"

/* ---- other commands of bac ---- */

void env_word(struct env_words *w, const char *word)
{
	const char **v = w->failed ? NULL : reallocarray(w->v, w->n + 2, sizeof(*v));

	w->failed = !v;
	if (!v)
		return;
	w->v = v;
	v[w->n++] = word;
	v[w->n] = NULL;
}

void env_word_printf(struct env_words *w, const char *fmt, ...)
{
	char **own = w->failed ? NULL : reallocarray(w->own, w->n_own + 1, sizeof(*own));
	char *text = NULL;
	va_list ap;

	w->failed = !own;
	if (!own)
		return;
	w->own = own;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	w->failed = !text;
	if (!text)
		return;
	own[w->n_own++] = text;
	env_word(w, text);
}

void env_words_done(struct env_words *w)
{
	for (size_t i = 0; i < w->n_own; i++)
		free(w->own[i]);
	free(w->own);
	free(w->v);
	*w = (struct env_words) { 0 };
}

int env_bac(struct env_words *w, const void *in, size_t n_in, struct err *e)
{
	static const struct sys_fd tty[] = { { 0, 0 }, { 1, 1 }, { 2, 2 } };
	_free_ char *prog = dirs_program("bac-commands");
	struct sys_cmd c = { .argv = w->v, .fds = tty, .n_fds = 3 };
	int status = 0, pidfd = -1, r;
	pid_t pid;

	if (!prog || w->failed || !w->n)
		return err_errno(e, -ENOMEM, "cannot go on");
	w->v[0] = prog;
	if (in) {
		c.fds = NULL;
		c.n_fds = 0;
		c.in = in;
		c.n_in = n_in;
		return sys_run(&c, e);
	}
	r = sys_spawn(&c, &pid, &pidfd, e);
	if (r < 0)
		return r;
	r = sys_wait(pid, pidfd, UINT64_MAX, &status);
	(void)close(pidfd);
	return r < 0 ? err_errno(e, r, "cannot go on") : status;
}

int env_become(struct env_words *w, struct err *e)
{
	_free_ char *prog = dirs_program("bac-commands");

	if (!prog || w->failed || !w->n)
		return err_errno(e, -ENOMEM, "cannot go on");
	w->v[0] = prog;
	(void)execv(prog, (char *const *)w->v);
	return err_errno(e, -errno, "cannot run %s; install bac again", prog);
}

bool env_create_has(const char *option)
{
	for (size_t i = 0; i < create_cmd.n_opts; i++)
		if (streq(create_cmd.opts[i].name, option))
			return true;
	return false;
}

/* ---- the sandbox ---- */

/* Arguments of one kit are said with its name, which the kit alone knows. */
static int add_kit(struct env *v, const struct sbxenv_kit *k, struct env_words *w, struct err *e)
{
	struct kit_loaded l = { 0 };
	struct env_words args = { 0 };
	struct opt_list list = { 0 };
	int r = 0;

	env_word(w, "--kit");
	env_word(w, k->source);
	if (!k->n_args)
		return 0;
	for (size_t i = 0; i < k->n_args; i++)
		env_word_printf(&args, "%s=%s", k->args[i].name, k->args[i].value);
	list = (struct opt_list) { .v = args.v, .n = args.n };
	if (args.failed)
		r = err_errno(e, -ENOMEM, "cannot go on");
	if (r == 0)
		r = kit_load(&v->c,
			     &(struct kit_load_opts) {
				     .base = k->source, .args = &list, .single = true },
			     &l, e);
	for (size_t i = 0; i < k->n_args && r == 0; i++) {
		env_word(w, "--kit-arg");
		env_word_printf(w, "%s.%s=%s", l.v[0].kit.name, k->args[i].name, k->args[i].value);
	}
	kit_loaded_done(&l);
	env_words_done(&args);
	return r;
}

static const char *below(const char *dir, const char *path)
{
	size_t n = dir ? strlen(dir) : 0;

	return n && !strncmp(dir, path, n) && path[n] == '/' ? path + n + 1 : NULL;
}

/* Inside, the environment's files can be read and not changed: those in a folder that is shared by a rule, others by themselves. */
static void add_files(const struct env *v, struct env_words *w, bool rules)
{
	for (size_t i = v->user ? 1 : 0; i < v->n_files; i++) {
		const char *inside = below(v->v.workspace, v->files[i]);

		for (size_t k = 0; k < v->v.n_folders && !inside; k++)
			inside = below(v->v.folders[k].path, v->files[i]);
		if (inside && rules) {
			env_word(w, "--protect");
			env_word(w, inside);
		} else if (!inside && !rules) {
			env_word_printf(w, "%s:ro", v->files[i]);
		}
	}
}

static void add_ports(const struct env *v, struct env_words *w)
{
	for (size_t i = 0; i < v->v.n_ports && env_create_has("publish"); i++) {
		const struct sbxenv_port *p = &v->v.ports[i];

		env_word(w, "--publish");
		env_word_printf(w, "%s%s%.0u%s%u%s%s", p->host_ip ? p->host_ip : "",
				p->host_ip ? ":" : "", p->host, p->host || p->host_ip ? ":" : "",
				p->sandbox, p->protocol ? "/" : "", p->protocol ? p->protocol : "");
	}
}

static int add_options(struct env *v, struct env_words *w, struct err *e)
{
	int r = 0;

	env_word(w, "--name");
	env_word(w, v->name);
	if (v->v.tmpl) {
		env_word(w, "--template");
		env_word(w, v->v.tmpl);
	}
	if (v->v.pull && env_create_has("pull")) {
		env_word(w, "--pull");
		env_word(w, v->v.pull);
	}
	if (v->v.memory) {
		env_word(w, "--memory");
		env_word_printf(w, "%llu", (unsigned long long)v->v.memory);
	}
	if (v->v.cpus) {
		env_word(w, "--cpus");
		env_word_printf(w, "%u", v->v.cpus);
	}
	for (size_t i = 0; i < v->v.n_kits && r == 0; i++)
		r = add_kit(v, &v->v.kits[i], w, e);
	for (size_t i = 0; i < v->v.n_vars && env_create_has("env"); i++) {
		env_word(w, "--env");
		env_word_printf(w, "%s=%s", v->v.vars[i].name, v->v.vars[i].value);
	}
	add_ports(v, w);
	return r;
}

static int make_box(struct env *v, struct err *e)
{
	struct env_words w = { 0 };
	int r;

	env_word(&w, "bac");
	env_word(&w, "create");
	env_word(&w, "--quiet");
	r = add_options(v, &w, e);
	add_files(v, &w, true);
	env_word(&w, "--");
	env_word(&w, v->v.agent);
	if (v->v.workspace)
		env_word(&w, v->v.workspace);
	for (size_t i = 0; i < v->v.n_folders; i++)
		env_word_printf(&w, "%s%s", v->v.folders[i].path,
				v->v.folders[i].read_only ? ":ro" : "");
	add_files(v, &w, false);
	if (r == 0)
		r = env_bac(&w, NULL, 0, e);
	env_words_done(&w);
	if (r > 0) /* it has said why */
		return err_set(e, -EIO, "the environment '%s' was not created", v->name);
	return r;
}

/* ---- what it may use ---- */

static int bind(const struct env *v, struct err *e)
{
	struct approvals a = { 0 };
	int r = 0;

	for (size_t i = 0; i < v->v.n_bindings && r == 0; i++) {
		const struct sbxenv_binding *b = &v->v.bindings[i];
		const struct kit_texts *const lists[] = { &b->api_key, &b->oauth };

		for (size_t k = 0; k < 2; k++)
			for (size_t m = 0; m < lists[k]->n && r == 0; m++) {
				char domain[NET_RESOURCE_MAX + 1];

				r = net_resource_check(lists[k]->v[m], domain, sizeof(domain), e);
				if (r == 0 && approve_add(&a, b->service, k == 1, domain) < 0)
					r = err_errno(e, -ENOMEM, "cannot keep the bindings");
				if (r < 0)
					(void)err_ctx(e, "bindings.%s", b->service);
			}
	}
	if (r == 0 && a.n)
		r = approve_save(v->c.dirs.config, &a, e);
	approve_done(&a);
	return r;
}

/* `bac secret set ... --sandbox NAME`, the value on its stdin unless it is had by --ref or --command. */
static int put_secret(const struct env *v, struct env_words *w, const char *name,
		      const struct sbxenv_source *s, bool registry, struct err *e)
{
	_free_ char *value = NULL;
	size_t n = 0;
	int r = 0;

	env_word(w, "--sandbox");
	env_word(w, v->name);
	if (s->value || s->snapshot || registry) {
		r = env_host_value(v, s, &value, &n, e);
	} else {
		env_word(w, s->ref ? "--ref" : "--command");
		env_word(w, s->ref ? s->ref : s->command);
		if (s->refresh) {
			env_word(w, "--refresh");
			env_word(w, s->refresh);
		}
	}
	if (r == 0)
		r = env_bac(w, value ? value : "", n, e);
	if (value)
		explicit_bzero(value, n);
	if (r > 0)
		e->code = -EIO;
	return r ? err_ctx(e, "secret '%.60s'", name) : 0;
}

static int put_registry(const struct env *v, const struct sbxenv_registry *g, struct err *e)
{
	struct env_words w = { 0 };
	_free_ char *user = NULL;
	size_t n = 0;
	int r = 0;

	if (g->secret.ref || g->username.ref)
		return err_set(e, -ENOTSUP,
			       "registries.%.80s: 'ref' is not built yet in this bac; use command",
			       g->host);
	if (g->username.value || g->username.command)
		r = env_host_value(v, &g->username, &user, &n, e);
	env_word(&w, "bac");
	env_word(&w, "secret");
	env_word(&w, "set");
	env_word(&w, "--registry");
	env_word(&w, g->host);
	env_word(&w, "--username");
	env_word(&w, user ? user : "token");
	env_word(&w, "--password-stdin");
	if (r == 0)
		r = put_secret(v, &w, g->host, &g->secret, true, e);
	env_words_done(&w);
	return r;
}

static int put_secrets(const struct env *v, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < v->v.n_secrets && r == 0; i++) {
		struct env_words w = { 0 };

		env_word(&w, "bac");
		env_word(&w, "secret");
		env_word(&w, "set");
		env_word(&w, "--force");
		env_word(&w, v->v.secrets[i].service);
		r = put_secret(v, &w, v->v.secrets[i].service, &v->v.secrets[i].source, false, e);
		env_words_done(&w);
	}
	for (size_t i = 0; i < v->v.n_registries && r == 0; i++)
		r = put_registry(v, &v->v.registries[i], e);
	return r;
}

int env_make(struct env *v, struct err *e)
{
	int r = bind(v, e);

	if (r == 0)
		r = make_box(v, e);
	if (r == 0)
		r = put_secrets(v, e);
	return r;
}
