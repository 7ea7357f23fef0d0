#include "kit/old.h"

#include <stdio.h>

#include "base/text.h"

void old_warn(struct take *t, const struct yaml *y, const char *new)
{
	struct yaml at = take_key(y);

	TAKE_WARN(t, &at, "an old field, read as %s", new);
}

bool old_is_short(const struct yaml *tree)
{
	return take_get(tree, "network") || take_get(tree, "secrets") || take_get(tree, "install");
}

/* Only for its fault: is a key there that none of these is? */
static void check_keys(struct take *t, const struct yaml *y, const char *const *keys, size_t n)
{
	struct take_field f[16] = { 0 };
	size_t i;

	for (i = 0; i < n && i < ARRAY_SIZE(f); i++)
		f[i].key = keys[i];
	take_map(t, y, f, n, f);
}

#define CHECK_KEYS(t, y, ...) \
	do { \
		static const char *const keys_[] = { __VA_ARGS__ }; \
		check_keys(t, y, keys_, ARRAY_SIZE(keys_)); \
	} while (0)

/* From the top to another name there, or into a map there (`in`, made if need be). */
static void move(struct take *t, struct tree *m, struct yaml *tree, const char *key, const char *in,
		 const char *new, const char *say)
{
	struct yaml y, at, *into = tree;

	if (!tree_take(tree, key, &y))
		return;
	old_warn(t, &y, say);
	at = take_key(&y);
	if (in)
		into = tree_at(m, tree, in, YAML_MAP, &y);
	if (into && into->kind == YAML_MAP && !take_get(into, new)) {
		tree_put(m, into, new, &y);
		return;
	}
	TAKE_FAULT(t, &at, "found it beside %s, expected one of them", say);
	yaml_done(&y);
}

static void drop(struct take *t, struct yaml *map, const char *key, const char *why)
{
	struct yaml y, at;

	if (!tree_take(map, key, &y))
		return;
	at = take_key(&y);
	TAKE_WARN(t, &at, "an old field, not applied: %s", why);
	yaml_done(&y);
}

/* ---- the kind, the sandbox ---- */
static void renew_kind(struct take *t, struct tree *m, struct yaml *tree)
{
	struct yaml *y = (struct yaml *)yaml_get(tree, "kind"), made;
	bool sandbox = take_get(tree, "sandbox") || take_get(tree, "agent");

	if (!y && !take_get(tree, "schemaVersion")) {
		TAKE_WARN(t, tree, "the short form, read as schema 2, kind %s",
			  sandbox ? "sandbox" : "mixin");
		made = tree_text(m, sandbox ? "sandbox" : "mixin", tree);
		tree_put(m, tree, "kind", &made);
		return;
	}
	if (!y || y->kind != YAML_TEXT || !streq(y->text, "agent"))
		return;
	old_warn(t, y, "'kind: sandbox'");
	free(y->text);
	y->text = strdup("sandbox");
	m->failed |= !y->text;
	if (!y->text)
		y->kind = YAML_NONE;
}

static void renew_entrypoint(struct take *t, struct tree *m, struct yaml *sandbox)
{
	struct yaml y, run = { 0 }, args = { 0 }, tty = { 0 }, *command;

	if (!tree_take(sandbox, "entrypoint", &y))
		return;
	if (y.kind != YAML_MAP) {
		take_wrong(t, &y, "a map with 'run' (a list is of schema 2)");
		yaml_done(&y);
		return;
	}
	CHECK_KEYS(t, &y, "run", "args", "ttyArgs", "pipeMode");
	old_warn(t, &y, "'sandbox.entrypoint' and 'sandbox.command'");
	drop(t, &y, "pipeMode", "there is nothing like it");
	if (tree_take(&y, "run", &run))
		tree_put(m, sandbox, "entrypoint", &run);
	if (tree_take(&y, "args", &args)) {
		command = tree_at(m, sandbox, "command", YAML_MAP, &args);
		if (command)
			tree_put(m, command, "default", &args);
	}
	if (tree_take(&y, "ttyArgs", &tty)) {
		command = tree_at(m, sandbox, "command", YAML_MAP, &tty);
		if (command)
			tree_put(m, command, "interactive", &tty);
	}
	yaml_done(&args);
	yaml_done(&tty);
	yaml_done(&y);
}

static void renew_resources(struct take *t, struct tree *m, struct yaml *sandbox)
{
	struct yaml *resources = (struct yaml *)take_get(sandbox, "resources"), y, made;
	char text[64];
	uint64_t n;

	if (!resources || !tree_take(resources, "memoryMB", &y))
		return;
	if (y.kind != YAML_TEXT || text_u64(y.text, 1 << 30, &n) < 0) {
		take_wrong(t, &y, "a number of MiB");
	} else {
		old_warn(t, &y, "'sandbox.resources.memory'");
		(void)snprintf(text, sizeof(text), "%llum", (unsigned long long)n);
		made = tree_text(m, text, &y);
		if (n)
			tree_put(m, resources, "memory", &made);
		yaml_done(&made);
	}
	yaml_done(&y);
}

