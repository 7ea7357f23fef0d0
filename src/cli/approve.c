#include "cli/approve.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kit/yaml.h"
#include "base/buf.h"
#include "io/fd.h"
#include "policy/net.h"
#include "sys/dirs.h"
#include "sys/lock.h"

enum { LOCK_MS = 20000 };

static const char name[] = "credentials.yaml";

void approve_done(struct approvals *a)
{
	while (a->n) {
		a->n--;
		free(a->v[a->n].service);
		free(a->v[a->n].domain);
	}
	free(a->v);
	a->v = NULL;
}

bool approve_has(const struct approvals *a, const char *service, bool oauth, const char *domain)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		if (a->v[i].oauth == oauth && streq(a->v[i].service, service) &&
		    streq(a->v[i].domain, domain))
			return true;
	return false;
}

int approve_add(struct approvals *a, const char *service, bool oauth, const char *domain)
{
	struct approval *v = reallocarray(a->v, a->n + 1, sizeof(*v)), *one;

	if (!v)
		return -ENOMEM;
	a->v = v;
	one = &v[a->n];
	*one = (struct approval) { strdup(service), strdup(domain), oauth };
	if (!one->service || !one->domain) {
		free(one->service);
		free(one->domain);
		return -ENOMEM;
	}
	a->n++;
	return 0;
}

/* ---- reading ---- */
static bool is_service(const char *s)
{
	return *s && strlen(s) <= 63 &&
	       !s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")];
}

static int read_domains(struct approvals *a, const char *service, bool oauth,
			const struct yaml *list, struct err *e)
{
	char domain[NET_RESOURCE_MAX + 1];
	size_t i;
	int r = yaml_want(list, YAML_LIST, "domains", e);

	for (i = 0; i < list->n && r == 0; i++) {
		const struct yaml *y = &list->v[i];

		r = yaml_want(y, YAML_TEXT, "a domain", e);
		if (r < 0)
			break;
		r = net_resource_check(y->text, domain, sizeof(domain), e);
		if (r < 0)
			return err_ctx(e, "line %u: '%.100s'", y->line, y->text);
		if (a->n == APPROVALS_MAX)
			return err_set(e, -E2BIG, "line %u: more than %d approvals", y->line,
				       APPROVALS_MAX);
		if (approve_add(a, service, oauth, domain) < 0)
			return err_set(e, -ENOMEM, "out of memory");
	}
	return r;
}

static int read_service(struct approvals *a, const struct yaml *y, struct err *e)
{
	static const char *const keys[] = { "apiKey", "oauth", NULL }, *const inner[] = { "domains",
											  NULL };
	size_t i;
	int r = yaml_keys(y, keys, "a binding", e);

	if (r == 0 && !is_service(y->key))
		r = err_set(e, -EINVAL, "line %u: '%.60s' is not the name of a service", y->line,
			    y->key);
	for (i = 0; i < y->n && r == 0; i++) {
		const struct yaml *domains;

		r = yaml_keys(&y->v[i], inner, y->v[i].key, e);
		domains = yaml_get(&y->v[i], "domains");
		if (r == 0 && domains)
			r = read_domains(a, y->key, streq(y->v[i].key, "oauth"), domains, e);
	}
	return r;
}

static int read_all(struct approvals *a, const struct yaml *y, struct err *e)
{
	static const char *const keys[] = { "bindings", NULL };
	const struct yaml *bindings;
	size_t i;
	int r;

	if (y->kind == YAML_NONE)
		return 0;
	r = yaml_keys(y, keys, "the file", e);
	bindings = yaml_get(y, "bindings");
	if (r < 0 || !bindings || (bindings->kind == YAML_TEXT && !*bindings->text))
		return r;
	r = yaml_want(bindings, YAML_MAP, "bindings", e);
	for (i = 0; i < bindings->n && r == 0; i++)
		r = read_service(a, &bindings->v[i], e);
	return r;
}

int approve_parse(const char *text, size_t n, struct approvals *ret, struct err *e)
{
	struct approvals a = { 0 };
	struct yaml y = { 0 };
	int r = yaml_parse(text, n, &y, e);

	if (r == 0)
		r = read_all(&a, &y, e);
	yaml_done(&y);
	if (r < 0)
		approve_done(&a);
	else
		*ret = a;
	return r;
}

static int read_file(const char *path, char **ret, size_t *ret_n, struct err *e)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char *text;
	struct stat st;
	ssize_t n;

	if (fd < 0 && errno == ENOENT)
		return 1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, -errno, "cannot open %s", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
		return err_set(
			e, -EPERM,
			"%s must be a file of yours that nobody else may write: it approves the "
			"use of secrets",
			path);
	if (st.st_size > YAML_MAX)
		return err_set(e, -E2BIG, "%s: it has more than %d bytes", path, YAML_MAX);
	text = malloc((size_t)st.st_size + 1);
	n = text ? fd_read_all(fd, text, (size_t)st.st_size) : -ENOMEM;
	if (n < 0) {
		free(text);
		return err_errno(e, (int)n, "cannot read %s", path);
	}
	*ret = text;
	*ret_n = (size_t)n;
	return 0;
}

