/* sbxenv.yaml, from texts to one checked value.
 *
 * Each file is read twice: by itself, so that what is wrong is told with its file, line and column, and as a part of the whole, where only what the whole lacks is
 * left to be told. */
#include "kit/sbxenv.h"

#include <stdio.h>

#include "base/text.h"
#include "kit/rules.h"
#include "kit/sbxenv-tree.h"
#include "kit/spec.h"

enum { TIMEOUT_MAX_MS = 24 * 3600 * 1000 };

void sbxenv_done(struct sbxenv *v)
{
	pool_done(&v->pool);
	*v = (struct sbxenv) { 0 };
}

/* ---- small readers ---- */

static void not_built(struct take *t, const struct yaml *y, void *into)
{
	struct yaml at = take_key(y);

	(void)into;
	if (y->kind == YAML_TEXT && streq(y->text, "false"))
		return;
	if ((y->kind == YAML_LIST || y->kind == YAML_MAP) && !y->n)
		return;
	TAKE_FAULT(t, &at, "'%s' is not built yet in this bac", y->key);
}

static void skills(struct take *t, const struct yaml *y, void *into)
{
	if (y->kind != YAML_TEXT || !streq(y->text, "off"))
		not_built(t, y, into);
}

static void backend(struct take *t, const struct yaml *y, void *into)
{
	if (y->kind == YAML_TEXT && streq(y->text, "sdk"))
		TAKE_FAULT(t, y, "the backend 'sdk' is not built yet in this bac; 'cli' is");
	else if (y->kind != YAML_TEXT || !streq(y->text, "cli"))
		take_wrong(t, y, "sdk or cli");
	(void)into;
}

static void nothing(struct take *t, const struct yaml *y, void *into)
{
	(void)t;
	(void)y;
	(void)into;
}

static void schema(struct take *t, const struct yaml *y, void *into)
{
	(void)into;
	if (y->kind != YAML_TEXT || !streq(y->text, "1"))
		take_wrong(t, y, "\"1\"");
}

static void number(struct take *t, const struct yaml *y, uint64_t max, const char *expected,
		   uint64_t *ret)
{
	if (y->kind != YAML_TEXT || text_u64(y->text, max, ret) < 0)
		take_wrong(t, y, expected);
}

static void cpus(struct take *t, const struct yaml *y, void *into)
{
	uint64_t n = 0;

	number(t, y, 1024, "a number of processors", &n);
	*(uint32_t *)into = (uint32_t)n;
}

static void port(struct take *t, const struct yaml *y, void *into)
{
	uint64_t n = 0;

	number(t, y, 65535, "a port from 1 to 65535", &n);
	if (!n && y->kind == YAML_TEXT && streq(y->text, "0"))
		take_wrong(t, y, "a port from 1 to 65535");
	*(uint16_t *)into = (uint16_t)n;
}

static void timeout(struct take *t, const struct yaml *y, void *into)
{
	uint64_t ms = 0;

	if (y->kind != YAML_TEXT || text_duration_ms(y->text, &ms) < 0 || !ms ||
	    ms > TIMEOUT_MAX_MS)
		take_wrong(t, y, "a time as '90s' or '5m'");
	*(uint64_t *)into = ms;
}

static void choice(struct take *t, const struct yaml *y, void *into, const char *const *words,
		   const char *expected)
{
	for (size_t i = 0; y->kind == YAML_TEXT && words[i]; i++)
		if (streq(words[i], y->text)) {
			take_text(t, y, into);
			return;
		}
	take_wrong(t, y, expected);
}

static void pull(struct take *t, const struct yaml *y, void *into)
{
	static const char *const words[] = { "always", "missing", "never", NULL };

	choice(t, y, into, words, "always, missing or never");
}

static void protocol(struct take *t, const struct yaml *y, void *into)
{
	static const char *const words[] = { "tcp", "tcp4", "tcp6", "udp", "udp4", "udp6", NULL };

	choice(t, y, into, words, "tcp, tcp4, tcp6, udp, udp4 or udp6");
}

static void sandbox_name(struct take *t, const struct yaml *y, void *into)
{
	const char *fault = y->kind == YAML_TEXT ? text_name_fault(y->text) : NULL;

	take_text(t, y, into);
	if (fault)
		TAKE_FAULT(t, y, "found '%.63s', which %s", y->text, fault);
}

