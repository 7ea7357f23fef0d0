/* Network rules in the database. A change of several rows is one transaction, and the copies are written within it: a disk that is full
 * leaves everything as it was. */
#include "state/rules.h"

#include <stdio.h>
#include <sys/random.h>
#include <time.h>

#include "base/text.h"
#include "state/priv.h"
#include "sys/lock.h"

enum { RULES_WAIT_MS = 120000 };

static void rule_done(struct box_rule *r)
{
	free(r->resource);
	free(r->method);
	free(r->path);
	free(r->group);
}

void rules_done(struct box_rules *r)
{
	while (r->n)
		rule_done(&r->v[--r->n]);
	free(r->v);
	*r = (struct box_rules) { 0 };
}

/* A random UUID, RFC 9562 version 4. */
static int new_id(char ret[RULE_ID_MAX + 1])
{
	uint8_t b[16];

	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		return -errno;
	b[6] = (uint8_t)(0x40 | (b[6] & 0x0f));
	b[8] = (uint8_t)(0x80 | (b[8] & 0x3f));
	(void)snprintf(ret, RULE_ID_MAX + 1,
		       "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
		       b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		       b[13], b[14], b[15]);
	return 0;
}

static int grow(struct box_rules *r)
{
	struct box_rule *v = reallocarray(r->v, r->n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	r->v = v;
	v[r->n] = (struct box_rule) { 0 };
	return 0;
}

/* What the builder takes is right; what it keeps is canonical. */
static int check_rule(const struct net_rule *rule, char resource[NET_RESOURCE_MAX + 1],
		      char method[16], struct err *e)
{
	_cleanup_(net_builder_freep) struct net_builder *b = NULL;
	int r = net_builder_new(&b);

	if (r < 0)
		return err_errno(e, r, "cannot check a rule");
	r = net_builder_add(b, rule, e);
	if (r == 0)
		r = net_resource_check(rule->resource, resource, NET_RESOURCE_MAX + 1, e);
	method[0] = '\0';
	if (r == 0 && rule->method)
		r = net_method_check(rule->method, method, 16, e);
	return r;
}

int rules_append(struct box_rules *r, const struct net_rule *rule, const char *sandbox,
		 const char *via, const char *group, struct err *e)
{
	char resource[NET_RESOURCE_MAX + 1], method[16];
	struct net_rule checked = *rule;
	struct box_rule *to;
	int ret = grow(r);

	if (ret < 0)
		return err_errno(e, ret, "cannot keep a rule");
	to = &r->v[r->n];
	ret = new_id(to->id);
	if (ret < 0)
		return err_errno(e, ret, "cannot keep a rule");
	if (text_copy(to->sandbox, sizeof(to->sandbox), sandbox) < 0)
		return err_set(e, -EINVAL, "'%.40s' is no sandbox", sandbox);
	if (!checked.id)
		checked.id = to->id;
	ret = check_rule(&checked, resource, method, e);
	if (ret < 0)
		return ret;
	if (rule->id)
		(void)snprintf(to->id, sizeof(to->id), "%s", rule->id);
	to->allow = rule->allow;
	to->via = via;
	to->created = time(NULL);
	to->resource = strdup(resource);
	to->method = strdup(method);
	to->path = strdup(rule->path ? rule->path : rule->method ? "/**" : "");
	to->group = strdup(group);
	r->n++; /* freed with the others, even if one is NULL */
	return to->resource && to->method && to->path && to->group
		       ? 0
		       : err_errno(e, -ENOMEM, "cannot keep a rule");
}

int rules_lock(const struct state *s, int *ret_fd, struct err *e)
{
	int r = lock_take_within(s->dir_fd, "policy.lock", RULES_WAIT_MS, ret_fd);

	return r < 0 ? err_errno(e, r, "cannot change the network policy: %s/policy.lock", s->dir)
		     : 0;
}

/* ---- reading ---- */
int rules_preset(struct state *s, char **ret, struct err *e)
{
	_stmt_ sqlite3_stmt *st = NULL;
	char *v = NULL;
	int r = state_prepare(s, "SELECT preset FROM policy", &st, e);

	if (r < 0)
		return r;
	r = sqlite3_step(st);
	if (r == SQLITE_ROW) {
		v = state_column(st, 0);
		if (!v)
			return err_errno(e, -ENOMEM, "cannot read the network policy");
	} else if (r != SQLITE_DONE) {
		return state_fault(s, "read the network policy", e);
	}
	*ret = v;
	return 0;
}

static const char *const vias[] = { "default", "added", "provisioned" };

static const char *via_of(const char *text)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(vias); i++)
		if (streq(vias[i], text))
			return vias[i];
	return "added";
}

