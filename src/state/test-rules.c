/* Network rules: they are kept, and the loss of the database does not lose or open anything. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "io/fd.h"
#include "state/rules.h"
#include "sys/dirs.h"

static char root[] = "/tmp/test-bac-rules-XXXXXX";

static struct state *must_open(void)
{
	struct buf notes = BUF_INIT(STATE_NOTES_MAX);
	struct err e = { 0 };
	struct state *s = NULL;

	if (state_open(root, &s, &notes, &e) < 0)
		(void)fprintf(stderr, "%s\n", e.msg);
	check(s);
	buf_done(&notes);
	return s;
}

static void make_box(struct state *s, const char *name, char id[STATE_ID_MAX + 1])
{
	struct sandbox b = { .name = strdup(name),
			     .agent = strdup("shell"),
			     .tmpl = strdup("abc"),
			     .tmpl_tag = strdup("default"),
			     .workdir = strdup("/w"),
			     .cpus = 1,
			     .memory = 1 << 28,
			     .disk = 1 << 30,
			     .no_network = true };
	struct err e = { 0 };
	int lock = -1;

	check(state_add(s, &b, &lock, &e) == 0 && state_made(s, &b, &e) == 0);
	(void)fd_close(lock);
	memcpy(id, b.id, sizeof(b.id));
	sandbox_done(&b);
}

static void append(struct box_rules *r, const char *sandbox, bool allow, const char *resource,
		   const char *method)
{
	struct net_rule rule = { .scope = sandbox[0] ? NET_SANDBOX : NET_GLOBAL,
				 .allow = allow,
				 .resource = resource,
				 .method = method };
	struct err e = { 0 };

	check(rules_append(r, &rule, sandbox, "added", "", &e) == 0);
}

static size_t count(struct state *s, const char *sandbox)
{
	struct box_rules r = { 0 };
	struct err e = { 0 };
	size_t n;

	check(rules_list(s, sandbox, &r, &e) == 0);
	n = r.n;
	rules_done(&r);
	return n;
}

static void check_text(struct state *s, const char *sandbox, const char *host, uint8_t verdict)
{
	struct buf out = BUF_INIT(NET_TEXT_MAX);
	_cleanup_(net_policy_freep) struct net_policy *p = NULL;
	struct host h;
	struct net_request q = { .host = &h, .port = 443 };
	struct err e = { 0 };

	check(rules_text(s, sandbox, &out, &e) == 0);
	check(net_text_parse((const char *)buf_data(&out), out.n, &p, &e) == 0);
	check(host_parse(&h, host, strlen(host), &e) == 0);
	check(net_decide(p, &q).verdict == verdict);
	buf_done(&out);
}

static void test_basics(struct state *s, const char *one, const char *two)
{
	struct buf out = BUF_INIT(NET_TEXT_MAX);
	struct box_rules r = { 0 }, gone = { 0 };
	_free_ char *preset = NULL;
	struct err e = { 0 };

	check(rules_preset(s, &preset, &e) == 0 && !preset);
	check(rules_text(s, "", &out, &e) == -ENOENT && strstr(e.msg, "bac policy init balanced"));
	append(&r, "", true, "A.x:443,80", NULL);
	check(streq(r.v[0].resource, "a.x:80,443") && r.v[0].path[0] == '\0');
	check(rules_init(s, "balanced", &r, &e) == 0);
	check(rules_init(s, "deny-all", &r, &e) == -EEXIST && strstr(e.msg, "already: balanced"));
	rules_done(&r);
	check(rules_preset(s, &preset, &e) == 0 && streq(preset, "balanced"));
	append(&r, one, true, "b.x", "get");
	check(streq(r.v[0].method, "GET") && streq(r.v[0].path, "/**"));
	append(&r, one, false, "a.x", NULL);
	append(&r, two, true, "c.x", NULL);
	check(rules_add(s, &r, &e) == 0);
	check(count(s, NULL) == 4 && count(s, "") == 1 && count(s, one) == 2 && count(s, two) == 1);
	check_text(s, one, "a.x", NET_DENY);
	check_text(s, two, "a.x", NET_ALLOW);
	check_text(s, one, "b.x", NET_NEEDS_HTTP);
	check_text(s, two, "b.x", NET_DENY);
	check(rules_list(s, two, &gone, &e) == 0);
	check(rules_remove(s, &gone, &e) == 0 && count(s, two) == 0);
	rules_done(&gone);
	rules_done(&r);
	buf_done(&out);
}

static void test_refused(void)
{
	struct box_rules r = { 0 };
	struct err e = { 0 };

	check(rules_append(&r, &(struct net_rule) { .scope = NET_GLOBAL, .resource = "a..b" }, "",
			   "added", "", &e) == -EINVAL);
	check(strstr(e.msg, "column 3"));
	check(rules_append(&r,
			   &(struct net_rule) { .scope = NET_GLOBAL, .resource = "a", .path = "/" },
			   "", "added", "", &e) == -EINVAL);
	check(r.n == 0);
	rules_done(&r);
}

static void test_too_many(struct state *s, const char *one)
{
	struct box_rules r = { 0 };
	struct err e = { 0 };
	size_t i, before = count(s, NULL);

	for (i = 0; i < NET_RULES_MAX; i++)
		append(&r, one, true, "d.x", NULL);
	check(rules_add(s, &r, &e) == -E2BIG && count(s, NULL) == before);
	rules_done(&r);
}

/* A copy that cannot be written leaves the rules as they were. */
static void test_no_room(struct state *s)
{
	struct box_rules r = { 0 };
	struct err e = { 0 };
	char path[160], away[160];
	size_t before = count(s, NULL);

	check(snprintf(path, sizeof(path), "%s/policy.json", root) > 0);
	check(snprintf(away, sizeof(away), "%s/away", root) > 0);
	check(rename(path, away) == 0 && mkdir(path, 0700) == 0);
	append(&r, "", true, "e.x", NULL);
	check(rules_add(s, &r, &e) < 0 && strstr(e.msg, "policy.json"));
	check(count(s, NULL) == before);
	check(rules_reset(s, &e) < 0 && count(s, NULL) == before);
	check(rmdir(path) == 0 && rename(away, path) == 0);
	rules_done(&r);
}

