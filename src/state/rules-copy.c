/* The copies of the network rules: JSON, read back as if it were foreign.
 *
 * A copy of which anything is wrong must not open what it may have forbidden. If it is everybody's, no preset counts as
 * chosen, and so nothing is allowed. If it is a sandbox's, that sandbox gets one rule that denies everything. */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "state/priv.h"
#include "state/rules.h"

/* The folder of a copy, and its name there. */
static int place(struct state *s, const char *sandbox, char name[64])
{
	if (sandbox[0])
		(void)snprintf(name, 64, "%s/policy.json", sandbox);
	else
		(void)snprintf(name, 64, "policy.json");
	return sandbox[0] ? s->boxes_fd : s->dir_fd;
}

static json_t *rule_json(const struct box_rule *v)
{
	return json_pack("{s:s, s:b, s:s, s:s, s:s, s:s, s:s, s:I}", "id", v->id, "allow", v->allow,
			 "resource", v->resource, "method", v->method, "path", v->path, "via",
			 v->via, "group", v->group, "created", (json_int_t)v->created);
}

int rules_copy(struct state *s, const char *sandbox, struct err *e)
{
	json_t *j = json_object(), *list = json_array();
	struct box_rules rules = { 0 };
	_free_ char *preset = NULL;
	char name[64];
	int r, dir = place(s, sandbox, name);
	size_t i;

	r = rules_list(s, sandbox, &rules, e);
	if (r == 0 && !sandbox[0])
		r = rules_preset(s, &preset, e);
	for (i = 0; i < rules.n; i++)
		(void)json_array_append_new(list, rule_json(&rules.v[i]));
	if (r == 0 && json_array_size(list) != rules.n)
		r = err_errno(e, -ENOMEM, "cannot copy the network rules");
	(void)json_object_set_new(j, "rules", list);
	if (preset)
		(void)json_object_set_new(j, "preset", json_string(preset));
	rules_done(&rules);
	if (r < 0) {
		json_decref(j);
		return r;
	}
	r = state_json_write(dir, name, j);
	if (r == -ENOENT && sandbox[0]) /* its directory is gone, and so are its rules */
		return 0;
	return r < 0 ? err_errno(e, r, "cannot write %s/%s%s", s->dir,
				 sandbox[0] ? "sandboxes/" : "", name)
		     : 0;
}

static bool is_id(const char *s)
{
	return strlen(s) == RULE_ID_MAX && strspn(s, "0123456789abcdef-") == RULE_ID_MAX;
}

static int take_rule(json_t *j, const char *sandbox, struct box_rules *ret)
{
	const char *id, *resource, *method, *path, *via, *group;
	json_int_t created;
	struct err e;
	int allow, r;

	if (json_unpack(j, "{s:s, s:b, s:s, s:s, s:s, s:s, s:s, s:I}", "id", &id, "allow", &allow,
			"resource", &resource, "method", &method, "path", &path, "via", &via,
			"group", &group, "created", &created) < 0 ||
	    !is_id(id))
		return -EINVAL;
	via = streq(via, "default")       ? "default"
	      : streq(via, "provisioned") ? "provisioned"
					  : "added";
	r = rules_append(ret,
			 &(struct net_rule) { .id = id,
					      .scope = sandbox[0] ? NET_SANDBOX : NET_GLOBAL,
					      .allow = allow,
					      .resource = resource,
					      .method = method[0] ? method : NULL,
					      .path = path[0] ? path : NULL },
			 sandbox, via, group, &e);
	if (r == 0)
		ret->v[ret->n - 1].created = created;
	return r;
}

static int take_all(json_t *j, const char *sandbox, struct box_rules *ret)
{
	json_t *list = json_object_get(j, "rules");
	size_t i, n = json_array_size(list);
	int r = json_is_array(list) && n <= NET_RULES_MAX ? 0 : -EINVAL;

	for (i = 0; i < n && r == 0; i++)
		r = take_rule(json_array_get(list, i), sandbox, ret);
	return r;
}

static int close_down(const char *sandbox, struct box_rules *ret, struct err *e)
{
	rules_done(ret);
	if (!sandbox[0])
		return 0;
	return rules_append(ret, &(struct net_rule) { .scope = NET_SANDBOX, .resource = "**" },
			    sandbox, "added", "damaged-copy", e);
}

int rules_restore(struct state *s, const char *sandbox, struct err *e)
{
	struct box_rules rules = { 0 };
	const char *preset = NULL;
	json_t *j;
	char name[64];
	int dir = place(s, sandbox, name), r = 0;

	if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return 0;
	j = state_json_read(dir, name);
	if (!sandbox[0])
		preset = json_string_value(json_object_get(j, "preset"));
	if (preset && !net_preset_find(preset))
		preset = NULL;
	if (take_all(j, sandbox, &rules) < 0) {
		preset = NULL;
		r = close_down(sandbox, &rules, e);
	}
	if (r == 0 && (preset || rules.n))
		r = rules_put_back(s, preset, &rules, e);
	rules_done(&rules);
	json_decref(j);
	return r;
}
