/* The store: what goes in comes out, who may read the file, what becomes of a damaged one, many at once; and the same in a Secret Service of
 * our own where there is a session bus to be had. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "io/fd.h"
#include "secrets/priv.h"
#include "sys/dirs.h"
#include "sys/spawn.h"

static char top[] = "/tmp/test-bac-store-XXXXXX";
static const char *vault;
static char *self;

/* ---- helpers ---- */
static char *fresh(const char *name)
{
	char *dir = dirs_join(top, name);

	check(dir);
	return dir;
}

static struct store *open_as(const char *dir, const char *choice)
{
	_free_ char *notice = NULL;
	struct store *s = NULL;
	struct err e;
	int r = store_open(dir, choice, &s, &notice, &e);

	if (r < 0)
		(void)fprintf(stderr, "%s\n", e.msg);
	check(r == 0);
	free(s->vault);
	s->vault = strdup(vault);
	return s;
}

static int put(struct store *s, const char *key, const char *value, size_t n, struct err *e)
{
	struct store_entry entry = { .key = (char *)key, .how = STORE_VALUE };

	return store_put(s, &entry, value, n, e);
}

static void check_value(struct store *s, const char *key, const char *want, size_t n)
{
	struct store_entry entry = { 0 };
	char *value;
	size_t got;
	struct err e;

	check(store_get(s, key, &entry, &value, &got, &e) == 0);
	check(got == n && value && !memcmp(value, want, n) && !value[n]);
	check(streq(entry.key, key) && entry.how == STORE_VALUE && entry.created > 1600000000);
	store_value_free(value, got);
	store_entry_done(&entry);
}

static void write_file(const char *path, const char *text)
{
	check(fd_replace_file(AT_FDCWD, path, 0600, text, strlen(text)) == 0);
}

/* ---- both kinds ---- */
static void values(struct store *s)
{
	char big[STORE_VALUE_MAX + 1];
	struct err e;
	size_t i, n;

	for (i = 0; i < sizeof(big); i++)
		big[i] = (char)(i % 255 + 1);
	for (n = 1; n < 40; n++) {
		check(put(s, "global/service/a", big, n, &e) == 0);
		check_value(s, "global/service/a", big, n);
		if (s->kind == &store_service && n > 4)
			break;
	}
	check(put(s, "global/service/a", big, STORE_VALUE_MAX, &e) == 0);
	check_value(s, "global/service/a", big, STORE_VALUE_MAX);
	check(put(s, "global/service/a", big, STORE_VALUE_MAX + 1, &e) == -EINVAL);
	check(put(s, "global/service/a", "", 0, &e) == -EINVAL);
	check(put(s, "global/service/a", "a\0b", 3, &e) == -EINVAL);
	check(put(s, "global/other/a", "a", 1, &e) == -EINVAL);
	check(put(s, "global/service/a b", "a", 1, &e) == -EINVAL);
	check(put(s, "global/service/", "a", 1, &e) == -EINVAL);
	check(put(s, "service/a", "a", 1, &e) == -EINVAL);
	check(store_remove(s, "global/service/a", &e) == 0);
	check(store_remove(s, "global/service/a", &e) == -ENOENT);
	check(streq(e.msg, "no secret is stored as global/service/a"));
}

