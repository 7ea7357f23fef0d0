/* The copies from which a lost database is rebuilt: JSON files, replaced atomically. They lie in the
 * user's own state directory, yet are read as if they were foreign: bounded, every field checked. */
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "base/text.h"
#include "io/fd.h"
#include "state/priv.h"
#include "state/settings.h"

enum { COPY_MAX = 16 * 1024 * 1024 };

int state_json_write(int dir, const char *path, json_t *j)
{
	_free_ char *text = json_dumps(j, JSON_INDENT(2) | JSON_SORT_KEYS);

	json_decref(j);
	return text ? fd_replace_file(dir, path, 0600, text, strlen(text)) : -ENOMEM;
}

json_t *state_json_read(int dir, const char *path)
{
	_free_ char *text = NULL;
	size_t len;

	if (fd_read_file(dir, path, COPY_MAX, &text, &len) < 0)
		return NULL;
	return json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
}

int state_copy_write(struct state *s, const struct sandbox *b, struct err *e)
{
	_free_ char *shares = shares_text(&b->shares);
	char path[64];
	json_t *j;
	int r;

	j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:b}", "id", b->id,
		      "name", b->name, "agent", b->agent, "template", b->tmpl, "template_tag",
		      b->tmpl_tag, "workdir", b->workdir, "cpus", (json_int_t)b->cpus, "memory",
		      (json_int_t)b->memory, "disk", (json_int_t)b->disk, "created",
		      (json_int_t)b->created, "shared", json_loads(shares ? shares : "", 0, NULL),
		      "network", !b->no_network);
	if (!j)
		return err_errno(e, -ENOMEM, "cannot record the sandbox");
	(void)snprintf(path, sizeof(path), "%s/sandbox.json", b->id);
	r = state_json_write(s->boxes_fd, path, j);
	if (r < 0)
		return err_errno(e, r, "cannot write %s/sandboxes/%s", s->dir, path);
	return 0;
}

static int take(json_t *j, struct sandbox *b)
{
	const char *id, *name, *agent, *tmpl, *tag, *workdir;
	json_int_t cpus, memory, disk, created;
	_free_ char *shared = NULL;

	if (json_unpack(j, "{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "id", &id, "name",
			&name, "agent", &agent, "template", &tmpl, "template_tag", &tag, "workdir",
			&workdir, "cpus", &cpus, "memory", &memory, "disk", &disk, "created",
			&created) < 0)
		return -EINVAL;
	if (text_copy(b->id, sizeof(b->id), id) < 0 || text_name_fault(name))
		return -EINVAL;
	if (cpus < 1 || cpus > 1024 || memory < 1 || disk < 1)
		return -EINVAL;
	shared = json_dumps(json_object_get(j, "shared"), JSON_COMPACT); /* older ones have none */
	if (shared && shares_parse(shared, &b->shares) < 0)
		return -EINVAL;
	b->name = strdup(name);
	b->agent = strdup(agent);
	b->tmpl = strdup(tmpl);
	b->tmpl_tag = strdup(tag);
	b->workdir = strdup(workdir);
	b->cpus = (uint32_t)cpus;
	b->memory = (uint64_t)memory;
	b->disk = (uint64_t)disk;
	b->created = b->used = created;
	b->no_network = json_is_false(json_object_get(j, "network")); /* older ones say nothing */
	b->made = true;
	return b->name && b->agent && b->tmpl && b->tmpl_tag && b->workdir ? 0 : -ENOMEM;
}

int state_copy_read(struct state *s, const char *id, struct sandbox *ret)
{
	struct sandbox b = { 0 };
	char path[300];
	json_t *j;
	int r;

	(void)snprintf(path, sizeof(path), "%.255s/sandbox.json", id);
	j = state_json_read(s->boxes_fd, path);
	if (!j)
		return -ENOENT;
	r = take(j, &b);
	json_decref(j);
	if (r == 0 && !streq(b.id, id))
		r = -EINVAL;
	if (r < 0) {
		sandbox_done(&b);
		return r;
	}
	*ret = b;
	return 0;
}

static void put_setting(void *user, const char *key, const char *value)
{
	(void)json_object_set_new(user, key, json_string(value));
}

int state_settings_copy(struct state *s, struct err *e)
{
	json_t *j = json_object();
	int r;

	if (!j)
		return err_errno(e, -ENOMEM, "cannot store the settings");
	r = state_each_setting(s, put_setting, j, e);
	if (r < 0) {
		json_decref(j);
		return r;
	}
	r = state_json_write(s->dir_fd, "settings.json", j);
	return r < 0 ? err_errno(e, r, "cannot write %s/settings.json", s->dir) : 0;
}

int state_settings_restore(struct state *s)
{
	json_t *j = state_json_read(s->dir_fd, "settings.json"), *v;
	struct err e = { 0 };
	const char *key;
	int r = 0;

	if (!json_is_object(j)) {
		json_decref(j);
		return -ENOENT;
	}
	json_object_foreach(j, key, v)
	{
		const struct setting *known = setting_find(key, &e);
		const char *text = json_string_value(v);

		if (known && text && setting_check(known, text, &e) == 0)
			r = state_setting_put(s, known->key, text, &e);
		if (r < 0)
			break;
	}
	json_decref(j);
	return r;
}