int approve_load(const char *config_dir, struct approvals *ret, struct err *e)
{
	_free_ char *path = dirs_join(config_dir, name), *text = NULL;
	size_t n = 0;
	int r;

	*ret = (struct approvals) { 0 };
	if (!path)
		return err_errno(e, -ENOMEM, "cannot read the approvals");
	r = read_file(path, &text, &n, e);
	if (r != 0)
		return MIN(r, 0);
	r = approve_parse(text, n, ret, e);
	return r < 0 ? err_ctx(e, "%s", path) : 0;
}

/* ---- writing ---- */
static int by_name(const void *a, const void *b)
{
	const struct approval *x = a, *y = b;
	int r = strcmp(x->service, y->service);

	if (r == 0)
		r = (int)x->oauth - (int)y->oauth;
	return r ? r : strcmp(x->domain, y->domain);
}

static int write_text(struct approvals *a, struct buf *out)
{
	const char *service = NULL;
	int kind = -1, r;
	size_t i;

	if (a->n)
		qsort(a->v, a->n, sizeof(*a->v), by_name);
	r = buf_printf(out, "# Which secrets may be used where by what is not built in: approved "
			    "by you. A line that is taken out is asked for again.\n"
			    "bindings:\n");
	for (i = 0; i < a->n && r == 0; i++) {
		const struct approval *one = &a->v[i];

		if (!streq(one->service, service)) {
			r = buf_printf(out, "  %s:\n", one->service);
			kind = -1;
		}
		if (r == 0 && kind != one->oauth)
			r = buf_printf(out, "    %s:\n      domains:\n",
				       one->oauth ? "oauth" : "apiKey");
		if (r == 0) /* canonical: no quote or backslash is in it */
			r = buf_printf(out, "        - \"%s\"\n", one->domain);
		service = one->service;
		kind = one->oauth;
	}
	return r;
}

static int save(int dir, const char *config_dir, const struct approvals *more, struct err *e)
{
	struct buf out = BUF_INIT(YAML_MAX);
	struct approvals a;
	size_t i;
	int r = approve_load(config_dir, &a, e);

	if (r < 0)
		return r;
	for (i = 0; i < more->n && r == 0; i++) {
		const struct approval *m = &more->v[i];

		if (!approve_has(&a, m->service, m->oauth, m->domain))
			r = approve_add(&a, m->service, m->oauth, m->domain);
	}
	if (r == 0)
		r = write_text(&a, &out);
	if (r == 0)
		r = fd_replace_file(dir, name, 0600, buf_data(&out), out.n);
	buf_done(&out);
	approve_done(&a);
	return r < 0 ? err_errno(e, r, "cannot write %s/%s", config_dir, name) : 0;
}

static int begin(const char *config_dir, int *ret_dir, int *ret_lock, struct err *e)
{
	_close_ int dir = -1;
	int r = dirs_make(config_dir);

	if (r == 0) {
		dir = open(config_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = dir < 0 ? -errno : lock_take_within(dir, "credentials.lock", LOCK_MS, ret_lock);
	}
	if (r < 0)
		return err_errno(e, r, "cannot write %s/%s", config_dir, name);
	*ret_dir = take_fd(&dir);
	return 0;
}

int approve_save(const char *config_dir, const struct approvals *more, struct err *e)
{
	_close_ int dir = -1, lock = -1;
	int r = begin(config_dir, &dir, &lock, e);

	return r == 0 ? save(dir, config_dir, more, e) : r;
}

int approve_drop(const char *config_dir, const char *service, struct err *e)
{
	_close_ int dir = -1, lock = -1;
	struct buf out = BUF_INIT(YAML_MAX);
	struct approvals a, kept = { 0 };
	int r = begin(config_dir, &dir, &lock, e);

	if (r == 0)
		r = approve_load(config_dir, &a, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < a.n && r == 0; i++)
		if (!streq(a.v[i].service, service))
			r = approve_add(&kept, a.v[i].service, a.v[i].oauth, a.v[i].domain);
	if (r == 0 && kept.n != a.n) {
		r = write_text(&kept, &out);
		if (r == 0)
			r = fd_replace_file(dir, name, 0600, buf_data(&out), out.n);
	}
	buf_done(&out);
	approve_done(&a);
	approve_done(&kept);
	return r < 0 ? err_errno(e, r, "cannot write %s/%s", config_dir, name) : 0;
}
