/* A kit as text: the normal form, which kit_parse() reads into the same again. */
#include <stdio.h>

#include "kit/emit.h"
#include "kit/kit.h"

static void put_texts(struct emit *m, const char *key, const struct kit_texts *t)
{
	size_t i;

	if (!t->n)
		return;
	emit_list(m, key);
	for (i = 0; i < t->n; i++)
		emit_text(m, NULL, t->v[i]);
	emit_end(m);
}

/* The same, also where there is none. */
static void put_argv(struct emit *m, const char *key, const struct kit_texts *t)
{
	size_t i;

	emit_list(m, key);
	for (i = 0; i < t->n; i++)
		emit_text(m, NULL, t->v[i]);
	emit_end(m);
}

static void put_mode(struct emit *m, unsigned mode)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%04o", mode);
	emit_text(m, "mode", text);
}

/* In the biggest unit that says it whole. */
static void put_size(struct emit *m, const char *key, uint64_t n)
{
	static const char units[] = "kmgt";
	char text[32];
	int unit = -1;

	while (unit < 3 && n % 1024 == 0) {
		n /= 1024;
		unit++;
	}
	(void)snprintf(text, sizeof(text), "%llu%.1s", (unsigned long long)n,
		       unit < 0 ? "b" : units + unit);
	emit_text(m, key, text);
}

/* ---- the parts, in the order of docs/kits.md ---- */
static void put_head(struct emit *m, const struct kit *k)
{
	emit_text(m, "schemaVersion", "2");
	emit_text(m, "kind", k->kind == KIT_SANDBOX ? "sandbox" : "mixin");
	emit_text(m, "name", k->name);
	emit_some(m, "version", k->kit_version);
	emit_some(m, "displayName", k->display_name);
	emit_some(m, "description", k->description);
	emit_some(m, "sourceURL", k->source_url);
	put_texts(m, "licenses", &k->licenses);
	put_texts(m, "locked", &k->locked);
	if (k->privileged) {
		emit_map(m, "security");
		emit_word(m, "privileged", "true");
		emit_end(m);
	}
}

static void put_args(struct emit *m, const struct kit *k)
{
	size_t i;

	if (!k->args.n)
		return;
	emit_map(m, "args");
	for (i = 0; i < k->args.n; i++) {
		emit_map(m, k->args.v[i].name);
		emit_text(m, "default", k->args.v[i].value);
		emit_some(m, "description", k->args.v[i].description);
		emit_end(m);
	}
	emit_end(m);
}

static void put_family(struct emit *m, const struct kit *k)
{
	if (k->requires_agent) {
		emit_map(m, "requires");
		emit_text(m, "agent", k->requires_agent);
		emit_end(m);
	}
	emit_some(m, "extends", k->extends);
	put_texts(m, "mixins", &k->mixins);
}

static void put_resources(struct emit *m, const struct kit *k)
{
	char text[32];
	size_t n;

	if (k->cpu <= 0 && !k->memory && !k->gpu)
		return;
	emit_map(m, "resources");
	if (k->cpu > 0) {
		(void)snprintf(text, sizeof(text), "%.6f", k->cpu);
		for (n = strlen(text); text[n - 1] == '0'; n--)
			text[n - 1] = '\0';
		if (text[n - 1] == '.')
			text[n - 1] = '\0';
		emit_word(m, "cpu", text);
	}
	if (k->memory)
		put_size(m, "memory", k->memory);
	emit_some(m, "gpu", k->gpu);
	emit_end(m);
}

static void put_command(struct emit *m, const struct kit *k)
{
	if (k->has_command && !k->has_interactive) {
		put_argv(m, "command", &k->command);
	} else if (k->has_interactive) {
		emit_map(m, "command");
		if (k->has_command)
			put_argv(m, "default", &k->command);
		put_argv(m, "interactive", &k->interactive);
		emit_end(m);
	}
}

static void put_sandbox(struct emit *m, const struct kit *k)
{
	bool any = k->image || k->entrypoint.n || k->has_command || k->has_interactive ||
		   k->cpu > 0 || k->memory || k->gpu;

	if (k->kind != KIT_SANDBOX || !any)
		return;
	emit_map(m, "sandbox");
	emit_some(m, "image", k->image);
	put_texts(m, "entrypoint", &k->entrypoint);
	put_command(m, k);
	put_resources(m, k);
	emit_end(m);
}