static void renew_sandbox(struct take *t, struct tree *m, struct yaml *tree)
{
	struct yaml *sandbox, *instructions, y;

	move(t, m, tree, "agent", NULL, "sandbox", "'sandbox'");
	sandbox = (struct yaml *)take_get(tree, "sandbox");
	if (!sandbox || sandbox->kind != YAML_MAP)
		return;
	renew_entrypoint(t, m, sandbox);
	renew_resources(t, m, sandbox);
	drop(t, sandbox, "persistence", "say what is to be kept in 'volumes'");
	if (!tree_take(sandbox, "aiFilename", &y))
		return;
	old_warn(t, &y, "'agentInstructions.filename'");
	instructions = tree_at(m, tree, "agentInstructions", YAML_MAP, &y);
	if (instructions)
		tree_put(m, instructions, "filename", &y);
	yaml_done(&y);
}

static void renew_context(struct take *t, struct tree *m, struct yaml *tree)
{
	static const char say[] = "'agentInstructions.content'";

	move(t, m, tree, "memory", "agentInstructions", "content", say);
	move(t, m, tree, "agentContext", "agentInstructions", "content", say);
}

/* ---- network, ports ---- */
static struct yaml *rules(struct tree *m, struct yaml *tree, const struct yaml *like)
{
	struct yaml *permissions = tree_at(m, tree, "permissions", YAML_MAP, like);

	return permissions ? tree_at(m, permissions, "network", YAML_MAP, like) : NULL;
}

static void renew_list(struct take *t, struct tree *m, struct yaml *tree, struct yaml *from,
		       const char *key, const char *new)
{
	struct yaml y, *into;
	char say[64];

	if (!tree_take(from, key, &y))
		return;
	(void)snprintf(say, sizeof(say), "'permissions.network.%s'", new);
	old_warn(t, &y, say);
	into = rules(m, tree, &y);
	if (into)
		tree_append(m, into, new, &y);
	yaml_done(&y);
}

static void renew_network(struct take *t, struct tree *m, struct yaml *tree, struct yaml *network)
{
	struct yaml y;

	CHECK_KEYS(t, network, "allowedDomains", "deniedDomains", "allow", "deny", "publishedPorts",
		   "serviceDomains", "serviceAuth");
	if (network->kind != YAML_MAP)
		return;
	renew_list(t, m, tree, network, "allowedDomains", "allow");
	renew_list(t, m, tree, network, "allow", "allow");
	renew_list(t, m, tree, network, "deniedDomains", "deny");
	renew_list(t, m, tree, network, "deny", "deny");
	if (tree_take(network, "publishedPorts", &y)) {
		old_warn(t, &y, "'ports'");
		tree_append(m, tree, "ports", &y);
	}
}

static void renew_caps(struct take *t, struct tree *m, struct yaml *tree)
{
	struct yaml caps, network;

	if (!tree_take(tree, "caps", &caps))
		return;
	CHECK_KEYS(t, &caps, "network");
	if (tree_take(&caps, "network", &network)) {
		CHECK_KEYS(t, &network, "allow", "deny");
		renew_list(t, m, tree, &network, "allow", "allow");
		renew_list(t, m, tree, &network, "deny", "deny");
		yaml_done(&network);
	}
	yaml_done(&caps);
}

static void renew_ports(struct take *t, struct tree *m, struct yaml *tree)
{
	struct yaml y;

	if (!tree_take(tree, "publishedPorts", &y))
		return;
	old_warn(t, &y, "'ports'");
	tree_append(m, tree, "ports", &y);
}

/* ---- commands, volumes ---- */
static void renew_commands(struct take *t, struct tree *m, struct yaml *tree)
{
	struct yaml y, *files;

	move(t, m, tree, "commands", NULL, "setup", "'setup'");
	files = (struct yaml *)take_get(tree, "setup");
	if (files && files->kind == YAML_MAP && tree_take(files, "initFiles", &y))
		tree_put(m, files, "files", &y);
}

/* Of the short form: each item may be just the line that sh runs. */
static void renew_install(struct take *t, struct tree *m, struct yaml *tree)
{
	struct yaml list, *setup;
	size_t i;

	if (!tree_take(tree, "install", &list))
		return;
	old_warn(t, &list, "'setup.install'");
	for (i = 0; list.kind == YAML_LIST && i < list.n; i++) {
		struct yaml step;

		if (list.v[i].kind != YAML_TEXT)
			continue;
		step = tree_new(m, YAML_MAP, &list.v[i]);
		tree_put(m, &step, "command", &list.v[i]);
		list.v[i] = step;
	}
	setup = tree_at(m, tree, "setup", YAML_MAP, &list);
	if (setup && setup->kind == YAML_MAP)
		tree_append(m, setup, "install", &list);
	yaml_done(&list);
}