/* The entries of a map, each read into an element of an array. */
static void *entries(struct take *t, const struct yaml *y, size_t size,
		     void (*one)(struct take *t, const struct yaml *y, void *into), size_t *ret_n)
{
	char *v;

	if (!take_is(t, y, YAML_MAP) || !y->n)
		return NULL;
	if (y->n > KIT_ITEMS_MAX) {
		TAKE_FAULT(t, y, "found %zu entries, expected %d at most", y->n, KIT_ITEMS_MAX);
		return NULL;
	}
	v = pool_zero(t->pool, y->n, size);
	for (size_t i = 0; v && i < y->n; i++)
		one(t, &y->v[i], v + i * size);
	*ret_n = v ? y->n : 0;
	return v;
}

static char *key_text(struct take *t, const struct yaml *y)
{
	return pool_text(t->pool, y->key, strlen(y->key));
}

/* ---- the parts ---- */

static void variable(struct take *t, const struct yaml *y, void *into)
{
	struct kit_var *v = into;
	struct yaml at = take_key(y);

	v->name = key_text(t, y);
	if (!rules_is_variable(y->key))
		TAKE_FAULT(t, &at, "found '%.60s', expected the name of a variable", y->key);
	take_any(t, y, &v->value);
}

static void variables(struct take *t, const struct yaml *y, void *into)
{
	struct sbxenv *v = into;

	v->vars = entries(t, y, sizeof(*v->vars), variable, &v->n_vars);
}

static void kit_arg(struct take *t, const struct yaml *y, void *into)
{
	struct kit_var *v = into;

	v->name = key_text(t, y);
	take_any(t, y, &v->value);
}

static void kit_arguments(struct take *t, const struct yaml *y, void *into)
{
	struct sbxenv_kit *k = into;

	k->args = entries(t, y, sizeof(*k->args), kit_arg, &k->n_args);
}

static void kit(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "source", take_text, offsetof(struct sbxenv_kit, source) },
		{ "args", kit_arguments, 0 },
	};
	struct sbxenv_kit *k = into;

	if (y->kind == YAML_TEXT) {
		take_text(t, y, &k->source);
		return;
	}
	take_map(t, y, f, ARRAY_SIZE(f), k);
	if (y->kind == YAML_MAP && !take_get(y, "source"))
		take_missing(t, y, "source", "the reference of a kit");
}

static void kits(struct take *t, const struct yaml *y, void *into)
{
	struct sbxenv *v = into;

	v->kits = take_list(t, y, sizeof(*v->kits), kit, &v->n_kits);
}

static void workspace(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "path", take_text, offsetof(struct sbxenv, workspace) },
		{ "clone", take_bool, offsetof(struct sbxenv, clone) },
	};

	if (y->kind == YAML_TEXT)
		take_text(t, y, &((struct sbxenv *)into)->workspace);
	else
		take_map(t, y, f, ARRAY_SIZE(f), into);
}

static void folder(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "path", take_text, offsetof(struct sbxenv_folder, path) },
		{ "readOnly", take_bool, offsetof(struct sbxenv_folder, read_only) },
	};

	take_map(t, y, f, ARRAY_SIZE(f), into);
	if (y->kind == YAML_MAP && !take_get(y, "path"))
		take_missing(t, y, "path", "a folder");
}

static void folders(struct take *t, const struct yaml *y, void *into)
{
	struct sbxenv *v = into;

	v->folders = take_list(t, y, sizeof(*v->folders), folder, &v->n_folders);
}

static void options(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "template", take_text, offsetof(struct sbxenv, tmpl) },
		{ "memory", take_size, offsetof(struct sbxenv, memory) },
		{ "cpus", cpus, offsetof(struct sbxenv, cpus) },
		{ "pullPolicy", pull, offsetof(struct sbxenv, pull) },
		{ "profile", not_built, 0 },
		{ "skills", skills, 0 },
		{ "display", not_built, 0 },
		{ "gpu", not_built, 0 },
		{ "usb", not_built, 0 },
	};

	take_map(t, y, f, ARRAY_SIZE(f), into);
}