static void put_instructions(struct emit *m, const struct kit *k)
{
	if (!k->n_instructions)
		return;
	emit_map(m, "agentInstructions");
	emit_some(m, "filename", k->instructions[0].filename);
	if (k->instructions[0].content)
		emit_text(m, "content", k->instructions[0].content);
	emit_end(m);
}

static void put_network(struct emit *m, const struct kit *k)
{
	if (!k->allow.n && !k->deny.n)
		return;
	emit_map(m, "permissions");
	emit_map(m, "network");
	put_texts(m, "allow", &k->allow);
	put_texts(m, "deny", &k->deny);
	emit_end(m);
	emit_end(m);
}

static void put_ports(struct emit *m, const struct kit *k)
{
	char text[16];
	size_t i;

	if (!k->n_ports)
		return;
	emit_list(m, "ports");
	for (i = 0; i < k->n_ports; i++) {
		emit_map(m, NULL);
		(void)snprintf(text, sizeof(text), "%u", k->ports[i].container);
		emit_word(m, "container", text);
		if (k->ports[i].protocol != KIT_TCP4)
			emit_text(m, "protocol", k->ports[i].protocol == KIT_UDP ? "udp" : "tcp");
		emit_some(m, "name", k->ports[i].name);
		emit_end(m);
	}
	emit_end(m);
}

static void put_environment(struct emit *m, const struct kit *k)
{
	size_t i;

	if (!k->n_vars)
		return;
	emit_map(m, "environment");
	emit_map(m, "variables");
	for (i = 0; i < k->n_vars; i++)
		emit_text(m, k->vars[i].name, k->vars[i].value);
	emit_end(m);
	emit_end(m);
}

static void put_steps(struct emit *m, const char *key, const struct kit_step *v, size_t n,
		      bool shell)
{
	size_t i;

	if (!n)
		return;
	emit_list(m, key);
	for (i = 0; i < n; i++) {
		const struct kit_texts argv = { .v = v[i].argv, .n = v[i].argc };

		emit_map(m, NULL);
		if (shell)
			emit_text(m, "command", v[i].argv[2]);
		else
			put_argv(m, "command", &argv);
		emit_text(m, "user", v[i].user);
		if (v[i].background)
			emit_word(m, "background", "true");
		emit_some(m, "description", v[i].description);
		emit_end(m);
	}
	emit_end(m);
}

static void put_files(struct emit *m, const struct kit *k)
{
	size_t i;

	if (!k->n_files)
		return;
	emit_list(m, "files");
	for (i = 0; i < k->n_files; i++) {
		const struct kit_setup_file *f = &k->files[i];

		emit_map(m, NULL);
		emit_text(m, "path", f->path);
		emit_text(m, "content", f->content);
		put_mode(m, f->mode);
		if (f->only_if_missing)
			emit_word(m, "onlyIfMissing", "true");
		emit_some(m, "description", f->description);
		emit_end(m);
	}
	emit_end(m);
}

static void put_setup(struct emit *m, const struct kit *k)
{
	if (!k->n_install && !k->n_startup && !k->n_files)
		return;
	emit_map(m, "setup");
	put_steps(m, "install", k->install, k->n_install, true);
	put_steps(m, "startup", k->startup, k->n_startup, false);
	put_files(m, k);
	emit_end(m);
}

static void put_volumes(struct emit *m, const struct kit *k)
{
	size_t i;

	if (!k->n_volumes)
		return;
	emit_list(m, "volumes");
	for (i = 0; i < k->n_volumes; i++) {
		const struct kit_volume *v = &k->volumes[i];

		emit_map(m, NULL);
		emit_text(m, "path", v->path);
		if (v->tmpfs)
			emit_text(m, "type", "tmpfs");
		if (v->size)
			put_size(m, "size", v->size);
		if (v->mode)
			put_mode(m, v->mode);
		emit_end(m);
	}
	emit_end(m);
}

/* ---- credentials ---- */
static void put_inject(struct emit *m, const struct declared *one)
{
	bool any = false;
	size_t i;

	for (i = 0; i < one->n; i++) {
		const struct cred_use *u = &one->v[i];

		if (u->kind != CRED_HEADER && u->kind != CRED_BASIC)
			continue;
		if (!any)
			emit_list(m, "inject");
		any = true;
		emit_map(m, NULL);
		emit_text(m, "domain", u->resource);
		if (u->kind == CRED_BASIC) {
			emit_text(m, "scheme", "basic");
			emit_text(m, "username", u->username);
		} else {
			emit_text(m, "header", u->header);
			emit_text(m, "format", u->format);
		}
		emit_end(m);
	}
	if (any)
		emit_end(m);
}

