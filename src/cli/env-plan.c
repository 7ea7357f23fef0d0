/* What an environment would do, as text; and whether the user wants that.
 *
 * The text is what is approved, byte by byte: it has every host command, folder, variable and source of a secret in full; of a literal secret it has the SHA-256. An approval that was
 * given on the terminal is kept as the digest of the text, so whatever changes is asked about again. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/text.h"
#include "cli/env.h"
#include "io/fd.h"

enum { APPROVED_MAX = 64 * 1024, PLAN_MAX = 1024 * 1024 };

static const char kept_name[] = "env-approved";

static void digest(const void *p, size_t n, char ret[65])
{
	uint8_t sum[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, p, n);
	sha256_end(&s, sum);
	for (size_t i = 0; i < sizeof(sum); i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", sum[i]);
}

/* A text of the file, on one line and harmless on a terminal. */
static int add_text(struct buf *out, const char *s)
{
	int r = 0;

	for (; *s && r == 0; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '\n')
			r = buf_add(out, "\\n", 2);
		else if (c < 0x20 || c == 0x7f)
			r = buf_printf(out, "\\x%02x", c);
		else
			r = buf_add(out, s, 1);
	}
	return r;
}

/* "  WHAT   NAME  TEXT" */
static int line(struct buf *out, const char *what, const char *a, const char *between,
		const char *b)
{
	int r = buf_printf(out, "  %-13s", what);

	if (r == 0)
		r = add_text(out, a);
	if (r == 0 && between)
		r = add_text(out, between);
	if (r == 0 && b)
		r = add_text(out, b);
	return r == 0 ? buf_add(out, "\n", 1) : r;
}

static int source(struct buf *out, const char *what, const char *name,
		  const struct sbxenv_source *s)
{
	char sum[65], text[96];

	if (s->value) {
		digest(s->value, strlen(s->value), sum);
		(void)snprintf(text, sizeof(text), " is in the file (SHA-256 %s)", sum);
		return line(out, what, name, text, NULL);
	}
	if (s->ref)
		return line(out, what, name, " from ", s->ref);
	return s->command ? line(out, what, name, " from the host command: ", s->command) : 0;
}

static int texts(struct buf *out, const char *what, const char *name, const char *kind,
		 const struct kit_texts *t)
{
	char between[64];
	int r = 0;

	(void)snprintf(between, sizeof(between), " (%s) may be used at ", kind);
	for (size_t i = 0; i < t->n && r == 0; i++)
		r = line(out, what, name, between, t->v[i]);
	return r;
}

static int folders(struct buf *out, const struct sbxenv *v)
{
	int r = v->workspace ? line(out, "workspace", v->workspace, NULL, NULL) : 0;

	for (size_t i = 0; i < v->n_folders && r == 0; i++)
		r = line(out, "folder", v->folders[i].path,
			 v->folders[i].read_only ? " (read-only)" : "", NULL);
	return r;
}

static int kits(struct buf *out, const struct sbxenv *v)
{
	int r = 0;

	for (size_t i = 0; i < v->n_kits && r == 0; i++) {
		r = line(out, "kit", v->kits[i].source, NULL, NULL);
		for (size_t k = 0; k < v->kits[i].n_args && r == 0; k++)
			r = line(out, "", v->kits[i].args[k].name, "=", v->kits[i].args[k].value);
	}
	return r;
}

static int resources(struct buf *out, const struct sbxenv *v)
{
	char text[32];
	int r = v->tmpl ? line(out, "template", v->tmpl, NULL, NULL) : 0;

	if (r == 0 && v->pull)
		r = line(out, "pull", v->pull, NULL, NULL);
	if (r == 0 && v->memory)
		r = line(out, "memory", text_from_size(text, sizeof(text), v->memory), NULL, NULL);
	if (r == 0 && v->cpus)
		r = buf_printf(out, "  %-13s%u\n", "cpus", v->cpus);
	return r;
}