static void source(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "value", take_text, offsetof(struct sbxenv_source, value) },
		{ "ref", take_text, offsetof(struct sbxenv_source, ref) },
		{ "command", take_text, offsetof(struct sbxenv_source, command) },
		{ "refresh", take_text, offsetof(struct sbxenv_source, refresh) },
		{ "snapshot", take_bool, offsetof(struct sbxenv_source, snapshot) },
		{ "noVerify", take_bool, offsetof(struct sbxenv_source, no_verify) },
		{ "backend", backend, 0 },
	};

	take_map(t, y, f, ARRAY_SIZE(f), into);
}

static void secret(struct take *t, const struct yaml *y, void *into)
{
	struct sbxenv_secret *s = into;

	s->service = key_text(t, y);
	source(t, y, &s->source);
}

static void secrets(struct take *t, const struct yaml *y, void *into)
{
	struct sbxenv *v = into;

	v->secrets = entries(t, y, sizeof(*v->secrets), secret, &v->n_secrets);
}

static void registry(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "secret", source, offsetof(struct sbxenv_registry, secret) },
		{ "username", source, offsetof(struct sbxenv_registry, username) },
	};
	struct sbxenv_registry *r = into;

	r->host = key_text(t, y);
	take_map(t, y, f, ARRAY_SIZE(f), r);
}

static void registries(struct take *t, const struct yaml *y, void *into)
{
	struct sbxenv *v = into;

	v->registries = entries(t, y, sizeof(*v->registries), registry, &v->n_registries);
}

static void domains(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = { { "domains", take_words, 0 } };

	take_map(t, y, f, ARRAY_SIZE(f), into);
}

static void binding(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "apiKey", domains, offsetof(struct sbxenv_binding, api_key) },
		{ "oauth", domains, offsetof(struct sbxenv_binding, oauth) },
	};
	struct sbxenv_binding *b = into;

	b->service = key_text(t, y);
	take_map(t, y, f, ARRAY_SIZE(f), b);
}

static void bindings(struct take *t, const struct yaml *y, void *into)
{
	struct sbxenv *v = into;

	v->bindings = entries(t, y, sizeof(*v->bindings), binding, &v->n_bindings);
}

static void one_port(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "sandbox", port, offsetof(struct sbxenv_port, sandbox) },
		{ "host", port, offsetof(struct sbxenv_port, host) },
		{ "protocol", protocol, offsetof(struct sbxenv_port, protocol) },
		{ "hostIP", take_text, offsetof(struct sbxenv_port, host_ip) },
	};

	take_map(t, y, f, ARRAY_SIZE(f), into);
	if (y->kind == YAML_MAP && !take_get(y, "sandbox"))
		take_missing(t, y, "sandbox", "a port");
}

static void ports(struct take *t, const struct yaml *y, void *into)
{
	struct sbxenv *v = into;

	v->ports = take_list(t, y, sizeof(*v->ports), one_port, &v->n_ports);
}

static void command(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "name", take_text, offsetof(struct sbxenv_command, name) },
		{ "command", take_text, offsetof(struct sbxenv_command, command) },
		{ "workdir", take_text, offsetof(struct sbxenv_command, workdir) },
		{ "timeout", timeout, offsetof(struct sbxenv_command, timeout_ms) },
	};
	struct sbxenv_command *c = into;

	take_map(t, y, f, ARRAY_SIZE(f), c);
	if (y->kind == YAML_MAP && !take_get(y, "command"))
		take_missing(t, y, "command", "what a shell is to run");
	if (!c->name)
		c->name = c->command;
}

static void lifecycle(struct take *t, const struct yaml *y, void *into)
{
	static const char *const names[] = { "initialize", "postCreate", "preRemove" };
	static const struct take_field f[] = { { "initialize", nothing, 0 },
					       { "postCreate", nothing, 0 },
					       { "preRemove", nothing, 0 } };
	struct sbxenv *v = into;

	take_map(t, y, f, ARRAY_SIZE(f), into);
	for (size_t i = 0; i < SBXENV_PHASES; i++) {
		const struct yaml *phase = take_get(y, names[i]);

		if (!phase)
			continue;
		v->commands[i] =
			take_list(t, phase, sizeof(**v->commands), command, &v->n_commands[i]);
		if (v->n_commands[i] > SBXENV_COMMANDS_MAX)
			TAKE_FAULT(t, phase, "found %zu commands, expected %d at most",
				   v->n_commands[i], SBXENV_COMMANDS_MAX);
	}
}