static bool has_key(const struct declared *one)
{
	size_t i;

	for (i = 0; i < one->n; i++)
		if (one->v[i].kind == CRED_HEADER || one->v[i].kind == CRED_BASIC)
			return true;
	return one->env != NULL;
}

/* "access,refresh,expires,scope" */
static void put_fields(struct emit *m, const char *all)
{
	static const char *const keys[] = { "accessToken", "refreshToken", "expiresIn", "scope" };
	char name[CRED_PATH_MAX + 2];
	size_t i, n;

	if (!all || streq(all, "access_token,refresh_token,expires_in,scope"))
		return;
	emit_map(m, "responseFields");
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		n = strcspn(all, ",");
		(void)snprintf(name, sizeof(name), "%.*s", (int)n, all);
		emit_text(m, keys[i], name);
		all += n + (all[n] ? 1 : 0);
	}
	emit_end(m);
}

static void put_login_file(struct emit *m, const struct login_file *f)
{
	char path[LOGIN_PATH_MAX + 8];

	if (!f->path)
		return;
	emit_map(m, "credentialFile");
	(void)snprintf(path, sizeof(path), "~/%s", f->path);
	emit_text(m, "path", path);
	if (f->structure)
		emit_tree(m, "structure", f->structure);
	else
		emit_text(m, "template", f->template);
	emit_end(m);
}

static void put_oauth(struct emit *m, const struct declared *one)
{
	const struct cred_use *token = NULL;
	bool hosts = false;
	size_t i;

	for (i = 0; i < one->n && !token; i++)
		if (one->v[i].kind == CRED_TOKEN)
			token = &one->v[i];
	if (!token)
		return;
	emit_map(m, "oauth");
	emit_map(m, "tokenEndpoint");
	emit_text(m, "host", token->resource);
	emit_text(m, "path", token->path);
	emit_end(m);
	for (i = 0; i < one->n; i++) {
		if (one->v[i].kind != CRED_OAUTH)
			continue;
		if (!hosts)
			emit_list(m, "resourceHosts");
		hosts = true;
		emit_text(m, NULL, one->v[i].resource);
	}
	if (hosts)
		emit_end(m);
	emit_map(m, "sentinels");
	emit_text(m, "accessToken", token->placeholder2);
	emit_text(m, "refreshToken", token->placeholder);
	emit_end(m);
	put_login_file(m, &one->file);
	put_fields(m, token->fields);
	emit_end(m);
}

/* all: also what is not said means something else to who reads it. */
static void put_credentials(struct emit *m, const struct kit *k, bool all)
{
	size_t i;

	if (!k->credentials.n)
		return;
	emit_list(m, "credentials");
	for (i = 0; i < k->credentials.n; i++) {
		const struct declared *one = &k->credentials.v[i];

		emit_map(m, NULL);
		emit_text(m, "service", one->service);
		emit_some(m, "description", one->description);
		if (one->required)
			emit_word(m, "required", "true");
		if (has_key(one)) {
			emit_map(m, "apiKey");
			emit_some(m, "name", one->env);
			if (one->managed || all)
				emit_word(m, "proxyManaged", one->managed ? "true" : "false");
			put_inject(m, one);
			emit_end(m);
		}
		put_oauth(m, one);
		emit_end(m);
	}
	emit_end(m);
}

static int put_all(const struct kit *k, struct emit *m)
{
	emit_map(m, NULL);
	put_head(m, k);
	put_args(m, k);
	put_family(m, k);
	put_sandbox(m, k);
	put_instructions(m, k);
	put_network(m, k);
	put_ports(m, k);
	put_credentials(m, k, false);
	put_environment(m, k);
	put_setup(m, k);
	put_volumes(m, k);
	emit_end(m);
	return m->r;
}

int kit_write(const struct kit *k, struct buf *out)
{
	struct emit m = { .out = out };

	return put_all(k, &m);
}

int kit_write_json(const struct kit *k, struct buf *out)
{
	struct emit m = { .out = out, .json = true };

	return put_all(k, &m);
}

int kit_write_credentials(const struct kit *k, struct buf *out)
{
	struct emit m = { .out = out };

	if (!k->credentials.n)
		return 0;
	emit_map(&m, NULL);
	put_credentials(&m, k, true);
	emit_end(&m);
	return m.r;
}