static int ports(struct buf *out, const struct sbxenv *v)
{
	const char *note =
		env_create_has("publish") ? "" : " (ports are not built yet: not published)";
	int r = 0;

	for (size_t i = 0; i < v->n_ports && r == 0; i++) {
		const struct sbxenv_port *p = &v->ports[i];
		char text[160];

		(void)snprintf(text, sizeof(text), "%u/%s of the sandbox at %.40s:%u%s", p->sandbox,
			       p->protocol ? p->protocol : "tcp4",
			       p->host_ip ? p->host_ip : "127.0.0.1", p->host, note);
		r = line(out, "port", text, NULL, NULL);
	}
	return r;
}

static int credentials(struct buf *out, const struct sbxenv *v)
{
	int r = 0;

	for (size_t i = 0; i < v->n_secrets && r == 0; i++)
		r = source(out, "secret", v->secrets[i].service, &v->secrets[i].source);
	for (size_t i = 0; i < v->n_registries && r == 0; i++) {
		r = source(out, "registry", v->registries[i].host, &v->registries[i].secret);
		if (r == 0)
			r = source(out, "", "its user", &v->registries[i].username);
	}
	for (size_t i = 0; i < v->n_bindings && r == 0; i++) {
		const struct sbxenv_binding *b = &v->bindings[i];

		r = texts(out, "binding", b->service, "key", &b->api_key);
		if (r == 0)
			r = texts(out, "binding", b->service, "login", &b->oauth);
	}
	return r;
}

static int commands(struct buf *out, const struct env *v, enum sbxenv_phase phase, const char *when)
{
	int r = 0;

	for (size_t i = 0; i < v->v.n_commands[phase] && r == 0; i++) {
		const struct sbxenv_command *c = &v->v.commands[phase][i];
		char limit[64] = "", t[32];

		if (c->timeout_ms)
			(void)snprintf(limit, sizeof(limit), ", for %s at most",
				       text_from_ms(t, sizeof(t), c->timeout_ms));
		if (v->o->skip_host) {
			r = line(out, "host command", c->name, " (skipped)", NULL);
			continue;
		}
		r = line(out, "HOST COMMAND", c->command, NULL, NULL);
		if (r == 0 && !streq(c->name, c->command))
			r = line(out, "", c->name, NULL, NULL);
		if (r == 0)
			r = line(out, "", when, ", in ", c->workdir);
		if (r == 0 && limit[0])
			r = line(out, "", limit + 2, NULL, NULL);
	}
	return r;
}

static int apply(const struct env *v, struct buf *out)
{
	int r = commands(out, v, SBXENV_INITIALIZE, "before each create and run");

	if (r == 0)
		r = folders(out, &v->v);
	if (r == 0)
		r = kits(out, &v->v);
	if (r == 0)
		r = resources(out, &v->v);
	if (r == 0)
		r = ports(out, &v->v);
	for (size_t i = 0; i < v->v.n_vars && r == 0; i++)
		r = line(out, "variable", v->v.vars[i].name, "=", v->v.vars[i].value);
	if (r == 0)
		r = credentials(out, &v->v);
	return r == 0 ? commands(out, v, SBXENV_POST_CREATE, "after it was created") : r;
}

static int take_away(const struct env *v, struct buf *out)
{
	int r = commands(out, v, SBXENV_PRE_REMOVE, "before it is removed");

	if (r == 0)
		r = v->there ? line(out, "remove", "the sandbox, its disk and its secrets", NULL,
				    NULL)
			     : line(out, "nothing", "the sandbox is not there", NULL, NULL);
	for (size_t i = 0; v->o->prune && i < v->v.n_bindings && r == 0; i++)
		r = line(out, "remove", "all bindings of ", v->v.bindings[i].service,
			 ", also for other sandboxes");
	return r;
}