/* "path: size" becomes an item of a list. */
static void renew_volumes(struct take *t, struct tree *m, struct yaml *tree)
{
	struct yaml y, list;
	size_t i;

	if (!take_get(tree, "volumes") || take_get(tree, "volumes")->kind != YAML_MAP)
		return;
	if (!tree_take(tree, "volumes", &y))
		return;
	old_warn(t, &y, "a list of 'path' and 'size'");
	list = tree_new(m, YAML_LIST, &y);
	for (i = 0; i < y.n; i++) {
		struct yaml one = tree_new(m, YAML_MAP, &y.v[i]);
		struct yaml path = tree_text(m, y.v[i].key, &y.v[i]);

		tree_put(m, &one, "path", &path);
		if (!yaml_is_null(&y.v[i]) && !(y.v[i].kind == YAML_TEXT && !*y.v[i].text))
			tree_put(m, &one, "size", &y.v[i]);
		tree_put(m, &list, NULL, &one);
	}
	tree_put(m, tree, "volumes", &list);
	yaml_done(&y);
}

/* ---- what goes nowhere ---- */
/* Fields of schema 2 in a file that says 1 (or nothing): told, and left out. */
static void refuse_new(struct take *t, struct yaml *tree)
{
	static const struct {
		const char *key, *old;
	} news[] = {
		{ "agentInstructions", "'sandbox.aiFilename' and 'memory'" },
		{ "args", "no arguments" },
		{ "permissions", "'network.allowedDomains'" },
		{ "ports", "'network.publishedPorts'" },
		{ "requires", "no 'requires'" },
		{ "setup", "'commands'" },
	};
	struct yaml y, at;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(news); i++)
		if (tree_take(tree, news[i].key, &y)) {
			at = take_key(&y);
			TAKE_FAULT(
				t, &at,
				"found a field of schema 2, expected %s, or schemaVersion: \"2\" "
				"and no old field",
				news[i].old);
			yaml_done(&y);
		}
}

int old_renew(struct take *t, struct yaml *tree)
{
	struct tree m = { 0 };
	struct yaml network = { 0 };

	refuse_new(t, tree);
	renew_kind(t, &m, tree);
	renew_sandbox(t, &m, tree);
	renew_context(t, &m, tree);
	if (tree_take(tree, "network", &network))
		renew_network(t, &m, tree, &network);
	renew_caps(t, &m, tree);
	renew_ports(t, &m, tree);
	renew_commands(t, &m, tree);
	renew_install(t, &m, tree);
	renew_volumes(t, &m, tree);
	drop(t, tree, "settings", "write files in 'setup.files'");
	drop(t, tree, "kitDir", "it is not needed");
	old_credentials(t, &m, tree, &network);
	yaml_done(&network);
	return m.failed ? -ENOMEM : 0;
}

/* ---- where a field has gone ---- */
static const struct {
	const char *old, *new;
} moved[] = {
	{ "agent", "'sandbox'" },
	{ "agentContext", "'agentInstructions.content'" },
	{ "aiFilename", "'agentInstructions.filename'" },
	{ "binary", "'sandbox.entrypoint'" },
	{ "caps", "'permissions'" },
	{ "capabilities", "schema 2: schema 3 is not read" },
	{ "commands", "'setup'" },
	{ "commands.initFiles", "'setup.files'" },
	{ "credentials.sources", "a list of services" },
	{ "egress", "'credentials[].apiKey.inject'" },
	{ "environment.proxyManaged", "'credentials[].apiKey.name'" },
	{ "install", "'setup.install'" },
	{ "kitDir", "nothing: it is not needed" },
	{ "memory", "'agentInstructions.content'" },
	{ "network", "'permissions.network'" },
	{ "oauth", "'credentials[].oauth'" },
	{ "permissions.network.allowedDomains", "'permissions.network.allow'" },
	{ "permissions.network.deniedDomains", "'permissions.network.deny'" },
	{ "publishedPorts", "'ports'" },
	{ "runOptions", "'sandbox.entrypoint'" },
	{ "sandbox.aiFilename", "'agentInstructions.filename'" },
	{ "sandbox.persistence", "'volumes'" },
	{ "sandbox.resources.memoryMB", "'sandbox.resources.memory'" },
	{ "secrets", "'credentials'" },
	{ "settings", "'setup.files'" },
	{ "setup.initFiles", "'setup.files'" },
	{ "template", "'sandbox.image'" },
	{ "tmpfs", "'volumes' with type tmpfs" },
};

const char *take_moved(const char *path)
{
	size_t i;

	for (i = 0; path && i < ARRAY_SIZE(moved); i++)
		if (streq(moved[i].old, path))
			return moved[i].new;
	return NULL;
}

const char *take_moved_near(const char *path)
{
	const char *near = path && strlen(path) > 4
				   ? text_nearest(path, moved, ARRAY_SIZE(moved), sizeof(*moved))
				   : NULL;

	return take_moved(near);
}
