/* bac ls and bac inspect. */
#include <jansson.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cli/cmds.h"
#include "cli/kit-box.h"
#include "cli/probe.h"
#include "io/fd.h"

enum { ASK_MS = 1500 };

struct ls_args {
	bool json, quiet;
};

static const struct opt opts[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct ls_args, json), NULL, "print JSON" },
	{ "quiet", 'q', OPT_FLAG, offsetof(struct ls_args, quiet), NULL, "print names only" },
};

static json_t *workspaces(const struct sandbox *b, bool *ret_missing)
{
	json_t *list = json_array();
	struct stat st;

	*ret_missing = false;
	for (size_t i = 0; i < b->shares.n; i++) {
		(void)json_array_append_new(list, json_string(b->shares.v[i].path));
		*ret_missing |= lstat(b->shares.v[i].path, &st) < 0;
	}
	return list;
}

/* Its first folder, and how many there are besides. */
static const char *workspace_text(char *dst, size_t max, const struct sandbox *b)
{
	const struct box_shares *s = &b->shares;
	struct stat st;

	if (!s->n)
		return "-";
	(void)snprintf(dst, max, "%s%s", s->v[0].path,
		       lstat(s->v[0].path, &st) < 0 ? " (missing)" : "");
	if (s->n > 1)
		(void)snprintf(dst + strlen(dst), max - strlen(dst), " +%zu", s->n - 1);
	return dst;
}

static json_t *common_json(const struct sandbox *b, const struct probe *p, const char *status_key)
{
	char created[32], used[32];
	bool missing;
	json_t *list = workspaces(b, &missing);

	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:b, s:[], s:s, s:s, s:I, s:I}", "name",
			 b->name, "id", b->id, "agent", b->agent, status_key, p->status,
			 "workspaces", list, "workspace_missing", missing, "ports", "last_used_at",
			 utc(used, sizeof(used), b->used), "created_at",
			 utc(created, sizeof(created), b->created), "cpus", (json_int_t)b->cpus,
			 "memory", (json_int_t)b->memory);
}

static void add_accel(json_t *j, const struct probe *p)
{
	if (!p->known)
		return;
	if (p->remark[0])
		(void)json_object_set_new(j, "remark", json_string(p->remark));
	(void)json_object_set_new(j, "accel", json_string(p->m.accel == ACCEL_KVM ? "kvm" : "tcg"));
	(void)json_object_set_new(j, "emulated", json_boolean(p->m.accel == ACCEL_TCG));
}

static int ls_json(const struct sandbox *v, const struct probe *p, size_t n, struct err *e)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < n; i++) {
		json_t *j = common_json(&v[i], &p[i], "status");

		add_accel(j, &p[i]);
		(void)json_array_append_new(list, j);
	}
	return print_json(json_pack("{s:o}", "sandboxes", list), e);
}

static int ls_table(const struct sandbox *v, const struct probe *p, size_t n, struct err *e)
{
	int w_name = 7, w_agent = 5, w_status = 6;
	char text[64], where[4200];
	size_t i;

	if (!n) {
		(void)printf("No sandboxes found. Create one with: bac create shell\n");
		return flush_out(e);
	}
	for (i = 0; i < n; i++) {
		w_name = MAX(w_name, (int)strlen(v[i].name));
		w_agent = MAX(w_agent, (int)strlen(v[i].agent));
		w_status = MAX(w_status, (int)strlen(probe_text(text, sizeof(text), &p[i])));
	}
	(void)printf("%-*s   %-*s   %-*s   %-5s   %s\n", w_name, "SANDBOX", w_agent, "AGENT",
		     w_status, "STATUS", "PORTS", "WORKSPACE");
	for (i = 0; i < n; i++)
		(void)printf("%-*s   %-*s   %-*s   %-5s   %s\n", w_name, v[i].name, w_agent,
			     v[i].agent, w_status, probe_text(text, sizeof(text), &p[i]), "-",
			     workspace_text(where, sizeof(where), &v[i]));
	for (i = 0; i < n; i++)
		if (p[i].remark[0])
			say("'%s': %s", v[i].name, p[i].remark);
	return flush_out(e);
}

static int ls_names(const struct sandbox *v, size_t n, struct err *e)
{
	size_t i;

	for (i = 0; i < n; i++)
		(void)printf("%s\n", v[i].name);
	return flush_out(e);
}

