/* setup and volumes. */
#include <stdio.h>

#include "kit/rules.h"
#include "kit/spec.h"

static void user(struct take *t, const struct yaml *y, void *into)
{
	if (y->kind != YAML_TEXT || !rules_is_user(y->text))
		take_wrong(t, y, "a user's number or name");
	else
		take_text(t, y, into);
}

static void shell_line(struct take *t, const struct yaml *y, void *into)
{
	struct kit_step *s = into;
	char **argv = pool_zero(t->pool, 4, sizeof(*argv));
	char *line = NULL;

	if (y->kind == YAML_LIST) {
		take_wrong(t, y, "a text, which sh -c runs (a list is for 'startup')");
		return;
	}
	take_text(t, y, &line);
	if (!line || !argv)
		return;
	argv[0] = pool_text(t->pool, "sh", 2);
	argv[1] = pool_text(t->pool, "-c", 2);
	argv[2] = line;
	s->argv = argv;
	s->argc = 3;
}

static void arguments(struct take *t, const struct yaml *y, void *into)
{
	struct kit_step *s = into;
	struct kit_texts argv = { 0 };

	if (y->kind != YAML_LIST || !y->n) {
		take_wrong(t, y,
			   y->kind == YAML_LIST ? "a program in it"
						: "a list as [sh, -c, 'a && b']");
		return;
	}
	take_argv(t, y, &argv);
	if (argv.n && !*argv.v[0])
		take_wrong(t, &y->v[0], "a program");
	s->argv = argv.v;
	s->argc = argv.n;
}

static void step(struct take *t, const struct yaml *y, struct kit_step *s,
		 const struct take_field *f, size_t n, const char *who)
{
	s->kit = t->kit->name;
	take_map(t, y, f, n, s);
	if (!s->user)
		s->user = pool_text(t->pool, who, strlen(who));
	if (y->kind == YAML_MAP && !take_get(y, "command"))
		take_missing(t, y, "command", "what to run");
}

static void install_step(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "command", shell_line, 0 },
		{ "user", user, offsetof(struct kit_step, user) },
		{ "description", take_any, offsetof(struct kit_step, description) },
	};

	step(t, y, into, f, ARRAY_SIZE(f), "0");
}

static void startup_step(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "command", arguments, 0 },
		{ "user", user, offsetof(struct kit_step, user) },
		{ "background", take_bool, offsetof(struct kit_step, background) },
		{ "description", take_any, offsetof(struct kit_step, description) },
	};

	step(t, y, into, f, ARRAY_SIZE(f), "1000");
}

static void install(struct take *t, const struct yaml *y, void *into)
{
	struct kit *k = into;

	k->install = take_list(t, y, sizeof(*k->install), install_step, &k->n_install);
}

static void startup(struct take *t, const struct yaml *y, void *into)
{
	struct kit *k = into;

	k->startup = take_list(t, y, sizeof(*k->startup), startup_step, &k->n_startup);
}

/* ---- files ---- */
/* A file of an agent: a mixin for any agent has no business there; who is made for that agent should know. */
static void check_reserved(struct take *t, const struct yaml *y, const char *path)
{
	const char *agent = kit_reserved(path + strlen("/home/agent/"));
	const struct kit *k = t->kit;

	if (!agent || streq(agent, k->name))
		return;
	if (k->kind == KIT_MIXIN && !streq(agent, k->requires_agent))
		TAKE_FAULT(t, y,
			   "found '%.60s', expected another file: it belongs to the agent '%s'",
			   path, agent);
	else
		TAKE_WARN(t, y, "'%.60s' belongs to the agent '%s', which may write it too", path,
			  agent);
}