static void decode(struct take *t, const struct yaml *y, struct sbxenv *v)
{
	static const struct take_field f[] = {
		{ "schemaVersion", schema, 0 },
		{ "name", sandbox_name, offsetof(struct sbxenv, name) },
		{ "agent", take_text, offsetof(struct sbxenv, agent) },
		{ "args", nothing, 0 },
		{ "kits", kits, 0 },
		{ "workspace", workspace, 0 },
		{ "additionalWorkspaces", folders, 0 },
		{ "env", variables, 0 },
		{ "sandboxOptions", options, 0 },
		{ "secrets", secrets, 0 },
		{ "bindings", bindings, 0 },
		{ "registries", registries, 0 },
		{ "mcp", not_built, 0 },
		{ "ports", ports, 0 },
		{ "lifecycle", lifecycle, 0 },
	};

	if (y->kind != YAML_NONE)
		take_map(t, y, f, ARRAY_SIZE(f), v);
}

/* ---- what the whole must be ---- */

static void check_source(struct take *t, const char *what, const char *name,
			 const struct sbxenv_source *s, bool optional)
{
	int n = (s->value != NULL) + (s->ref != NULL) + (s->command != NULL);

	if (n != 1 && !(optional && !n))
		TAKE_FAULT(t, NULL, "%s.%s: expected exactly one of value, ref and command", what,
			   name);
	if (s->snapshot && s->value)
		TAKE_FAULT(t, NULL, "%s.%s: 'snapshot' goes with ref or command", what, name);
	if (s->snapshot && s->ref)
		TAKE_FAULT(t, NULL, "%s.%s: 'snapshot' of a ref is not built yet in this bac", what,
			   name);
	if (s->snapshot && (s->refresh || s->no_verify))
		TAKE_FAULT(t, NULL, "%s.%s: 'snapshot' goes with neither refresh nor noVerify",
			   what, name);
	if (s->value && (s->refresh || s->no_verify))
		TAKE_FAULT(t, NULL, "%s.%s: 'refresh' and 'noVerify' go with ref or command", what,
			   name);
}

static void check_whole(struct take *t, const struct yaml *tree, const struct sbxenv *v)
{
	if (!take_get(tree, "schemaVersion"))
		TAKE_FAULT(t, NULL, "found no 'schemaVersion', expected \"1\"");
	if (!v->agent)
		TAKE_FAULT(t, NULL, "found no 'agent', expected the name of an agent or a kit");
	if (v->clone)
		TAKE_FAULT(t, NULL, "workspace.clone: it is not built yet in this bac");
	if (take_get(tree, "workspace") && !v->workspace)
		TAKE_FAULT(t, NULL, "workspace: found no 'path', expected a folder");
	for (size_t i = 0; i < v->n_secrets; i++)
		check_source(t, "secrets", v->secrets[i].service, &v->secrets[i].source, false);
	for (size_t i = 0; i < v->n_registries; i++) {
		check_source(t, "registries", v->registries[i].host, &v->registries[i].secret,
			     false);
		check_source(t, "registries", v->registries[i].host, &v->registries[i].username,
			     true);
	}
}

static void finish_commands(struct take *t, struct sbxenv *v, const char *project)
{
	for (size_t p = 0; p < SBXENV_PHASES; p++)
		for (size_t i = 0; i < v->n_commands[p]; i++) {
			struct sbxenv_command *c = &v->commands[p][i];
			char *dir = sbxenv_join(project, c->workdir ? c->workdir : ".");

			c->workdir = dir ? pool_text(t->pool, dir, strlen(dir)) : NULL;
			t->pool->failed = t->pool->failed || !dir;
			free(dir);
		}
}

/* ---- the files ---- */

struct files {
	struct yaml tree[SBXENV_FILES_MAX];
	const struct sbxenv_file *v;
	size_t n;
	const char *project;
	struct kit_report *rep;
};

static int read_all(struct files *f, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < f->n && r == 0; i++) {
		r = yaml_read(f->v[i].text, f->v[i].n, f->v[i].name, &f->tree[i], f->rep, e);
		if (r == -EINVAL)
			r = 0;
		if (r == 0 && f->tree[i].kind != YAML_MAP && f->tree[i].kind != YAML_NONE)
			report_fault(f->rep, f->v[i].name, NULL, "expected a map");
	}
	return r;
}