static void lists(struct store *s)
{
	struct store_entry command = { .key = (char *)"0123456789ab/custom/B",
				       .how = STORE_COMMAND,
				       .source = (char *)"echo x",
				       .refresh_s = 3300,
				       .meta = (char *)"{\"hosts\":[\"a.x\"]}" };
	struct store_entry *v;
	struct err e;
	size_t n;

	check(put(s, "global/service/long", "sk-abcdefghijklmnopqrstuvwxyz-9f2c", 34, &e) == 0);
	check(put(s, "0123456789ab/service/short", "fifteen-bytes-x", 15, &e) == 0);
	check(store_put(s, &command, NULL, 0, &e) == 0);
	check(store_list(s, &v, &n, &e) == 0 && n == 3);
	check(streq(v[0].key, "0123456789ab/custom/B") && streq(v[0].masked, ""));
	check(streq(v[0].source, "echo x") && v[0].refresh_s == 3300);
	check(streq(v[0].meta, "{\"hosts\":[\"a.x\"]}"));
	check(streq(v[1].key, "0123456789ab/service/short") && streq(v[1].masked, "..."));
	check(streq(v[2].key, "global/service/long") && streq(v[2].masked, "sk-a...9f2c"));
	store_list_done(v, n);
	/* what is not said stays as it was */
	command.meta = NULL;
	command.source = (char *)"echo y";
	check(store_put(s, &command, NULL, 0, &e) == 0);
	check(store_list(s, &v, &n, &e) == 0 && n == 3);
	check(streq(v[0].source, "echo y") && streq(v[0].meta, "{\"hosts\":[\"a.x\"]}"));
	store_list_done(v, n);
	check(store_remove_scope(s, "0123456789ab", &e) == 2);
	check(store_remove_scope(s, "0123456789ab", &e) == 0);
	check(store_list(s, &v, &n, &e) == 0 && n == 1);
	store_list_done(v, n);
	check(store_remove(s, "global/service/long", &e) == 0);
}

static char *resolve(struct store *s, uint8_t how, const char *source, struct err *e)
{
	struct store_entry entry = { .key = (char *)"global/custom/R",
				     .how = how,
				     .source = (char *)source,
				     .refresh_s = 7 };
	int64_t refresh = 0;
	char *value = NULL;
	size_t n = 0;

	check(store_put(s, &entry, NULL, 0, e) == 0);
	if (store_resolve(s, "global/custom/R", 500, &value, &n, &refresh, e) < 0)
		return NULL;
	check(n == strlen(value) && refresh == 7);
	return value;
}

static void resolves(struct store *s)
{
	static const struct {
		uint8_t how;
		const char *source, *want, *msg;
	} t[] = {
		{ STORE_COMMAND, "echo hello", "hello", NULL },
		{ STORE_COMMAND, "printf 'a\\n\\n'", "a\n", NULL },
		{ STORE_COMMAND, "printf 'a b\\r\\n'", "a b", NULL },
		{ STORE_COMMAND, "cat", NULL, "the command gave nothing" },
		{ STORE_COMMAND, "echo no such vault >&2; exit 3", NULL,
		  "/bin/sh failed: no such vault" },
		{ STORE_COMMAND, "sleep 60", NULL, "/bin/sh did not end within 500 ms" },
		{ STORE_COMMAND, "head -c 20000 /dev/zero | tr '\\0' x", NULL,
		  "the command gave more than" },
		{ STORE_COMMAND, "printf 'a\\0b'", NULL, "the command gave a NUL" },
		{ STORE_REF, "env:BAC_TEST_SECRET", "from-env", NULL },
		{ STORE_REF, "env:BAC_TEST_NOTHING", NULL, "the variable BAC_TEST_NOTHING is not" },
		{ STORE_REF, "file:/proc/self/no", NULL, "cannot open /proc/self/no" },
		{ STORE_REF, "file:/dev/zero", NULL, "/dev/zero is not a file" },
		{ STORE_REF, "op://v/i/f", "op read --no-newline op://v/i/f", NULL },
		{ STORE_REF, "arn:aws:secretsmanager:x",
		  "aws secretsmanager get-secret-value --secret-id arn:aws:secretsmanager:x "
		  "--query SecretString --output text",
		  NULL },
		{ STORE_REF, "vault:x", NULL, "'vault:x' is no reference" },
	};
	struct err e;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		char *value = resolve(s, t[i].how, t[i].source, &e);

		if (!streq(value, t[i].want) || (t[i].msg && !starts_with(e.msg, t[i].msg)))
			(void)fprintf(stderr, "%s: %s %s\n", t[i].source, value ? value : "-",
				      e.msg);
		check(streq(value, t[i].want) && (!t[i].msg || starts_with(e.msg, t[i].msg)));
		store_value_free(value, value ? strlen(value) : 0);
	}
	check(store_remove(s, "global/custom/R", &e) == 0);
}

