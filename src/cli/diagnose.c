/* bac diagnose: can bac work here, and if not, what is to be done. */
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cmds.h"
#include "cli/ctx.h"
#include "config.h"
#include "image/image.h"
#include "io/fd.h"
#include "sys/scope.h"
#include "sys/spawn.h"
#include "vm/vm.h"

struct diagnose_args {
	bool json;
	const char *format;
};

static const struct opt opts[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct diagnose_args, json), NULL,
	  "the same as --format json" },
	{ "format", 0, OPT_STR, offsetof(struct diagnose_args, format), "table|json|github-issue",
	  "how to print it" },
};

enum level { GOOD, WARN, BAD };

static const char *const level_names[] = { [GOOD] = "ok", [WARN] = "warning", [BAD] = "failed" };

enum { CHECKS_MAX = 32 };

struct check_line {
	const char *what;
	enum level level;
	char text[ERR_MSG_MAX];
};

struct report {
	struct check_line v[CHECKS_MAX];
	size_t n;
	struct ctx *c;
	char *qemu;
};

_printf_(4, 5) static void add(struct report *r, const char *what, enum level level,
			       const char *fmt, ...)
{
	struct check_line *l;
	va_list ap;

	if (r->n == CHECKS_MAX)
		return;
	l = &r->v[r->n++];
	l->what = what;
	l->level = level;
	va_start(ap, fmt);
	(void)vsnprintf(l->text, sizeof(l->text), fmt, ap);
	va_end(ap);
}

static void check_system(struct report *r)
{
	struct utsname u;

	(void)uname(&u);
	add(r, "bac", GOOD, "version %s", BAC_VERSION);
	add(r, "kernel", GOOD, "%s %s", u.sysname, u.release);
}

static void check_programs(struct report *r)
{
	static const struct {
		const char *name;
		enum level missing;
		const char *what_for;
	} programs[] = {
		{ "mkfs.ext4", BAD, "to make a sandbox's disk" },
		{ "mmdebstrap", WARN, "for 'bac template build'" },
		{ "mkfs.erofs", WARN, "for 'bac template build'" },
		{ "skopeo", WARN, "for 'bac template pull'" },
	};
	struct err e = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(programs); i++) {
		_free_ char *path = NULL;

		if (sys_find(programs[i].name, &path, &e) == 0)
			add(r, programs[i].name, GOOD, "%s", path);
		else
			add(r, programs[i].name, programs[i].missing,
			    "not found (needed %s): install the package %s", programs[i].what_for,
			    sys_package(programs[i].name));
	}
}

static void check_own(struct report *r)
{
	static const char *const names[] = { "bac-supervisor", "bac-init" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		_free_ char *path = dirs_join(r->c->dirs.libexec, names[i]);

		if (path && access(path, X_OK) == 0)
			add(r, names[i], GOOD, "%s", path);
		else
			add(r, names[i], BAD, "%s is missing: install bac again",
			    path ? path : names[i]);
	}
}

static void check_space(struct report *r, const char *what, const char *dir)
{
	struct statvfs st;
	uint64_t left;
	char t[32];

	if (statvfs(dir, &st) < 0) {
		add(r, what, BAD, "%s: %s", dir, err_text(errno));
		return;
	}
	left = (uint64_t)st.f_bavail * st.f_frsize;
	add(r, what, left < ((uint64_t)2 << 30) ? WARN : GOOD, "%s, %s free", dir,
	    text_from_size(t, sizeof(t), left));
}

static void check_dirs(struct report *r)
{
	check_space(r, "state", r->c->dirs.state);
	check_space(r, "cache", r->c->dirs.cache);
	add(r, "run", GOOD, "%s", r->c->dirs.run);
}

static void check_kernel(struct report *r, const struct image_kernel *used)
{
	struct image_kernel *v = NULL;
	struct err e = { 0 };
	bool outdated = false;
	size_t n = 0, i;

	if (image_kernel_ls(r->c->dirs.cache, &v, &n, &e) < 0)
		n = 0;
	for (i = 0; i < n; i++) {
		outdated = outdated || streq(v[i].kind, "outdated");
		image_kernel_done(&v[i]);
	}
	free(v);
	if (outdated && !streq(used->kind, "minimal"))
		add(r, "guest kernel", WARN,
		    "%s (%s): the minimal one is of an older bac; make it again: bac kernel build",
		    used->release, used->kind);
	else
		add(r, "guest kernel", GOOD, "%s (%s)", used->release, used->kind);
}