static int ls_all(struct ctx *c, const struct ls_args *o, struct err *e)
{
	struct sandbox *v;
	struct probe *p;
	size_t n, i;
	int r = state_list(c->state, &v, &n, e);

	if (r < 0)
		return r;
	p = calloc(n ? n : 1, sizeof(*p));
	if (!p) {
		r = err_errno(e, -ENOMEM, "cannot list");
	} else if (o->quiet && !o->json) {
		r = ls_names(v, n, e);
	} else {
		probe_all(c, v, n, ASK_MS, p);
		r = o->json ? ls_json(v, p, n, e) : ls_table(v, p, n, e);
	}
	for (i = 0; i < n; i++)
		sandbox_done(&v[i]);
	free(v);
	free(p);
	return r;
}

static int run_ls(void *opt, struct args *args, struct err *e)
{
	struct ctx c;
	int r = ctx_open(&c, e);

	(void)args;
	if (r == 0)
		r = ls_all(&c, opt, e);
	ctx_done(&c);
	return r;
}

const struct cmd ls_cmd = {
	.name = "ls",
	.usage = "[OPTIONS]",
	.brief = "list sandboxes",
	.text = "A sandbox that does not answer is shown as unresponsive; the list never waits for "
		"it longer\n"
		"than two seconds.",
	.opts = opts,
	.n_opts = ARRAY_SIZE(opts),
	.max_args = 0,
	.size = sizeof(struct ls_args),
	.run = run_ls,
};

/* ---- inspect ---- */

static const struct opt inspect_opts[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct ls_args, json), NULL, "print JSON" },
};

struct facts {
	const struct sandbox *b;
	struct probe p;
	struct last_run last;
	char *dir;
	uint64_t disk_used;
};

static void gather(struct ctx *c, const struct sandbox *b, struct facts *f)
{
	_free_ char *disk = NULL;
	struct stat st;

	f->b = b;
	f->dir = state_dir(c->state, b->id);
	disk = f->dir ? dirs_join(f->dir, "disk.img") : NULL;
	if (disk && stat(disk, &st) == 0)
		f->disk_used = (uint64_t)st.st_blocks * 512;
	probe_all(c, b, 1, ASK_MS, &f->p);
	last_run_read(c, b->id, &f->last);
}

static json_t *mounts_json(const struct sandbox *b)
{
	json_t *list = json_array();
	struct stat st;

	for (size_t i = 0; i < b->shares.n; i++) {
		const struct box_share *s = &b->shares.v[i];
		json_t *j = json_pack("{s:s, s:b, s:b, s:b, s:b}", "path", s->path, "read_only",
				      s->read_only, "file", s->file, "primary", s->primary,
				      "missing", lstat(s->path, &st) < 0);

		if (j && s->alias[0])
			(void)json_object_set_new(j, "alias", json_string(s->alias));
		(void)json_array_append_new(list, j);
	}
	return list;
}

static json_t *rules_json(const struct sandbox *b)
{
	json_t *list = json_array();

	for (size_t i = 0; i < b->shares.n_rules; i++)
		(void)json_array_append_new(list, json_string(b->shares.rules[i]));
	return list;
}

static void mounts_text(const struct sandbox *b)
{
	struct stat st;

	if (!b->shares.n)
		(void)printf("Mounts:     none\n");
	for (size_t i = 0; i < b->shares.n; i++) {
		const struct box_share *s = &b->shares.v[i];

		(void)printf("%-11s %s%s%s%s%s%s\n", i ? "" : "Mounts:", s->path,
			     s->read_only ? ", read-only" : "", s->primary ? ", workspace" : "",
			     s->alias[0] ? ", also " : "", s->alias,
			     lstat(s->path, &st) < 0 ? ", missing" : "");
	}
	for (size_t i = 0; i < b->shares.n_rules; i++)
		(void)printf("%-11s %s\n", i ? "" : "Path rules:", b->shares.rules[i]);
}

/* Which kits it was made of, and where they came from. */
static void kits(struct ctx *c, const struct facts *f, json_t *j)
{
	struct kit_box k = { 0 };
	json_t *list = json_array();
	struct err e = { 0 };

	if (kit_box_load(c, f->b->id, &k, &e) < 0)
		say("warning: %s", e.msg);
	for (size_t i = 0; i < k.n; i++) {
		(void)json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b, s:b}", "name",
							    k.v[i].kit.name, "ref", k.v[i].ref,
							    "digest", k.v[i].digest, "builtin",
							    k.v[i].builtin, "mixin", k.v[i].mixin));
		if (!j)
			(void)printf("%-11s %s (%s)\n", i ? "" : "Kits:", k.v[i].kit.name,
				     k.v[i].builtin ? "built in" : k.v[i].ref);
	}
	if (j)
		(void)json_object_set(j, "kits", list);
	json_decref(list);
	kit_box_done(&k);
}