static void resolve_value(struct store *s)
{
	int64_t refresh = 0;
	char *value = NULL;
	struct err e;
	size_t n;

	check(put(s, "global/service/v", "kept", 4, &e) == 0);
	check(store_resolve(s, "global/service/v", 500, &value, &n, &refresh, &e) == 0);
	check(streq(value, "kept") && n == 4 && refresh == -1);
	store_value_free(value, n);
	check(store_remove(s, "global/service/v", &e) == 0);
	check(store_resolve(s, "global/service/v", 500, &value, &n, &refresh, &e) == -ENOENT);
}

/* ---- the file ---- */
static void expect(const char *dir, int code, const char *part)
{
	_free_ char *notice = NULL;
	struct store *s = NULL;
	struct err e = { 0 };
	int r = store_open(dir, "file", &s, &notice, &e);

	if (r != code || !strstr(e.msg, part))
		(void)fprintf(stderr, "%d %s\n", r, e.msg);
	check(r == code && !s && strstr(e.msg, part));
}

static void modes(void)
{
	_free_ char *dir = fresh("modes"), *path = dirs_join(dir, "secrets.json");
	_free_ char *other = dirs_join(dir, "other");
	struct store *s = open_as(dir, "file");
	struct stat st;
	struct err e;

	check(!store_is_used(dir));
	check(put(s, "global/service/a", "value", 5, &e) == 0 && store_is_used(dir));
	check(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	check(stat(dir, &st) == 0 && (st.st_mode & 0777) == 0700);
	store_close(s);
	check(chmod(path, 0640) == 0);
	expect(dir, -EPERM, "can be opened by others (mode 640)");
	check(chmod(path, 0600) == 0 && chmod(dir, 0755) == 0);
	expect(dir, -EPERM, "can be opened by others (mode 755)");
	check(chmod(dir, 0700) == 0 && link(path, other) == 0);
	expect(dir, -EINVAL, "is not a file with one name");
	check(unlink(path) == 0 && symlink(other, path) == 0);
	expect(dir, -ELOOP, "is a link");
	check(unlink(path) == 0 && mkfifo(path, 0600) == 0);
	expect(dir, -EINVAL, "is not a file with one name");
	check(unlink(path) == 0 && rename(other, path) == 0);
	if (geteuid() == 0) {
		check(chown(path, 12345, 0) == 0);
		expect(dir, -EPERM, "belongs to user 12345");
		check(chown(path, 0, 0) == 0 && chown(dir, 12345, 0) == 0);
		expect(dir, -EPERM, "belongs to user 12345");
		check(chown(dir, 0, 0) == 0);
	}
	s = open_as(dir, "auto");
	check(streq(store_where(s), path));
	check_value(s, "global/service/a", "value", 5);
	store_close(s);
}

static void damages(void)
{
#define HEAD "{\"version\":1,\"where\":\"file\",\"entries\":{"
#define FINE "\"how\":\"value\",\"value\":\"YQ==\",\"masked\":\"...\",\"created\":5,\"meta\":{}"
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"{}",
		HEAD "}",
		"{\"version\":2,\"where\":\"file\",\"entries\":{}}",
		"{\"version\":1,\"where\":\"moon\",\"entries\":{}}",
		"{\"version\":1,\"where\":\"file\"}",
		HEAD "\"a\":{" FINE "}}}",
		HEAD "\"global/service/a\":[]}}",
		HEAD "\"global/service/a\":{}}}",
		HEAD "\"global/service/a\":{" FINE "},\"global/service/a\":{" FINE "}}}",
		HEAD "\"global/service/a\":{\"how\":\"command\",\"created\":5,\"meta\":{}}}}",
	};
	_free_ char *dir = fresh("damaged"), *path = dirs_join(dir, "secrets.json");
	struct store *s;
	struct err e;
	size_t i, n;

	check(mkdir(dir, 0700) == 0);
	s = open_as(dir, "file");
	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		_free_ char *after = NULL;

		write_file(path, texts[i]);
		expect(dir, -EINVAL, "is damaged");
		check(put(s, "global/service/a", "value", 5, &e) == -EINVAL);
		check(strstr(e.msg, "and was left as it is") && strstr(e.msg, "mv "));
		check(store_remove(s, "global/service/a", &e) == -EINVAL);
		check(fd_read_file(AT_FDCWD, path, 4096, &after, &n) == 0);
		check(streq(after, texts[i]));
	}
	/* a value that is none is found when it is asked for */
	write_file(path, HEAD "\"global/service/a\":{\"how\":\"value\",\"value\":\"Y!==\","
			      "\"masked\":\"...\",\"created\":5,\"meta\":{}}}}");
	struct store_entry entry;
	char *value;

	check(store_get(s, "global/service/a", &entry, &value, &n, &e) == -EINVAL && !value);
	store_close(s);
}

