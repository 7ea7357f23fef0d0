/* From an entry to its value: some are kept, others are asked of a command or of another store each time. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fd.h"
#include "secrets/priv.h"
#include "sys/spawn.h"

/* n bytes that somebody gave: without one newline at the end, and fit to be a value. */
static int take(const char *what, const char *p, size_t n, char **ret_value, size_t *ret_n,
		struct err *e)
{
	char *value;

	if (n && p[n - 1] == '\n')
		n--;
	if (n && p[n - 1] == '\r')
		n--;
	if (!n)
		return err_set(e, -ENODATA, "%s gave nothing", what);
	if (n > STORE_VALUE_MAX)
		return err_set(e, -E2BIG, "%s gave more than %d bytes", what, STORE_VALUE_MAX);
	if (memchr(p, '\0', n))
		return err_set(e, -EINVAL, "%s gave a NUL byte", what);
	value = malloc(n + 1);
	if (!value)
		return err_errno(e, -ENOMEM, "%s", what);
	memcpy(value, p, n);
	value[n] = '\0';
	*ret_value = value;
	*ret_n = n;
	return 0;
}

static int run(const char *what, const char *const *argv, unsigned timeout_ms, char **ret_value,
	       size_t *ret_n, struct err *e)
{
	struct buf out = BUF_INIT(STORE_VALUE_MAX + 16);
	struct sys_cmd cmd = {
		.argv = argv, .group = true, .out = &out, .deadline_ms = timeout_ms
	};
	int r = buf_room(&out, STORE_VALUE_MAX + 16) ? 0
						     : err_errno(e, -ENOMEM, "cannot run %s", what);

	if (r == 0)
		r = sys_run(&cmd, e);
	if (r == 0)
		r = take(what, (const char *)buf_data(&out), out.n, ret_value, ret_n, e);
	else
		r = r > 0 ? -EIO : r;
	if (out.p)
		explicit_bzero(out.p, out.cap);
	buf_done(&out);
	return r;
}

static int by_command(const char *text, unsigned ms, char **ret_value, size_t *ret_n, struct err *e)
{
	const char *argv[] = { "/bin/sh", "-c", text, NULL };

	return run("the command", argv, ms, ret_value, ret_n, e);
}

static int by_op(const char *ref, unsigned ms, char **ret_value, size_t *ret_n, struct err *e)
{
	const char *argv[] = { "op", "read", "--no-newline", ref, NULL };

	return run("op (1Password)", argv, ms, ret_value, ret_n, e);
}

static int by_aws(const char *ref, unsigned ms, char **ret_value, size_t *ret_n, struct err *e)
{
	const char *argv[] = {
		"aws",     "secretsmanager", "get-secret-value", "--secret-id", ref,
		"--query", "SecretString",   "--output",         "text",        NULL
	};

	return run("aws", argv, ms, ret_value, ret_n, e);
}

static int by_env(const char *ref, unsigned ms, char **ret_value, size_t *ret_n, struct err *e)
{
	const char *name = ref + strlen("env:"), *value = getenv(name);
	char what[160];

	(void)ms;
	(void)snprintf(what, sizeof(what), "the variable %.100s", name);
	if (!value)
		return err_set(e, -ENOENT, "%s is not set in the command that started the sandbox",
			       what);
	return take(what, value, strlen(value), ret_value, ret_n, e);
}

static int by_file(const char *ref, unsigned ms, char **ret_value, size_t *ret_n, struct err *e)
{
	const char *path = ref + strlen("file:");
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char bytes[STORE_VALUE_MAX + 8];
	struct stat st;
	ssize_t n;
	int r;

	(void)ms;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, -errno, "cannot open %.200s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "%.200s is not a file", path);
	n = fd_read_all(fd, bytes, sizeof(bytes));
	r = n < 0 ? err_errno(e, (int)n, "cannot read %.200s", path)
		  : take(path, bytes, (size_t)n, ret_value, ret_n, e);
	explicit_bzero(bytes, sizeof(bytes));
	return r;
}

static const struct {
	const char *prefix;
	int (*resolve)(const char *ref, unsigned ms, char **ret_value, size_t *ret_n,
		       struct err *e);
} refs[] = {
	{ "op://", by_op },
	{ "arn:aws:secretsmanager:", by_aws },
	{ "env:", by_env },
	{ "file:/", by_file },
};

int store_ref_check(const char *ref, struct err *e)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(refs); i++)
		if (starts_with(ref, refs[i].prefix) && ref[strlen(refs[i].prefix)])
			return (int)i;
	return err_set(e, -EINVAL,
		       "'%.60s' is no reference; write op://VAULT/ITEM/FIELD, "
		       "arn:aws:secretsmanager:..., env:NAME or file:/PATH",
		       ref);
}

int store_resolve(struct store *s, const char *key, unsigned timeout_ms, char **ret_value,
		  size_t *ret_n, int64_t *ret_refresh_s, struct err *e)
{
	struct store_entry entry = { 0 };
	char *value = NULL;
	size_t n = 0;
	int r = store_get(s, key, &entry, &value, &n, e), ref;

	if (r == 0 && entry.how == STORE_COMMAND)
		r = by_command(entry.source, timeout_ms, &value, &n, e);
	if (r == 0 && entry.how == STORE_REF) {
		ref = store_ref_check(entry.source, e);
		r = ref < 0 ? ref : refs[ref].resolve(entry.source, timeout_ms, &value, &n, e);
	}
	if (r == 0) {
		*ret_value = value;
		*ret_n = n;
		*ret_refresh_s = entry.how == STORE_VALUE ? -1 : entry.refresh_s;
	}
	store_entry_done(&entry);
	return r;
}