static void check_vm(struct report *r)
{
	_free_ char *init = dirs_join(r->c->dirs.libexec, "bac-init");
	struct image_kernel k = { 0 };
	struct vm_probe p = { 0 };
	struct err e = { 0 };

	if (vm_find_qemu(NULL, &r->qemu, &e) < 0) {
		add(r, "qemu", BAD, "%s", e.msg);
		return;
	}
	add(r, "qemu", GOOD, "%s", r->qemu);
	if (!init || image_kernel_find(r->c->dirs.cache, init, NULL, NULL, &k, &e) < 0) {
		add(r, "guest kernel", WARN, "%s", e.msg);
		return;
	}
	check_kernel(r, &k);
	if (vm_probe(r->c->dirs.cache, r->qemu, k.vmlinux, k.initrd, false, &p, &e) < 0)
		add(r, "accelerator", BAD, "%s", e.msg);
	else if (p.kvm)
		add(r, "accelerator", GOOD, "KVM: a guest really starts on it");
	else
		add(r, "accelerator", WARN, "emulation, slow and a weaker wall: %s", p.why);
	vm_probe_done(&p);
	image_kernel_done(&k);
}

static void check_template(struct report *r)
{
	struct image_template t = { 0 };
	struct err e = { 0 };
	char size[32];

	if (image_template_find(r->c->dirs.cache, "default", &t, &e) < 0)
		add(r, "template", WARN, "%s", e.msg);
	else
		add(r, "template", GOOD, "default (%.12s), %s", t.digest,
		    text_from_size(size, sizeof(size), t.size));
	image_template_done(&t);
}

static void check_limits(struct report *r)
{
	struct sys_systemd m;

	if (sys_systemd_find(&m) == 1) {
		add(r, "memory limits", GOOD, "each sandbox gets a systemd scope");
		sys_systemd_done(&m);
	} else {
		add(r, "memory limits", WARN,
		    "no systemd user manager answers: sandboxes are bounded by rlimits "
		    "only");
	}
}

static void check_sandboxes(struct report *r)
{
	struct err e = { 0 };
	struct sandbox *v;
	size_t n, i;

	if (state_list(r->c->state, &v, &n, &e) < 0) {
		add(r, "sandboxes", BAD, "%s", e.msg);
		return;
	}
	add(r, "sandboxes", GOOD, "%zu", n);
	for (i = 0; i < n; i++)
		sandbox_done(&v[i]);
	free(v);
}

static int print_table(const struct report *r, bool markdown, struct err *e)
{
	size_t i;

	if (markdown)
		(void)printf("| check | result | detail |\n|---|---|---|\n");
	for (i = 0; i < r->n; i++)
		(void)printf(markdown ? "| %s | %s | %s |\n" : "%-15s  %-8s  %s\n", r->v[i].what,
			     level_names[r->v[i].level], r->v[i].text);
	return flush_out(e);
}

static int print_checks(const struct report *r, struct err *e)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < r->n; i++)
		(void)json_array_append_new(
			list, json_pack("{s:s, s:s, s:s}", "check", r->v[i].what, "result",
					level_names[r->v[i].level], "detail", r->v[i].text));
	return print_json(json_pack("{s:o}", "checks", list), e);
}

static int run(void *opt, struct args *args, struct err *e)
{
	struct diagnose_args *o = opt;
	struct report rep = { 0 };
	const char *format = o->json ? "json" : o->format ? o->format : "table";
	struct ctx c;
	bool bad = false;
	size_t i;
	int r;

	(void)args;
	if (!streq(format, "table") && !streq(format, "json") && !streq(format, "github-issue"))
		return err_set(e, -EINVAL, "--format: '%.40s' is none of table, json, github-issue",
			       format);
	rep.c = &c;
	r = ctx_open(&c, e);
	if (r == 0) {
		check_system(&rep);
		check_own(&rep);
		check_programs(&rep);
		check_dirs(&rep);
		check_template(&rep);
		check_vm(&rep);
		check_limits(&rep);
		check_sandboxes(&rep);
		for (i = 0; i < rep.n; i++)
			bad |= rep.v[i].level == BAD;
		r = streq(format, "json") ? print_checks(&rep, e)
					  : print_table(&rep, streq(format, "github-issue"), e);
	}
	free(rep.qemu);
	ctx_done(&c);
	return r < 0 ? r : bad;
}

const struct cmd diagnose_cmd = {
	.name = "diagnose",
	.usage = "[OPTIONS]",
	.brief = "check whether bac can work here",
	.text = "The exit status is 1 if a check failed.",
	.opts = opts,
	.n_opts = ARRAY_SIZE(opts),
	.max_args = 0,
	.size = sizeof(struct diagnose_args),
	.run = run,
};