static int read_rule(sqlite3_stmt *st, struct box_rules *r)
{
	struct box_rule *to;

	if (grow(r) < 0)
		return -ENOMEM;
	to = &r->v[r->n];
	(void)snprintf(to->id, sizeof(to->id), "%s", (const char *)sqlite3_column_text(st, 0));
	(void)snprintf(to->sandbox, sizeof(to->sandbox), "%s",
		       (const char *)sqlite3_column_text(st, 1));
	to->allow = sqlite3_column_int(st, 2);
	to->resource = state_column(st, 3);
	to->method = state_column(st, 4);
	to->path = state_column(st, 5);
	to->via = via_of((const char *)sqlite3_column_text(st, 6));
	to->group = state_column(st, 7);
	to->created = sqlite3_column_int64(st, 8);
	r->n++;
	return to->resource && to->method && to->path && to->group ? 0 : -ENOMEM;
}

int rules_list(struct state *s, const char *sandbox, struct box_rules *ret, struct err *e)
{
	_stmt_ sqlite3_stmt *st = NULL;
	struct box_rules rules = { 0 };
	int r, k;

	r = state_prepare(s,
			  "SELECT id, sandbox, allow, resource, method, path, via, grp, created "
			  "FROM rule WHERE ?1 IS NULL OR sandbox = ?1 ORDER BY rowid",
			  &st, e);
	if (r < 0)
		return r;
	(void)sqlite3_bind_text(st, 1, sandbox, -1, SQLITE_STATIC);
	while ((k = sqlite3_step(st)) == SQLITE_ROW && r == 0)
		if (read_rule(st, &rules) < 0)
			r = err_errno(e, -ENOMEM, "cannot read the network rules");
	if (r == 0 && k != SQLITE_DONE)
		r = state_fault(s, "read the network rules", e);
	if (r < 0) {
		rules_done(&rules);
		return r;
	}
	*ret = rules;
	return 0;
}

bool rules_is_kit(const struct box_rule *r)
{
	return r->sandbox[0] && starts_with(r->group, "kit:");
}

static int text_of(struct buf *out, const struct box_rules *rules)
{
	size_t i;
	int r = 0;

	for (i = 0; i < rules->n && r == 0; i++) {
		const struct box_rule *v = &rules->v[i];
		struct net_rule one = { .id = v->id,
					.scope = rules_is_kit(v) ? NET_KIT
						 : v->sandbox[0] ? NET_SANDBOX
								 : NET_GLOBAL,
					.allow = v->allow,
					.resource = v->resource,
					.method = v->method[0] ? v->method : NULL,
					.path = v->path[0] ? v->path : NULL };

		r = net_text_rule(out, &one);
	}
	return r;
}

int rules_text(struct state *s, const char *sandbox, struct buf *out, struct err *e)
{
	struct box_rules global = { 0 }, own = { 0 };
	_free_ char *preset = NULL;
	int r = rules_preset(s, &preset, e);

	if (r == 0 && !preset)
		r = err_set(e, -ENOENT,
			    "the network policy has not been chosen; run: bac policy init balanced "
			    "(or allow-all, deny-all)");
	if (r == 0)
		r = rules_list(s, "", &global, e);
	if (r == 0 && sandbox[0])
		r = rules_list(s, sandbox, &own, e);
	if (r < 0)
		goto out;
	r = net_text_begin(out);
	if (r == 0)
		r = text_of(out, &global);
	if (r == 0)
		r = text_of(out, &own);
	if (r == 0)
		r = net_text_end(out, global.n + own.n);
	if (r < 0)
		err_errno(e, r, "cannot write the network policy");
out:
	rules_done(&global);
	rules_done(&own);
	return r;
}

/* ---- changing ---- */
static int exec(struct state *s, const char *sql, struct err *e)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : state_fault(s, "change the network policy", e);
}

