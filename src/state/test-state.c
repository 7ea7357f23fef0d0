/* The state: what it promises after crashes. */
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "io/fd.h"
#include "state/settings.h"
#include "state/state.h"
#include "sys/dirs.h"

static char root[] = "/tmp/test-bac-state-XXXXXX";

static struct state *must_open(struct buf *notes)
{
	struct err e = { 0 };
	struct state *s = NULL;

	buf_init(notes, STATE_NOTES_MAX);
	if (state_open(root, &s, notes, &e) < 0)
		fprintf(stderr, "%s\n", e.msg);
	check(s);
	return s;
}

static void add(struct state *s, const char *name, bool made)
{
	struct sandbox b = { .name = strdup(name),
			     .agent = strdup("shell"),
			     .tmpl = strdup("abc"),
			     .tmpl_tag = strdup("default"),
			     .workdir = strdup("/w"),
			     .cpus = 1,
			     .memory = 1 << 28,
			     .disk = 1 << 30 };
	struct err e = { 0 };
	int lock = -1;

	check(shares_add(&b.shares, &(struct box_share) { .path = (char *)"/p",
							  .alias = (char *)"/l",
							  .primary = true }) == 0);
	check(shares_rule(&b.shares, "hide *.key") == 0);
	check(state_add(s, &b, &lock, &e) == 0);
	check(state_is_locked(s, b.id));
	if (made)
		check(state_made(s, &b, &e) == 0);
	(void)fd_close(lock);
	check(!state_is_locked(s, b.id));
	sandbox_done(&b);
}

static bool has_shares(const struct sandbox *b)
{
	return b->shares.n == 1 && streq(b->shares.v[0].path, "/p") &&
	       streq(b->shares.v[0].alias, "/l") && b->shares.v[0].primary &&
	       !b->shares.v[0].read_only && b->shares.n_rules == 1 &&
	       streq(b->shares.rules[0], "hide *.key");
}

static size_t count(struct state *s)
{
	struct err e = { 0 };
	struct sandbox *v;
	size_t n, i;

	check(state_list(s, &v, &n, &e) == 0);
	for (i = 0; i < n; i++) {
		check(has_shares(&v[i]));
		sandbox_done(&v[i]);
	}
	free(v);
	return n;
}

static void test_basics(void)
{
	struct err e = { 0 };
	struct buf notes;
	struct state *s = must_open(&notes);
	struct sandbox b = { 0 }, twin = { .name = strdup("one"),
					   .agent = strdup("shell"),
					   .tmpl = strdup(""),
					   .tmpl_tag = strdup(""),
					   .workdir = strdup(""),
					   .cpus = 1,
					   .memory = 1,
					   .disk = 1 };
	uint64_t n;
	int lock;

	add(s, "one", true);
	check(state_add(s, &twin, &lock, &e) == -EEXIST);
	sandbox_done(&twin);
	check(state_get(s, "one", &b, &e) == 0 && b.cpus == 1 && streq(b.workdir, "/w"));
	sandbox_done(&b);
	check(state_get(s, "two", &b, &e) == -ENOENT);
	check(setting_number(s, "sandbox.idleTimeout", &n, &e) == 0 && n == 1800000);
	check(state_setting_set(s, "vm.requireKvm", "true", &e) == 0);
	check(!setting_find("vm.requireKwm", &e) && strstr(e.msg, "vm.requireKvm"));
	check(setting_check(setting_find("vm.accel", &e), "xen", &e) < 0);
	state_free(s);
	buf_done(&notes);
}

static void test_rules(void)
{
	char text[] = "  allow .env;; protect   My  File ;hide *.key ", empty[] = "";
	struct err e = { 0 };

	setting_rules_lines(text);
	check(streq(text, "allow .env\n\nprotect My  File\nhide *.key"));
	setting_rules_lines(empty);
	check(!*empty);
	check(setting_check(setting_find("workspace.rules", &e), "allow a; hide b*", &e) == 0);
	check(setting_check(setting_find("workspace.rules", &e), "hide ../x", &e) == -EINVAL);
}

static void test_network_settings(void)
{
	struct err e = { 0 };
	const struct setting *s = setting_find("net.connectTo", &e);

	check(setting_check(s, "", &e) == 0);
	check(setting_check(s, "a.x:443=127.0.0.1:8443, b.x:80=[::1]:8080", &e) == 0);
	check(setting_check(s, "a.x=127.0.0.1:8443", &e) == -EINVAL);
	check(setting_check(s, "a.x:443", &e) == -EINVAL && strstr(e.msg, "HOST:PORT=ADDRESS"));
	check(setting_check(s, "a.x:443=b..c:80", &e) == -EINVAL && strstr(e.msg, "empty label"));
	check(setting_check(setting_find("audit.fileSize", &e), "1k", &e) == -EINVAL);
	check(setting_check(setting_find("audit.fileSize", &e), "64k", &e) == 0);
}

/* A creator that died leaves a row and a directory; the next open clears them away. */
static void test_half_made(void)
{
	struct buf notes;
	struct state *s = must_open(&notes);

	add(s, "half", false);
	state_free(s);
	s = must_open(&notes);
	check(strstr(buf_str(&notes), "half-made sandbox 'half'"));
	check(count(s) == 1);
	add(s, "half", true);
	check(count(s) == 2);
	state_free(s);
	buf_done(&notes);
}

static void cut(const char *db, const char *whole, size_t len)
{
	int fd = open(db, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	check(fd >= 0 && fd_write_all(fd, whole, len) == 0);
	close(fd);
}

static void forget(const char *suffix)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/bac.db%s", root, suffix);
	(void)unlink(path);
}