/* The values of arguments, which all files may declare: a later declaration takes an earlier one's place, field by field. */
static int take_values(struct files *f, struct kit_args *given, struct kit *k, struct err *e)
{
	struct yaml all = { .kind = YAML_MAP };
	struct take t = { .rep = f->rep, .pool = &k->pool, .kit = k };
	int r = 0;

	for (size_t i = 0; i < f->n && r == 0; i++) {
		const struct yaml *args = yaml_get(&f->tree[i], "args");
		struct yaml again = { 0 }, only = { .kind = YAML_MAP };

		if (!args)
			continue;
		/* merging moves: read it once more rather than copy */
		r = yaml_read(f->v[i].text, f->v[i].n, f->v[i].name, &again, f->rep, e);
		for (size_t m = 0; r == 0 && m < again.n; m++)
			if (streq(again.v[m].key, "args")) {
				only.v = &again.v[m];
				only.n = 1;
				r = sbxenv_merge(&all, &only);
				break;
			}
		yaml_done(&again);
	}
	t.file = f->n ? f->v[0].name : NULL;
	if (r == 0)
		r = spec_args(&t, &all, given);
	yaml_done(&all);
	return r;
}

static void check_user(struct take *t, const struct sbxenv *v, const char *project)
{
	size_t n = strlen(project);

	if (v->name)
		TAKE_FAULT(t, NULL, "name: the user's defaults cannot name the sandbox");
	if (v->workspace && (strncmp(v->workspace, project, n) != 0 ||
			     (v->workspace[n] && v->workspace[n] != '/' && !streq(project, "/"))))
		TAKE_FAULT(t, NULL,
			   "workspace: in the user's defaults it is ${{ env.projectDir }} or a "
			   "folder in it");
}

/* References replaced, paths made absolute, and read for its faults. */
static int finish_file(struct files *f, size_t i, const struct kit_args *values)
{
	struct sbxenv scratch = { 0 };
	struct take t = { .file = f->v[i].name, .rep = f->rep, .pool = &scratch.pool };
	int r = sbxenv_fill(&t, &f->tree[i], &f->v[i], f->project, values);

	if (r == 0)
		r = sbxenv_resolve(&f->tree[i], f->v[i].dir);
	if (r == 0) {
		decode(&t, &f->tree[i], &scratch);
		if (f->v[i].user)
			check_user(&t, &scratch, f->project);
	}
	if (scratch.pool.failed)
		r = -ENOMEM;
	sbxenv_done(&scratch);
	return r;
}

static int whole(struct files *f, struct sbxenv *v, struct err *e)
{
	struct take t = { .file = f->v[f->n - 1].name, .rep = f->rep, .pool = &v->pool };
	struct yaml all = { .kind = YAML_MAP };
	int r = 0;

	for (size_t i = 0; i < f->n && r == 0; i++)
		r = sbxenv_merge(&all, &f->tree[i]);
	if (r == 0) {
		decode(&t, &all, v);
		check_whole(&t, &all, v);
		finish_commands(&t, v, f->project);
	}
	if (v->pool.failed)
		r = -ENOMEM;
	yaml_done(&all);
	return r == 0 ? report_result(f->rep, e) : r;
}

static int parse(struct files *f, struct kit_args *given, struct sbxenv *v, struct err *e)
{
	struct kit k = { 0 };
	int r = read_all(f, e);

	if (r == 0)
		r = report_result(f->rep, e);
	if (r == 0)
		r = take_values(f, given, &k, e);
	for (size_t i = 0; i < f->n && r == 0; i++)
		r = finish_file(f, i, &k.args);
	if (r == 0)
		r = report_result(f->rep, e);
	if (r == 0)
		r = whole(f, v, e);
	kit_done(&k);
	return r;
}

int sbxenv_parse(const struct sbxenv_file *files, size_t n, const char *project,
		 struct kit_args *args, struct sbxenv *ret, struct kit_report *rep, struct err *e)
{
	struct files f = { .v = files, .n = n, .project = project, .rep = rep };
	struct sbxenv v = { 0 };
	int r;

	if (!n || n > SBXENV_FILES_MAX)
		return err_set(e, n ? -E2BIG : -EINVAL, "%s", n ? "too many files" : "no file");
	r = parse(&f, args, &v, e);
	for (size_t i = 0; i < n; i++)
		yaml_done(&f.tree[i]);
	if (r == -ENOMEM)
		(void)err_set(e, r, "out of memory");
	if (r < 0)
		sbxenv_done(&v);
	else
		*ret = v;
	return r;
}