static int inspect_json(struct ctx *c, const struct facts *f, struct err *e)
{
	json_t *j = common_json(f->b, &f->p, "state");
	char t[32];

	kits(c, f, j);
	add_accel(j, &f->p);
	(void)json_object_set_new(j, "template",
				  json_pack("{s:s, s:s}", "tag", f->b->tmpl_tag, "digest",
					    f->b->tmpl));
	(void)json_object_set_new(j, "disk",
				  json_pack("{s:I, s:I}", "size", (json_int_t)f->b->disk, "used",
					    (json_int_t)f->disk_used));
	(void)json_object_set_new(j, "network", json_string(f->b->no_network ? "none" : "policy"));
	(void)json_object_set_new(j, "mounts", mounts_json(f->b));
	(void)json_object_set_new(j, "path_rules", rules_json(f->b));
	(void)json_object_set_new(j, "network", json_string(f->b->no_network ? "none" : "policy"));
	(void)json_object_set_new(j, "directory", json_string(f->dir));
	(void)json_object_set_new(j, "workdir", json_string(f->b->workdir));
	if (f->p.known) {
		(void)json_object_set_new(j, "sessions", json_integer(f->p.m.sessions));
		(void)json_object_set_new(j, "jobs", json_integer(f->p.m.jobs));
		(void)json_object_set_new(j, "qemu_pid", json_integer(f->p.m.qemu_pid));
		(void)json_object_set_new(j, "boot_seconds",
					  json_real((double)f->p.m.boot_ns / 1e9));
		(void)json_object_set_new(
			j, "started_at",
			json_string(utc(t, sizeof(t), (int64_t)(f->p.m.started_ns / 1000000000))));
	} else if (f->last.known && f->last.at) {
		(void)json_object_set_new(j, "stopped_at",
					  json_string(utc(t, sizeof(t), f->last.at)));
		(void)json_object_set_new(j, "stop_reason", json_string(f->last.reason));
	}
	return print_json(j, e);
}

static int inspect_text(struct ctx *c, const struct facts *f, struct err *e)
{
	char t[64], m[32], d[32], u[32];

	(void)printf("Name:       %s\nId:         %s\nAgent:      %s\nState:      %s\n", f->b->name,
		     f->b->id, f->b->agent, probe_text(t, sizeof(t), &f->p));
	(void)printf("Template:   %s (%.12s)\nCPUs:       %u\nMemory:     %s\nDisk:       %s, %s "
		     "used on the host\n",
		     f->b->tmpl_tag, f->b->tmpl, f->b->cpus,
		     text_from_size(m, sizeof(m), f->b->memory),
		     text_from_size(d, sizeof(d), f->b->disk),
		     text_from_size(u, sizeof(u), f->disk_used));
	kits(c, f, NULL);
	mounts_text(f->b);
	(void)printf("Network:    %s%s\n",
		     f->b->no_network ? "none" : "by policy; see: bac policy ls ",
		     f->b->no_network ? "" : f->b->name);
	(void)printf("Directory:  %s\nCreated:    %s\n", f->dir ? f->dir : "?",
		     utc(t, sizeof(t), f->b->created));
	(void)printf("Last used:  %s\n", utc(t, sizeof(t), f->b->used));
	if (f->p.known) {
		(void)printf("Started:    %s, ready after %.2f s\n",
			     utc(t, sizeof(t), (int64_t)(f->p.m.started_ns / 1000000000)),
			     (double)f->p.m.boot_ns / 1e9);
		(void)printf("In use:     %u commands, %u detached\n", f->p.m.sessions,
			     f->p.m.jobs);
		if (f->p.remark[0])
			(void)printf("Remark:     %s\n", f->p.remark);
	} else if (f->last.known && f->last.at) {
		(void)printf("Stopped:    %s (%s)\n", utc(t, sizeof(t), f->last.at),
			     f->last.reason[0] ? f->last.reason : "no reason noted");
	}
	return flush_out(e);
}

static int run_inspect(void *opt, struct args *args, struct err *e)
{
	struct ls_args *o = opt;
	struct sandbox b = { 0 };
	struct facts f = { 0 };
	struct ctx c;
	int r = ctx_open(&c, e);

	if (r == 0)
		r = state_get(c.state, args->v[0], &b, e);
	if (r == 0) {
		gather(&c, &b, &f);
		r = o->json ? inspect_json(&c, &f, e) : inspect_text(&c, &f, e);
	}
	free(f.dir);
	sandbox_done(&b);
	ctx_done(&c);
	return r;
}

const struct cmd inspect_cmd = {
	.name = "inspect",
	.usage = "[OPTIONS] SANDBOX",
	.brief = "show all about a sandbox",
	.opts = inspect_opts,
	.n_opts = ARRAY_SIZE(inspect_opts),
	.min_args = 1,
	.max_args = 1,
	.size = sizeof(struct ls_args),
	.run = run_inspect,
};