/* Cut the database at every length: nothing is lost, and a damage is said. */
static void test_truncated(void)
{
	char db[128];
	struct err e = { 0 };
	struct buf notes;
	struct state *s;
	_free_ char *whole = NULL;
	size_t len, at;
	uint64_t kvm;

	(void)snprintf(db, sizeof(db), "%s/bac.db", root);
	check(fd_read_file(AT_FDCWD, db, 1 << 20, &whole, &len) == 0 && len >= 4096);
	for (at = 0; at < len; at += at < 16 ? 1 : 509) {
		forget("-wal");
		forget("-shm");
		cut(db, whole, at);
		s = must_open(&notes);
		check(count(s) == 2);
		check(setting_number(s, "vm.requireKvm", &kvm, &e) == 0 && kvm == 1);
		/* cut short enough, it is simply empty, and all is found again */
		check(strstr(buf_str(&notes), "found the sandbox") ||
		      strstr(buf_str(&notes), "damaged"));
		state_free(s);
		buf_done(&notes);
	}
}

/* They change, and the change survives the loss of the database. */
static void test_shares(void)
{
	struct err e = { 0 };
	struct sandbox b = { 0 };
	struct buf notes;
	struct state *s = must_open(&notes);

	check(state_get(s, "one", &b, &e) == 0);
	shares_take_out(&b.shares, 0);
	check(state_shares_set(s, &b, &e) == 0);
	sandbox_done(&b);
	check(state_get(s, "one", &b, &e) == 0 && b.shares.n == 0 && b.shares.n_rules == 1);
	sandbox_done(&b);
	state_free(s);
	buf_done(&notes);
	forget("");
	forget("-wal");
	forget("-shm");
	s = must_open(&notes);
	check(state_get(s, "one", &b, &e) == 0 && b.shares.n == 0 && b.shares.n_rules == 1);
	sandbox_done(&b);
	state_free(s);
	buf_done(&notes);
}

/* A state of the version before shares: everything is kept, and has none. */
static void test_upgrade(void)
{
	static const char old[] =
		"CREATE TABLE sandbox (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, agent TEXT "
		"NOT NULL, tmpl TEXT NOT NULL, tmpl_tag TEXT NOT NULL, workdir TEXT NOT NULL, cpus "
		"INTEGER NOT NULL, memory INTEGER NOT NULL, disk INTEGER NOT NULL, created INTEGER "
		"NOT NULL, used INTEGER NOT NULL, made INTEGER NOT NULL) STRICT;"
		"CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;"
		"INSERT INTO sandbox VALUES ('0123456789ab', 'old', 'shell', 't', 't', '/w', 1, 1, "
		"1, 1, 1, 1); PRAGMA user_version = 1;";
	struct err e = { 0 };
	struct sandbox b = { 0 };
	struct buf notes;
	struct state *s;
	char db[128];
	sqlite3 *raw;

	forget("");
	forget("-wal");
	forget("-shm");
	(void)snprintf(db, sizeof(db), "%s/bac.db", root);
	check(sqlite3_open(db, &raw) == SQLITE_OK);
	check(sqlite3_exec(raw, old, NULL, NULL, NULL) == SQLITE_OK);
	check(sqlite3_close(raw) == SQLITE_OK);
	s = must_open(&notes);
	check(state_get(s, "old", &b, &e) == 0 && b.shares.n == 0 && b.lost);
	sandbox_done(&b);
	state_free(s);
	buf_done(&notes);
}

static void test_lost_dir(void)
{
	struct err e = { 0 };
	struct sandbox b = { 0 };
	struct buf notes;
	struct state *s = must_open(&notes);

	check(state_get(s, "one", &b, &e) == 0 && !b.lost);
	check(dirs_remove(state_sandboxes_fd(s), b.id) == 0);
	sandbox_done(&b);
	state_free(s);
	s = must_open(&notes);
	check(state_get(s, "one", &b, &e) == 0 && b.lost);
	check(state_remove(s, &b, &e) == 0);
	sandbox_done(&b);
	check(count(s) == 1);
	add(s, "one", true);
	state_free(s);
	buf_done(&notes);
}

/* Many commands at once on a machine that has no state yet: each gets it. */
static void first_together(void)
{
	enum { ROUNDS = 10, MANY = 24 };
	pid_t pid[MANY];
	int gate[2], status, i, round;
	char c;

	for (round = 0; round < ROUNDS; round++) {
		check(dirs_remove(AT_FDCWD, root) == 0 && mkdir(root, 0700) == 0);
		check(pipe2(gate, O_CLOEXEC) == 0);
		for (i = 0; i < MANY; i++) {
			pid[i] = fork();
			check(pid[i] >= 0);
			if (pid[i] == 0) {
				struct err e = { 0 };
				struct state *s = NULL;
				struct buf notes;

				close(gate[1]);
				buf_init(&notes, STATE_NOTES_MAX);
				(void)!read(gate[0], &c, 1); /* until the gate is closed */
				if (state_open(root, &s, &notes, &e) < 0)
					fprintf(stderr, "%s\n", e.msg);
				_exit(s ? 0 : 1);
			}
		}
		close(gate[0]);
		close(gate[1]);
		for (i = 0; i < MANY; i++)
			check(waitpid(pid[i], &status, 0) == pid[i] && status == 0);
	}
}

int main(void)
{
	check(mkdtemp(root));
	first_together();
	test_basics();
	test_rules();
	test_network_settings();
	test_half_made();
	test_truncated();
	test_lost_dir();
	test_shares();
	test_upgrade();
	check(dirs_remove(AT_FDCWD, root) == 0);
	return 0;
}
