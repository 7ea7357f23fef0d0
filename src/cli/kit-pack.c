/* bac kit pack and bac kit pull: a kit as a ZIP. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/zip.h"
#include "cli/kit.h"
#include "io/fd.h"

/* What is there and not used. */
static void tell_ignored(const struct kit_source *s)
{
	struct err line;

	for (size_t i = 0; i < s->tree.n_ignored; i++) { /* fit for a terminal */
		(void)err_set(
			&line, 0,
			"'%.200s' is not used: a kit's files are in files/home and files/workspace",
			s->tree.ignored[i]);
		say("%s", line.msg);
	}
}

static int add_all(struct zip_out *z, const struct kit_source *s, struct err *e)
{
	_close_ int dir = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? err_errno(e, -errno, "cannot read '%.200s'", s->dir) : 0;

	for (size_t i = 0; i < s->tree.n && r == 0; i++) {
		const struct kit_entry *f = &s->tree.v[i];
		_free_ char *text = NULL;
		size_t n;

		if (f->kind == KIT_DIR)
			continue;
		if (f->kind == KIT_LINK)
			return err_set(e, -EINVAL, "'%.200s' is a link; a ZIP of a kit has none",
				       f->path);
		r = kit_tree_read(dir, f->path, f->size, &text, &n, e);
		if (r == 0)
			r = zip_out_add(z, f->path, text, n, f->kind == KIT_EXEC, e);
	}
	return r == 0 ? zip_out_end(z, e) : r;
}

static int write_zip(const struct kit_source *s, const char *path, bool force, struct err *e)
{
	struct buf out = BUF_INIT(ZIP_FILE_MAX);
	struct zip_out z;
	struct stat st;
	int r;

	if (!force && lstat(path, &st) == 0)
		return err_set(e, -EEXIST, "'%.200s' is there already; use --force to replace it",
			       path);
	zip_out_begin(&z, &out);
	r = add_all(&z, s, e);
	if (r == 0) {
		r = fd_replace_file(AT_FDCWD, path, 0644, buf_data(&out), out.n);
		if (r < 0)
			(void)err_errno(e, r, "cannot write '%.200s'", path);
	}
	zip_out_done(&z);
	buf_done(&out);
	return r;
}

/* "kit" of ".../kit", "kit.zip", "ns/kit:tag", "...a/kit.git#ref=x&dir=y/kit". */
static void base_name(const char *ref, char *dst, size_t max)
{
	const char *dir = strstr(ref, "dir="), *p = dir && strchr(ref, '#') ? dir + 4 : ref;
	const char *end = p + strcspn(p, p == ref ? "#@" : "&"),
		   *slash = memrchr(p, '/', (size_t)(end - p));
	size_t n;

	p = slash ? slash + 1 : p;
	n = MIN((size_t)(end - p), max - 1);
	memcpy(dst, p, n);
	dst[n] = '\0';
	dst[strcspn(dst, ":")] = '\0';
	n = strlen(dst);
	if (n > 4 && (!strcasecmp(dst + n - 4, ".zip") || streq(dst + n - 4, ".git")))
		dst[n - 4] = '\0';
	if (!dst[0] || dst[0] == '.')
		(void)snprintf(dst, max, "kit");
}

/* The reference and the content's digest, for who wants to name it again. */
static int told(const struct kit_source *s, const char *path, struct err *e)
{
	tell_ignored(s);
	(void)printf("%s\n", path);
	say("%s (content %.12s)", s->ref, s->tree.digest);
	return flush_out(e);
}

static int make_zip(const char *ref, const char *dir, const struct kit_pack_args *o, bool pack,
		    struct err *e)
{
	char name[NAME_MAX], path[PATH_MAX];
	struct kit_source s = { 0 };
	struct kit_ref k = { 0 };
	struct ctx c;
	int r = kit_ref_parse(ref, &k, e);

	if (r == 0 && pack && k.kind != KIT_REF_DIR)
		r = err_set(e, -EINVAL, "pack: '%.100s' is not a folder (write ./DIR)", ref);
	kit_ref_done(&k);
	if (r < 0)
		return r;
	r = ctx_open(&c, e);
	if (r == 0)
		r = kit_source_get(&c, ref, &s, e);
	if (r == 0) {
		base_name(s.ref, name, sizeof(name) - 8);
		if ((size_t)snprintf(path, sizeof(path), "%s%s%s.zip", dir ? dir : "",
				     dir ? "/" : "", name) >= sizeof(path))
			r = err_set(e, -ENAMETOOLONG, "'%.100s...' is too long", path);
	}
	if (r == 0)
		r = write_zip(&s, o->out ? o->out : path, o->force, e);
	if (r == 0)
		r = told(&s, o->out ? o->out : path, e);
	kit_source_done(&s);
	ctx_done(&c);
	return r;
}

int kit_run_pack(void *opt, struct args *args, struct err *e)
{
	return make_zip(args->v[0], NULL, opt, true, e);
}

int kit_run_pull(void *opt, struct args *args, struct err *e)
{
	return make_zip(args->v[0], args->n > 1 ? args->v[1] : NULL, opt, false, e);
}