int env_plan_text(const struct env *v, enum env_plan what, struct buf *out, struct err *e)
{
	int r = buf_printf(out, "%s environment '%s' (agent ",
			   what == ENV_APPLY ? "Apply" : "Remove", v->name);

	if (r == 0)
		r = add_text(out, v->v.agent);
	if (r == 0)
		r = buf_add(out, ")\n", 2);
	for (size_t i = 0; i < v->n_files && r == 0; i++)
		r = line(out, "file", v->files[i], NULL, NULL);
	if (r == 0)
		r = what == ENV_APPLY ? apply(v, out) : take_away(v, out);
	return r < 0 ? err_errno(e, r, "cannot show the plan") : 0;
}

/* ---- approval ---- */

static bool has_host(const struct env *v)
{
	size_t n = 0;

	for (size_t p = 0; p < SBXENV_PHASES && !v->o->skip_host; p++)
		n += v->v.n_commands[p];
	for (size_t i = 0; i < v->v.n_secrets; i++)
		n += v->v.secrets[i].source.command != NULL;
	for (size_t i = 0; i < v->v.n_registries; i++)
		n += v->v.registries[i].secret.command || v->v.registries[i].username.command;
	return n > 0;
}

static bool was_approved(const struct env *v, const char *sum)
{
	_free_ char *path = dirs_join(v->c.dirs.state, kept_name), *text = NULL;

	return path && fd_read_file(AT_FDCWD, path, APPROVED_MAX, &text, NULL) == 0 &&
	       strstr(text, sum);
}

/* The latest stay: the file is cut at its front. */
static int keep(const struct env *v, const char *sum, struct err *e)
{
	_free_ char *path = dirs_join(v->c.dirs.state, kept_name), *text = NULL;
	struct buf out = BUF_INIT(APPROVED_MAX + 66);
	size_t n = 0;
	int r = path ? 0 : -ENOMEM;

	if (r == 0 && fd_read_file(AT_FDCWD, path, APPROVED_MAX, &text, &n) == 0)
		r = buf_add(&out, text, n);
	if (r == 0)
		r = buf_printf(&out, "%s\n", sum);
	while (out.n > APPROVED_MAX)
		buf_consume(&out, 65);
	if (r == 0)
		r = fd_replace_file(AT_FDCWD, path, 0600, buf_data(&out), out.n);
	buf_done(&out);
	return r < 0 ? err_errno(e, r, "cannot keep the approval") : 0;
}

/* 1: yes, 0: no. */
static int ask_for(const struct env *v, enum env_plan what, const char *plan, struct err *e)
{
	const char *option = what == ENV_APPLY ? "--auto-approve" : "--force";

	if (!v->o->quiet)
		(void)fputs(plan, stderr);
	if (what == ENV_APPLY ? v->o->auto_approve : v->o->force)
		return 1;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return err_set(
			e, -EPERM,
			"the environment needs your approval, and there is no terminal; use %s",
			option);
	return ask(what == ENV_APPLY ? "Apply this?" : "Remove this?", e);
}

int env_approve(const struct env *v, enum env_plan what, struct err *e)
{
	struct buf out = BUF_INIT(PLAN_MAX);
	uint64_t remember = 0;
	const char *plan;
	char sum[65];
	int r = env_plan_text(v, what, &out, e);

	if (r == 0)
		r = setting_number(v->c.state, "env.rememberHostCommands", &remember, e);
	plan = r == 0 ? buf_str(&out) : NULL;
	if (r == 0 && !plan)
		r = err_errno(e, -ENOMEM, "cannot show the plan");
	if (r == 0) {
		bool may = what == ENV_APPLY && (remember || !has_host(v));

		digest(plan, out.n, sum);
		if (!may || !was_approved(v, sum)) {
			r = ask_for(v, what, plan, e);
			if (r == 1 && may && !v->o->auto_approve)
				r = keep(v, sum, e);
			else if (r >= 0)
				r = !r;
		}
	}
	buf_done(&out);
	return r;
}