static void forget_db(void)
{
	static const char *const files[] = { "bac.db", "bac.db-wal", "bac.db-shm" };
	char path[128];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		check(snprintf(path, sizeof(path), "%s/%s", root, files[i]) > 0);
		(void)unlink(path);
	}
}

static void test_rebuilt(const char *one)
{
	struct sandbox b = { 0 };
	struct err e = { 0 };
	struct state *s;

	forget_db();
	s = must_open();
	check(count(s, NULL) == 3 && count(s, "") == 1 && count(s, one) == 2);
	check_text(s, one, "a.x", NET_DENY);
	check(state_get(s, one, &b, &e) == 0 && b.no_network);
	sandbox_done(&b);
	state_free(s);
}

static void cut_copy(const char *path, size_t len)
{
	_free_ char *text = NULL;
	size_t n;

	check(fd_read_file(AT_FDCWD, path, 1 << 20, &text, &n) == 0 && n > len);
	check(fd_replace_file(AT_FDCWD, path, 0600, text, len) == 0);
}

/* A copy that is cut closes, at whichever byte. */
static void test_damaged_copies(const char *one)
{
	struct buf out = BUF_INIT(NET_TEXT_MAX);
	struct err e = { 0 };
	char own[160], global[160];
	struct state *s;

	check(snprintf(own, sizeof(own), "%s/sandboxes/%s/policy.json", root, one) > 0);
	check(snprintf(global, sizeof(global), "%s/policy.json", root) > 0);
	cut_copy(own, 40);
	forget_db();
	s = must_open();
	check(count(s, one) == 1);
	check_text(s, one, "b.x", NET_DENY);
	check_text(s, one, "a.x", NET_DENY);
	state_free(s);
	cut_copy(global, 40);
	forget_db();
	s = must_open();
	check(rules_text(s, one, &out, &e) == -ENOENT);
	state_free(s);
	buf_done(&out);
}

static void test_removed(const char *one)
{
	struct sandbox b = { 0 };
	struct err e = { 0 };
	struct state *s = must_open();
	struct box_rules r = { 0 };

	append(&r, one, true, "x.x", NULL);
	check(rules_add(s, &r, &e) == 0 && count(s, one));
	rules_done(&r);
	check(state_get(s, one, &b, &e) == 0 && state_remove(s, &b, &e) == 0);
	check(count(s, one) == 0);
	check(rules_reset(s, &e) == 0 && count(s, NULL) == 0);
	sandbox_done(&b);
	state_free(s);
}

/* A state of the version before rules: a sandbox in it has a network, and nothing is allowed. */
static void test_upgrade(void)
{
	static const char old[] =
		"CREATE TABLE sandbox (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, agent TEXT "
		"NOT NULL, tmpl TEXT NOT NULL, tmpl_tag TEXT NOT NULL, workdir TEXT NOT NULL, cpus "
		"INTEGER NOT NULL, memory INTEGER NOT NULL, disk INTEGER NOT NULL, created INTEGER "
		"NOT NULL, used INTEGER NOT NULL, made INTEGER NOT NULL, shares TEXT NOT NULL) "
		"STRICT;"
		"CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;"
		"INSERT INTO sandbox VALUES ('0123456789ab', 'old', 'shell', 't', 't', '/w', 1, 1, "
		"1, 1, 1, 1, '{\"rules\":[],\"shares\":[]}'); PRAGMA user_version = 2;";
	struct buf out = BUF_INIT(NET_TEXT_MAX);
	struct err e = { 0 };
	struct sandbox b = { 0 };
	struct state *s;
	char db[128];
	sqlite3 *raw;

	forget_db();
	check(snprintf(db, sizeof(db), "%s/bac.db", root) > 0);
	check(sqlite3_open(db, &raw) == SQLITE_OK);
	check(sqlite3_exec(raw, old, NULL, NULL, NULL) == SQLITE_OK);
	check(sqlite3_close(raw) == SQLITE_OK);
	s = must_open();
	check(state_get(s, "old", &b, &e) == 0 && !b.no_network);
	check(rules_text(s, b.id, &out, &e) == -ENOENT);
	sandbox_done(&b);
	state_free(s);
}

int main(void)
{
	char one[STATE_ID_MAX + 1], two[STATE_ID_MAX + 1];
	struct state *s;
	struct err e = { 0 };
	int lock;

	check(mkdtemp(root));
	s = must_open();
	check(rules_lock(s, &lock, &e) == 0 && fd_close(lock) == -1);
	make_box(s, "one", one);
	make_box(s, "two", two);
	test_basics(s, one, two);
	test_refused();
	test_too_many(s, one);
	test_no_room(s);
	state_free(s);
	test_rebuilt(one);
	test_damaged_copies(one);
	test_removed(one);
	test_upgrade();
	check(dirs_remove(AT_FDCWD, root) == 0);
	return 0;
}