/* Twenty at once: none is lost. */
static void crowd(void)
{
	_free_ char *dir = fresh("crowd");
	char key[64];
	struct store_entry *v;
	struct store *s = open_as(dir, "file");
	struct err e;
	int i, status;
	size_t n;

	for (i = 0; i < 20; i++) {
		pid_t pid = fork();

		check(pid >= 0);
		if (pid == 0) {
			(void)snprintf(key, sizeof(key), "global/service/s%d", i);
			_exit(put(s, key, key, strlen(key), &e) == 0 ? 0 : 1);
		}
	}
	for (i = 0; i < 20; i++)
		check(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	check(store_list(s, &v, &n, &e) == 0 && n == 20);
	store_list_done(v, n);
	check_value(s, "global/service/s13", "global/service/s13", 18);
	store_close(s);
}

/* Who reads while others write finds what was there before or after. */
static void meanwhile(void)
{
	_free_ char *dir = fresh("meanwhile");
	struct store *s = open_as(dir, "file");
	struct err e;
	int status;
	pid_t pid;

	check(put(s, "global/service/a", "value", 5, &e) == 0);
	pid = fork();
	check(pid >= 0);
	if (pid == 0) {
		for (int i = 0; i < 500; i++)
			if (put(s, "global/service/b", "v", 1, &e) < 0)
				_exit(1);
		_exit(0);
	}
	do
		for (int i = 0; i < 50; i++)
			check_value(s, "global/service/a", "value", 5);
	while (waitpid(pid, &status, WNOHANG) == 0);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	store_close(s);
}

static void full(void)
{
	_free_ char *dir = fresh("full");
	struct store *s = open_as(dir, "file");
	char key[64];
	struct err e;
	int i;

	for (i = 0; i <= STORE_ENTRIES_MAX; i++) {
		(void)snprintf(key, sizeof(key), "global/service/s%d", i);
		check(put(s, key, "v", 1, &e) == (i < STORE_ENTRIES_MAX ? 0 : -ENOSPC));
	}
	store_close(s);
}

static void choices(void)
{
	_free_ char *dir = fresh("choices"), *path = dirs_join(dir, "secrets.json");
	_free_ char *notice = NULL, *again = NULL;
	struct store *s = NULL;
	struct err e;

	check(unsetenv("DBUS_SESSION_BUS_ADDRESS") == 0 && setenv("XDG_RUNTIME_DIR", top, 1) == 0);
	check(store_open(dir, "moon", &s, &notice, &e) == -EINVAL);
	check(store_open(dir, "auto", &s, &notice, &e) == 0);
	check(strstr(notice, "secrets are kept in ") && streq(store_where(s), path));
	check(put(s, "global/service/a", "value", 5, &e) == 0);
	s = store_close(s);
	check(store_open(dir, "auto", &s, &again, &e) == 0 && !again);
	s = store_close(s);
	/* chosen; and kept for those who say "auto" */
	s = open_as(dir, "service");
	check(streq(store_where(s), "Secret Service"));
	check(put(s, "global/service/a", "value", 5, &e) == -ENOENT);
	check(strstr(e.msg, "no Secret Service answers") && strstr(e.msg, "bac settings set"));
	s = store_close(s);
	s = open_as(dir, "auto");
	check(streq(store_where(s), "Secret Service"));
	store_close(s);
}

/* ---- the Secret Service ---- */
static void in_session(const char *dir)
{
	struct store *s = open_as(dir, "service");
	struct err e;

	check(service_probe(s, &e) == 0);
	values(s);
	lists(s);
	resolve_value(s);
	store_close(s);
	s = open_as(dir, "auto");
	check(streq(store_where(s), "Secret Service"));
	store_close(s);
}

static bool have(const char *program)
{
	_free_ char *path = NULL;
	struct err e;

	return sys_find(program, &path, &e) == 0;
}

static const char with_keyring[] =
	"printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null && "
	"exec \"$@\"";
/* locked: a keyring is there, and nobody has opened it */
static const char with_locked[] =
	"gnome-keyring-daemon --start --components=secrets >/dev/null && exec \"$@\"";

static int session(const char *script, const char *dir, const char *what, struct err *e)
{
	const char *argv[] = {
		"dbus-run-session", "--", "sh", "-c", script, "sh", self, vault, what, dir, NULL
	};
	struct sys_cmd cmd = { .argv = argv, .group = true, .deadline_ms = 50000 };

	return sys_run(&cmd, e);
}

static bool service(void)
{
	_free_ char *dir = fresh("service"), *home = fresh("home");
	struct err e = { 0 };
	int r;

	if (!have("dbus-run-session") || !have("gnome-keyring-daemon"))
		return false;
	check(mkdir(home, 0700) == 0 && setenv("HOME", home, 1) == 0);
	check(unsetenv("XDG_DATA_HOME") == 0 && unsetenv("DISPLAY") == 0);
	r = session(with_keyring, dir, "open", &e);
	if (r != 0)
		(void)fprintf(stderr, "%s\n", e.msg);
	check(r == 0);
	r = session(with_locked, dir, "locked", &e);
	if (r != 0)
		(void)fprintf(stderr, "%s\n", e.msg);
	check(r == 0);
	return true;
}

static void locked(const char *dir)
{
	struct store *s = open_as(dir, "auto");
	struct err e = { 0 };

	check(streq(store_where(s), "Secret Service"));
	check(put(s, "global/service/a", "value", 5, &e) == -EBUSY);
	check(strstr(e.msg, "the keyring is locked"));
	store_close(s);
}

/* A bus on which the name is owned by one who never answers. */
static void deaf(void)
{
	_free_ char *dir = fresh("deaf"), *script = dirs_join(top, "vault-deaf");
	struct store *s = open_as(dir, "service");
	struct err e;
	uint64_t before = fd_now_ns();

	write_file(script, "#!/bin/sh\nexec sleep 60\n");
	check(chmod(script, 0700) == 0);
	free(s->vault);
	s->vault = strdup(script);
	check(service_probe(s, &e) == -ETIMEDOUT && strstr(e.msg, "does not answer"));
	check(fd_now_ns() - before < (uint64_t)30 * 1000000000);
	store_close(s);
}

static void fakes(void)
{
	static const char *const names[] = { "op", "aws" };
	_free_ char *bin = fresh("bin"), *path = NULL;
	size_t i;

	check(mkdir(bin, 0700) == 0);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		_free_ char *file = dirs_join(bin, names[i]);

		write_file(file, "#!/bin/sh\necho \"${0##*/} $*\"\n");
		check(chmod(file, 0700) == 0);
	}
	check(asprintf(&path, "%s:%s", bin, getenv("PATH")) > 0);
	check(setenv("PATH", path, 1) == 0 && setenv("BAC_TEST_SECRET", "from-env", 1) == 0);
}

int main(int argc, char **argv)
{
	_free_ char *dir = NULL;
	struct store *s;

	check(argc >= 2);
	vault = argv[1];
	if (argc > 3) {
		(streq(argv[2], "open") ? in_session : locked)(argv[3]);
		return 0;
	}
	self = realpath("/proc/self/exe", NULL);
	check(self && mkdtemp(top));
	fakes();
	dir = fresh("file");
	s = open_as(dir, "file");
	values(s);
	lists(s);
	resolves(s);
	resolve_value(s);
	store_close(s);
	modes();
	damages();
	crowd();
	meanwhile();
	full();
	deaf();
	choices();
	if (!service())
		(void)printf("skipped in part: no dbus-run-session or gnome-keyring-daemon\n");
	check(dirs_remove(AT_FDCWD, top) == 0);
	free(self);
	return 0;
}
