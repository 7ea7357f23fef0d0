/* bac kit init: a first specification for the repository that one stands in.
 *
 * The repository is hostile: its files are opened below its folder and through no link, only regular ones are read, in bounds, and nothing of it is run (kit/draft.h says what gets out of them). */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/cmds.h"
#include "cli/kit.h"
#include "io/fd.h"
#include "kit/draft.h"
#include "kit/rules.h"

enum { FOLDER_MAX = 32, TEXT_MAX = 64 * 1024 };

static int open_in(int dir, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* Reads it, if it is there and a file; what is too large is looked at in part. */
static bool look_at(struct draft *d, int dir, const char *path)
{
	_close_ int fd = open_in(dir, path, 0);
	_free_ char *text = malloc(DRAFT_FILE_MAX);
	struct stat st;
	ssize_t n;

	if (fd < 0 || !text || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	n = fd_read_all(fd, text, DRAFT_FILE_MAX);
	if (n < 0)
		return false;
	draft_add(d, path, text, (size_t)n);
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_yaml(const char *name)
{
	size_t n = strlen(name);

	return (n > 4 && streq(name + n - 4, ".yml")) || (n > 5 && streq(name + n - 5, ".yaml"));
}

/* Workflows, in the order of their names, so that a second draft is the first. */
static size_t look_at_folder(struct draft *d, int dir)
{
	char *names[FOLDER_MAX], path[PATH_MAX];
	int fd = open_in(dir, draft_folder, O_DIRECTORY);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *one;
	size_t n = 0, seen = 0;

	if (!stream) {
		(void)fd_close(fd);
		return 0;
	}
	while (n < FOLDER_MAX && (one = readdir(stream)))
		if (is_yaml(one->d_name) && (names[n] = strdup(one->d_name)))
			n++;
	(void)closedir(stream);
	qsort(names, n, sizeof(*names), by_name);
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", draft_folder, names[i]);
		seen += look_at(d, dir, path);
		free(names[i]);
	}
	return seen;
}

/* A kit's name out of a folder's. */
static void make_name(const char *folder, char *dst, size_t max)
{
	const char *slash = strrchr(folder, '/');
	size_t n = 0;

	for (const char *p = slash ? slash + 1 : folder; *p && n + 1 < max; p++) {
		bool fine = isalnum((unsigned char)*p);

		if (fine)
			dst[n++] = (char)tolower((unsigned char)*p);
		else if (n && dst[n - 1] != '-')
			dst[n++] = '-';
	}
	while (n && dst[n - 1] == '-')
		n--;
	dst[n] = '\0';
	if (!n)
		(void)snprintf(dst, max, "project");
}

/* It is a kit, or it is not written. */
static int check(struct buf *out, struct err *e)
{
	struct kit_report rep = { 0 };
	struct kit k = { 0 };
	const char *text = buf_str(out);
	int r = text ? kit_parse("spec.yaml", text, out->n, NULL, &k, &rep, e)
		     : err_errno(e, -ENOMEM, "cannot write the draft");

	kit_done(&k);
	report_done(&rep);
	return r;
}

static int write_draft(int dir, const struct draft *d, const char *name, bool force, struct err *e)
{
	struct buf out = BUF_INIT(TEXT_MAX);
	struct stat st;
	int r;

	if (!force && (fstatat(dir, "spec.yaml", &st, AT_SYMLINK_NOFOLLOW) == 0 ||
		       fstatat(dir, "spec.yml", &st, AT_SYMLINK_NOFOLLOW) == 0))
		return err_set(e, -EEXIST,
			       "there is a spec.yaml already; use --force to replace it");
	r = draft_write(d, name, &out);
	if (r < 0)
		(void)err_errno(e, r, "cannot write the draft");
	if (r == 0)
		r = check(&out, e);
	if (r == 0) {
		r = fd_replace_file(dir, "spec.yaml", 0644, buf_data(&out), out.n);
		if (r < 0)
			(void)err_errno(e, r, "cannot write spec.yaml");
	}
	buf_done(&out);
	return r;
}

static int told(const struct draft *d, const char *dir, size_t seen, struct err *e)
{
	(void)printf("%s/spec.yaml\n", dir);
	say("drafted from %zu %s: %zu hosts, %zu packages, %zu ports, %zu variables, %zu likely "
	    "secrets; "
	    "read it before you use it",
	    seen, seen == 1 ? "file" : "files", d->hosts.n, d->apt.n + d->npm.n, d->ports.n,
	    d->vars.n, d->secrets.n);
	return flush_out(e);
}

int kit_run_init(void *opt, struct args *args, struct err *e)
{
	const struct kit_init_args *o = opt;
	const char *dir = args->n ? args->v[0] : ".";
	_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char full[PATH_MAX], name[KIT_NAME_MAX + 1];
	struct draft d = { 0 };
	size_t seen = 0;
	int r;

	if (fd < 0 || !realpath(dir, full))
		return err_errno(e, -errno, "cannot read '%.200s'", dir);
	if (o->name && !rules_is_name(o->name))
		return err_set(e, -EINVAL,
			       "--name: '%.80s' is not of small letters, digits and '-'", o->name);
	make_name(full, name, sizeof(name));
	for (size_t i = 0; draft_names[i]; i++)
		seen += look_at(&d, fd, draft_names[i]);
	seen += look_at_folder(&d, fd);
	r = write_draft(fd, &d, o->name ? o->name : name, o->force, e);
	if (r == 0)
		r = told(&d, dir, seen, e);
	draft_done(&d);
	return r;
}