static void path(struct take *t, const struct yaml *y, void *into)
{
	const char *s = y->kind == YAML_TEXT ? y->text : "";

	if (!rules_is_path(s)) {
		take_wrong(t, y, "a path from the root, as '/home/agent/.config/x'");
		return;
	}
	take_text(t, y, into);
	if (starts_with(s, "/home/agent/"))
		check_reserved(t, y, s);
	else if (!starts_with(s, "/tmp/") && !starts_with(s, "/var/tmp/"))
		TAKE_WARN(t, y,
			  "'%.100s' is outside of /home/agent: unless it is in the workspace, root "
			  "writes it, not the user agent (1000)",
			  s);
}

/* ${WORKDIR} is all there is. */
static void content(struct take *t, const struct yaml *y, void *into)
{
	const char *p = y->kind == YAML_TEXT ? y->text : "";

	while ((p = strstr(p, "${")) != NULL) {
		size_t n = strcspn(p, "}");

		if (p[n] && n > 2 && strncmp(p, "${WORKDIR}", n + 1) != 0) {
			TAKE_FAULT(t, y,
				   "found '%.*s' in it, expected no placeholder but ${WORKDIR}",
				   (int)MIN(n + 1, 60U), p);
			return;
		}
		p += 2;
	}
	take_any(t, y, into);
}

static void file(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "path", path, offsetof(struct kit_setup_file, path) },
		{ "content", content, offsetof(struct kit_setup_file, content) },
		{ "mode", take_mode, offsetof(struct kit_setup_file, mode) },
		{ "onlyIfMissing", take_bool, offsetof(struct kit_setup_file, only_if_missing) },
		{ "description", take_any, offsetof(struct kit_setup_file, description) },
	};
	struct kit_setup_file *one = into;

	one->kit = t->kit->name;
	one->mode = 0644;
	one->content = pool_text(t->pool, "", 0);
	take_map(t, y, f, ARRAY_SIZE(f), one);
	if (y->kind == YAML_MAP && !take_get(y, "path"))
		take_missing(t, y, "path", "where it goes");
}

static void files(struct take *t, const struct yaml *y, void *into)
{
	struct kit *k = into;

	k->files = take_list(t, y, sizeof(*k->files), file, &k->n_files);
}

void spec_setup(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "install", install, 0 },
		{ "startup", startup, 0 },
		{ "files", files, 0 },
	};

	(void)into;
	take_map(t, y, f, ARRAY_SIZE(f), t->kit);
}

/* ---- volumes ---- */
static void volume_path(struct take *t, const struct yaml *y, void *into)
{
	if (y->kind != YAML_TEXT || !rules_is_path(y->text))
		take_wrong(t, y, "a path from the root, as '/var/lib/x'");
	else
		take_text(t, y, into);
}

static void type(struct take *t, const struct yaml *y, void *into)
{
	if (y->kind != YAML_TEXT || (*y->text && !streq(y->text, "tmpfs")))
		take_wrong(t, y, "tmpfs, or nothing for a volume on disk");
	else
		*(bool *)into = *y->text != '\0';
}

static void volume(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "path", volume_path, offsetof(struct kit_volume, path) },
		{ "type", type, offsetof(struct kit_volume, tmpfs) },
		{ "size", take_size, offsetof(struct kit_volume, size) },
		{ "mode", take_mode, offsetof(struct kit_volume, mode) },
	};

	((struct kit_volume *)into)->kit = t->kit->name;
	take_map(t, y, f, ARRAY_SIZE(f), into);
	if (y->kind == YAML_MAP && !take_get(y, "path"))
		take_missing(t, y, "path", "where it is mounted");
}

void spec_volumes(struct take *t, const struct yaml *y, void *into)
{
	struct kit *k = t->kit;
	size_t i, j;

	(void)into;
	k->volumes = take_list(t, y, sizeof(*k->volumes), volume, &k->n_volumes);
	for (i = 0; i < k->n_volumes; i++)
		for (j = 0; j < i; j++)
			if (k->volumes[i].path && streq(k->volumes[i].path, k->volumes[j].path))
				TAKE_FAULT(t, &y->v[i], "found '%.60s' a second time",
					   k->volumes[i].path);
}