static int end_with(struct state *s, int r, struct err *e)
{
	if (r == 0)
		r = exec(s, "COMMIT", e);
	if (r < 0)
		(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	return r;
}

static int insert(struct state *s, const struct box_rule *v, struct err *e)
{
	_stmt_ sqlite3_stmt *st = NULL;
	int r;

	r = state_prepare(s,
			  "INSERT OR REPLACE INTO rule (id, sandbox, allow, resource, method, "
			  "path, via, grp, created) VALUES (?,?,?,?,?,?,?,?,?)",
			  &st, e);
	if (r < 0)
		return r;
	(void)sqlite3_bind_text(st, 1, v->id, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(st, 2, v->sandbox, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int(st, 3, v->allow);
	(void)sqlite3_bind_text(st, 4, v->resource, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(st, 5, v->method, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(st, 6, v->path, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(st, 7, v->via, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(st, 8, v->group, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(st, 9, v->created);
	return state_step(s, st, "store a network rule", e);
}

/* How many rules hold for the sandbox that has the most. */
static int check_count(struct state *s, struct err *e)
{
	_stmt_ sqlite3_stmt *st = NULL;
	int r;

	r = state_prepare(s,
			  "SELECT (SELECT count(*) FROM rule WHERE sandbox = '') + "
			  "ifnull((SELECT max(n) FROM (SELECT count(*) AS n FROM rule "
			  "WHERE sandbox <> '' GROUP BY sandbox)), 0)",
			  &st, e);
	if (r < 0)
		return r;
	if (sqlite3_step(st) != SQLITE_ROW)
		return state_fault(s, "count the network rules", e);
	return sqlite3_column_int64(st, 0) <= NET_RULES_MAX
		       ? 0
		       : err_set(e, -E2BIG,
				 "a sandbox has at most %d network rules; remove some with 'bac "
				 "policy rm'",
				 NET_RULES_MAX);
}

/* The copies of those that the rules are for. */
static int copy_for(struct state *s, const struct box_rules *rules, struct err *e)
{
	size_t i, k;
	int r = 0;

	for (i = 0; i < rules->n && r == 0; i++) {
		for (k = 0; k < i && !streq(rules->v[k].sandbox, rules->v[i].sandbox); k++)
			;
		if (k == i)
			r = rules_copy(s, rules->v[i].sandbox, e);
	}
	return r;
}

static int insert_all(struct state *s, const struct box_rules *more, struct err *e)
{
	size_t i;
	int r = 0;

	for (i = 0; i < more->n && r == 0; i++)
		r = insert(s, &more->v[i], e);
	return r == 0 ? check_count(s, e) : r;
}

int rules_add(struct state *s, const struct box_rules *more, struct err *e)
{
	int r = exec(s, "BEGIN IMMEDIATE", e);

	if (r < 0)
		return r;
	r = insert_all(s, more, e);
	if (r == 0)
		r = copy_for(s, more, e);
	return end_with(s, r, e);
}

static int change_one(struct state *s, const char *sql, const char *key, struct err *e)
{
	_stmt_ sqlite3_stmt *st = NULL;
	int r = state_prepare(s, sql, &st, e);

	if (r < 0)
		return r;
	(void)sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
	return state_step(s, st, "change the network rules", e);
}

int rules_remove(struct state *s, const struct box_rules *gone, struct err *e)
{
	size_t i;
	int r = exec(s, "BEGIN IMMEDIATE", e);

	if (r < 0)
		return r;
	for (i = 0; i < gone->n && r == 0; i++)
		r = change_one(s, "DELETE FROM rule WHERE id = ?", gone->v[i].id, e);
	if (r == 0)
		r = copy_for(s, gone, e);
	return end_with(s, r, e);
}

int rules_forget(struct state *s, const char *sandbox, struct err *e)
{
	return change_one(s, "DELETE FROM rule WHERE sandbox = ?", sandbox, e);
}

int rules_init(struct state *s, const char *preset, const struct box_rules *rules, struct err *e)
{
	_free_ char *old = NULL;
	int r = exec(s, "BEGIN IMMEDIATE", e);

	if (r < 0)
		return r;
	r = rules_preset(s, &old, e);
	if (r == 0 && old)
		r = err_set(e, -EEXIST,
			    "the network policy was chosen already: %s; change it with 'bac policy "
			    "allow' and 'deny', or start anew with 'bac policy reset'",
			    old);
	if (r == 0)
		r = change_one(s, "INSERT INTO policy (one, preset) VALUES (1, ?)", preset, e);
	if (r == 0)
		r = insert_all(s, rules, e);
	if (r == 0)
		r = rules_copy(s, "", e);
	return end_with(s, r, e);
}

/* Every sandbox that has rules gets an empty copy. */
static int copy_all(struct state *s, const struct box_rules *old, struct err *e)
{
	int r = rules_copy(s, "", e);

	return r == 0 ? copy_for(s, old, e) : r;
}

int rules_reset(struct state *s, struct err *e)
{
	struct box_rules old = { 0 };
	int r = exec(s, "BEGIN IMMEDIATE", e);

	if (r < 0)
		return r;
	r = rules_list(s, NULL, &old, e);
	if (r == 0)
		r = exec(s, "DELETE FROM rule; DELETE FROM policy", e);
	if (r == 0)
		r = copy_all(s, &old, e);
	r = end_with(s, r, e);
	rules_done(&old);
	return r;
}

int rules_put_back(struct state *s, const char *preset, const struct box_rules *rules,
		   struct err *e)
{
	int r = exec(s, "BEGIN IMMEDIATE", e);

	if (r < 0)
		return r;
	if (preset)
		r = change_one(s, "INSERT OR REPLACE INTO policy (one, preset) VALUES (1, ?)",
			       preset, e);
	if (r == 0)
		r = insert_all(s, rules, e);
	return end_with(s, r, e);
}
