/* The files of an environment: where they are, and what they say together. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/env.h"
#include "io/fd.h"
#include "kit/sbxenv-tree.h"

static const char file_name[] = "sbxenv.yaml";

void env_close(struct env *v)
{
	for (size_t i = 0; i < v->n_files; i++)
		free(v->files[i]);
	free(v->project);
	sandbox_done(&v->box);
	sbxenv_done(&v->v);
	ctx_done(&v->c);
}

/* The absolute path of a file that is to be read; its folder too. */
static int add_file(struct env *v, const char *path, char **ret_dir, struct err *e)
{
	char full[PATH_MAX];
	char *slash;

	if (v->n_files == SBXENV_FILES_MAX)
		return err_set(e, -E2BIG, "more than %d files", SBXENV_FILES_MAX);
	if (!realpath(path, full))
		return err_errno(e, -errno, "cannot read '%.200s'", path);
	v->files[v->n_files] = strdup(full);
	slash = strrchr(full, '/');
	*(slash == full ? slash + 1 : slash) = '\0';
	*ret_dir = strdup(full);
	if (!v->files[v->n_files] || !*ret_dir)
		return err_errno(e, -ENOMEM, "cannot read '%.200s'", path);
	v->n_files++;
	return 0;
}

/* A path of the command line: a file, or a folder with one. The first says which the project is. */
static int add_path(struct env *v, const char *path, struct err *e)
{
	_free_ char *in = NULL, *dir = NULL;
	struct stat st;
	int r;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		in = dirs_join(path, file_name);
		if (!in)
			return err_errno(e, -ENOMEM, "cannot read '%.200s'", path);
		if (access(in, F_OK) < 0)
			return err_set(e, -ENOENT, "there is no %s in '%.200s'", file_name, path);
	}
	r = add_file(v, in ? in : path, &dir, e);
	if (r == 0 && !v->project)
		v->project = take_ptr(dir);
	return r;
}

/* Here, over the user's defaults. */
static int add_here(struct env *v, struct err *e)
{
	const char *home = getenv("HOME");
	_free_ char *user = home && home[0] == '/' ? dirs_join(home, ".sbxenv.yaml") : NULL,
		    *dir = NULL, *none = NULL;
	char cwd[PATH_MAX];
	int r = 0;

	if (!getcwd(cwd, sizeof(cwd)))
		return err_errno(e, -errno, "cannot find the current folder");
	v->project = strdup(cwd);
	if (!v->project)
		return err_errno(e, -ENOMEM, "cannot read %s", file_name);
	if (user && access(user, F_OK) == 0) {
		r = add_file(v, user, &none, e);
		v->user = r == 0;
	}
	if (r == 0 && access(file_name, F_OK) == 0)
		r = add_file(v, file_name, &dir, e);
	if (r == 0 && !v->n_files)
		r = err_set(e, -ENOENT, "there is no %s here; name the file or its folder",
			    file_name);
	return r;
}

static int read_args(struct env *v, struct kit_args *ret, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < v->o->args_files.n && r == 0; i++) {
		const char *path = v->o->args_files.v[i];
		_free_ char *text = NULL;
		size_t n;

		r = fd_read_file(AT_FDCWD, path, KIT_ARGS_FILE_MAX, &text, &n);
		r = r < 0 ? err_errno(e, r, "--env-args-file: cannot read '%.200s'", path)
			  : kit_args_file(ret, path, text, n, e);
	}
	for (size_t i = 0; i < v->o->args.n && r == 0; i++) {
		r = kit_args_add(ret, v->o->args.v[i], e);
		if (r < 0)
			(void)err_ctx(e, "--env-arg");
	}
	return r;
}

static int tell(const struct kit_report *rep, int r)
{
	for (size_t i = 0; i < rep->n_warnings; i++)
		say("%s", rep->warnings[i]);
	for (size_t i = 1; r < 0 && i < rep->n; i++)
		say("%s", rep->v[i].text);
	return r;
}

static int parse(struct env *v, const struct sbxenv_file *files, struct err *e)
{
	struct kit_report rep = { 0 };
	struct kit_args args = { 0 };
	int r = read_args(v, &args, e);

	if (r == 0)
		r = tell(&rep, sbxenv_parse(files, v->n_files, v->project, &args, &v->v, &rep, e));
	for (size_t i = 0; i < args.n && r == 0; i++)
		if (!args.v[i].used)
			r = err_set(e, -EINVAL, "--env-arg: no argument '%.60s' is declared",
				    args.v[i].name);
	report_done(&rep);
	kit_args_done(&args);
	return r;
}

static int read_files(struct env *v, struct err *e)
{
	struct sbxenv_file files[SBXENV_FILES_MAX] = { 0 };
	char *texts[SBXENV_FILES_MAX] = { NULL }, *dirs[SBXENV_FILES_MAX] = { NULL };
	int r = 0;

	for (size_t i = 0; i < v->n_files && r == 0; i++) {
		r = fd_read_file(AT_FDCWD, v->files[i], YAML_MAX, &texts[i], &files[i].n);
		dirs[i] = sbxenv_join(v->files[i], "..");
		if (r < 0 || !dirs[i])
			r = err_errno(e, r < 0 ? r : -ENOMEM, "cannot read '%.200s'", v->files[i]);
		files[i].name = v->files[i];
		files[i].dir = dirs[i];
		files[i].text = texts[i];
		files[i].user = v->user && i == 0;
	}
	if (r == 0)
		r = parse(v, files, e);
	for (size_t i = 0; i < v->n_files; i++) {
		free(texts[i]);
		free(dirs[i]);
	}
	return r;
}

static int name_it(struct env *v, struct err *e)
{
	const char *name = v->o->name ? v->o->name : v->v.name, *base = "home", *fault;
	char raw[PATH_MAX + 64];

	if (name) {
		fault = text_name_fault(name);
		if (fault)
			return err_set(e, -EINVAL, "the name '%.80s' %s", name, fault);
		(void)snprintf(v->name, sizeof(v->name), "%s", name);
		return 0;
	}
	if (v->v.workspace && strrchr(v->v.workspace, '/')[1])
		base = strrchr(v->v.workspace, '/') + 1;
	(void)snprintf(raw, sizeof(raw), "%s-%s", v->v.agent, base);
	text_to_name(v->name, sizeof(v->name), raw);
	return 0;
}

int env_open(const struct env_args *o, char **paths, size_t n, struct env *ret, struct err *e)
{
	struct err none = { 0 };
	int r;

	*ret = (struct env) { .o = o };
	r = ctx_open(&ret->c, e);
	if (r == 0 && !n)
		r = add_here(ret, e);
	for (size_t i = 0; i < n && r == 0; i++)
		r = add_path(ret, paths[i], e);
	if (r == 0)
		r = read_files(ret, e);
	if (r == 0)
		r = name_it(ret, e);
	if (r < 0)
		return r;
	r = state_get(ret->c.state, ret->name, &ret->box, &none);
	ret->there = r == 0;
	return r == -ENOENT || r == 0 ? 0 : err_set(e, r, "%s", none.msg);
}
