/* bac create and bac run: make a sandbox, or come back to it. */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cmds.h"
#include "cli/cred-push.h"
#include "cli/credfiles.h"
#include "cli/envs.h"
#include "cli/halt.h"
#include "cli/kit-create.h"
#include "cli/kit-install.h"
#include "cli/kit-run.h"
#include "cli/paths.h"
#include "cli/policy.h"
#include "cli/start.h"
#include "cli/template-pull.h"
#include "policy/path.h"
#include "image/image.h"
#include "io/fd.h"

struct create_args {
	const char *name, *tmpl, *pull, *accel, *network;
	uint32_t cpus;
	uint64_t memory;
	const char *detach_keys;
	bool quiet, detached, read_only, no_cache;
	bool works; /* no option: run has its agent start */
	struct opt_list env, env_file, hide, protect, allow, allow_network, deny_network;
	struct opt_list credentials, approve, kits, kit_args, kit_args_files;
};

#define O(kind, field, letter, name, arg, help) \
	{ \
		name, letter, kind, offsetof(struct create_args, field), arg, help \
	}
#define COMMON \
	O(OPT_STR, name, 0, "name", "NAME", "name of the sandbox (default: AGENT-FOLDER)"), \
		O(OPT_STR, tmpl, 't', "template", "TEMPLATE", \
		  "template to start from, or an image with its registry (default: default)"), \
		O(OPT_STR, pull, 0, "pull", "WHEN", \
		  "ask the image's registry: always, missing (default: if it is not here), " \
		  "never"), \
		O(OPT_U32, cpus, 0, "cpus", "N", \
		  "processors (default, and 0: all of the host's, at most 64; 1 if a QEMU before " \
		  "8.1 emulates)"), \
		O(OPT_SIZE, memory, 'm', "memory", "SIZE", \
		  "memory, as in 512m or 8g (default: half of the host's, at most 32g)"), \
		O(OPT_STR, accel, 0, "accel", "kvm|tcg", \
		  "accelerator (default: KVM where it works, else emulation)"), \
		O(OPT_FLAG, read_only, 0, "read-only", NULL, \
		  "the first folder cannot be changed from inside"), \
		O(OPT_LIST, hide, 0, "hide", "PATTERN", \
		  "files that cannot be opened from inside, as in '*.key' or 'secrets/**'; " \
		  "repeatable"), \
		O(OPT_LIST, protect, 0, "protect", "PATTERN", \
		  "files that cannot be changed or made from inside; repeatable"), \
		O(OPT_LIST, allow, 0, "allow-path", "PATTERN", \
		  "an exception from the rules that hold anyway (.env, *.pem, .git/hooks/**, " \
		  "...); repeatable"), \
		O(OPT_LIST, allow_network, 0, "allow-network", "RESOURCES", \
		  "let it reach these, as in 'bac policy allow network'; repeatable"), \
		O(OPT_LIST, deny_network, 0, "deny-network", "RESOURCES", \
		  "keep it from these, whatever else allows them; repeatable"), \
		O(OPT_LIST, credentials, 0, "credentials", "FILE", \
		  "what it may use of your secrets: YAML with a list of credentials, as in kits; " \
		  "repeatable"), \
		O(OPT_LIST, approve, 0, "approve", "SERVICE=HOST", \
		  "approve that what was declared uses this secret at this host; repeatable"), \
		O(OPT_LIST, kits, 0, "kit", "KIT", \
		  "a mixin that is added to the agent: a folder, ZIP, git or OCI reference; " \
		  "repeatable"), \
		O(OPT_LIST, kit_args, 0, "kit-arg", "[KIT.]NAME=VALUE", \
		  "an argument of the kits; repeatable"), \
		O(OPT_LIST, kit_args_files, 0, "kit-args-file", "FILE", \
		  "read such arguments from a file, one a line; repeatable"), \
		O(OPT_FLAG, no_cache, 0, "no-cache", NULL, \
		  "run the installation of the kits, though its result is kept"), \
		O(OPT_STR, network, 0, "network", "policy|none", \
		  "none: no network device at all (default: policy)")
/* clang-format off */
static const struct opt create_opts[] = {
	COMMON,
	O(OPT_LIST, env, 'e', "env", "NAME[=VALUE]", "set a variable in all of its commands; repeatable"),
	O(OPT_LIST, env_file, 0, "env-file", "FILE", "read such variables from a file; repeatable"),
	O(OPT_FLAG, quiet, 'q', "quiet", NULL, "print nothing but errors"),
};
static const struct opt run_opts[] = {
	COMMON,
	O(OPT_LIST, env, 'e', "env", "NAME[=VALUE]", "set a variable for this session; repeatable"),
	O(OPT_LIST, env_file, 0, "env-file", "FILE", "read variables from a file; repeatable"),
	O(OPT_FLAG, detached, 'd', "detached", NULL, "print the sandbox's id and return"),
	O(OPT_STR, detach_keys, 0, "detach-keys", "KEYS", "keys that leave the agent running, as in ctrl-p,ctrl-q; 'none' (default: ctrl-\\)"),
};
/* clang-format on */

enum { MEMORY_MIN = 128 * 1024 * 1024 };

/* What the words say of kits. */
static int find_kits(struct ctx *c, const struct create_args *o, const char *word,
		     struct kit_box *ret, struct err *e)
{
	const struct kit_load_opts l = { .base = word,
					 .kits = &o->kits,
					 .args = &o->kit_args,
					 .args_files = &o->kit_args_files };

	return kit_box_find(c, &l, ret, e);
}

/* ---- folders and path rules ---- */

/* The folders of the command line; the first is the workspace. */
static int take_paths(struct ctx *c, const struct create_args *o, char **words, size_t n,
		      struct box_shares *ret, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		struct box_share p = { 0 };

		r = path_take(c, words[i], &p, e);
		p.primary = i == 0 && !p.file;
		p.read_only |= o->read_only && i == 0;
		if (r == 0)
			r = path_add(ret, &p, e);
		path_done(&p);
	}
	if (r == 0 && !n && o->read_only)
		r = err_set(e, -EINVAL, "--read-only: name the folder that it is for");
	return r;
}

static int take_rules(const struct create_args *o, struct box_shares *ret, struct err *e)
{
	const struct {
		const struct opt_list *list;
		const char *word, *option;
		enum path_rule_kind kind;
	} sorts[] = { { &o->hide, "hide", "--hide", PATH_HIDE },
		      { &o->protect, "protect", "--protect", PATH_PROTECT },
		      { &o->allow, "allow", "--allow-path", PATH_ALLOW } };
	_cleanup_(path_builder_freep) struct path_builder *b = NULL;
	char line[PATH_PATTERN_MAX + 16];
	int r = path_builder_new(&b);

	if (r < 0)
		return err_errno(e, r, "cannot read the path rules");
	for (size_t s = 0; s < ARRAY_SIZE(sorts); s++)
		for (size_t i = 0; i < sorts[s].list->n; i++) {
			const char *pattern = sorts[s].list->v[i];

			r = path_builder_add(b, sorts[s].kind, pattern, sorts[s].option, e);
			if (r < 0)
				return err_ctx(e, "%s", sorts[s].option);
			(void)snprintf(line, sizeof(line), "%s %s", sorts[s].word, pattern);
			if (shares_rule(ret, line) < 0)
				return err_errno(e, -ENOMEM, "%s", sorts[s].option);
		}
	return 0;
}

static const struct box_share *primary(const struct box_shares *s)
{
	return s->n && s->v[0].primary ? &s->v[0] : NULL;
}

/* AGENT-FOLDER, from the workspace or the current folder. */
static void default_name(const char *agent, const struct box_shares *s, char *dst, size_t max)
{
	char cwd[PATH_MAX], raw[PATH_MAX + 64];
	const char *base = "home", *path = NULL;

	if (primary(s))
		path = primary(s)->path;
	else if (getcwd(cwd, sizeof(cwd)))
		path = cwd;
	if (path && strrchr(path, '/')[1])
		base = strrchr(path, '/') + 1;
	(void)snprintf(raw, sizeof(raw), "%s-%s", agent, base);
	text_to_name(dst, max, raw);
}

static uint32_t host_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return (uint32_t)MAX(CPU_COUNT(&set), 1);
}

/* What a kit wants is a wish: a smaller machine is no error. */
static uint32_t kit_cpus(const struct kit *kit)
{
	double want = kit->cpu > 64 ? 64 : kit->cpu;
	uint32_t n = (uint32_t)want;

	n += n < want;
	return MAX(MIN(n, host_cpus()), 1U);
}

static uint64_t host_memory(void)
{
	struct sysinfo si;

	return sysinfo(&si) < 0 ? (uint64_t)2 << 30 : (uint64_t)si.totalram * si.mem_unit;
}

static int limits(const struct create_args *o, const struct kit *kit, struct sandbox *b,
		  struct err *e)
{
	const uint64_t host = host_memory(), cap = (uint64_t)32 << 30;
	uint64_t most = MAX(host / 4 * 3, (uint64_t)512 << 20);
	char a[32], m[32];

	b->cpus = o->cpus ? o->cpus : kit->cpu > 0 ? kit_cpus(kit) : MIN(host_cpus(), 64U);
	if (b->cpus > 64)
		return err_set(e, -EINVAL, "--cpus: %u is too many (64 at most)", b->cpus);
	b->memory = o->memory     ? o->memory
		    : kit->memory ? MIN(kit->memory, most)
				  : MAX(MIN(host / 2, cap), (uint64_t)MEMORY_MIN);
	b->memory &= ~(uint64_t)0xfffff;
	if (b->memory < MEMORY_MIN)
		return err_set(e, -EINVAL, "--memory: %s is too little (128 MiB at least)",
			       text_from_size(a, sizeof(a), o->memory));
	if (b->memory > most)
		return err_set(e, -EINVAL, "--memory: %s is too much; this machine allows %s",
			       text_from_size(a, sizeof(a), b->memory),
			       text_from_size(m, sizeof(m), most));
	return 0;
}

static int find_template(struct ctx *c, const struct create_args *o, const struct kit *kit,
			 struct sandbox *b, struct image_template *ret, struct err *e)
{
	const char *ref = o->tmpl ? o->tmpl : kit->image ? kit->image : "default";
	int r = template_get(c, ref, o->pull, o->quiet, ret, e);

	if (r == -ENOENT && !o->tmpl && kit->image)
		return err_ctx(e, "the kit '%s' wants the image %s (or choose one with --template)",
			       kit->name, kit->image);
	b->tmpl_tag = r == 0 ? strdup(ref) : NULL;
	return r;
}

/* Nobody said how many processors: where one thread emulates them all, the second and further ones only take turns
 * with the first, which costs a fifth of the speed. */
static int default_cpus(struct ctx *c, const struct create_args *o, const struct kit *kit,
			struct sandbox *b, struct err *e)
{
	int r;

	if (o->cpus || kit->cpu > 0 || b->cpus == 1)
		return 0;
	r = start_one_thread(c, b, o->accel, e);
	if (r > 0)
		b->cpus = 1;
	return MIN(r, 0);
}

static int describe(struct ctx *c, const struct create_args *o, const struct kit_box *k,
		    const char *name, struct sandbox *b, struct err *e)
{
	struct image_template t = { 0 };
	const char *fault = text_name_fault(name);
	int r;

	if (fault)
		return err_set(e, -EINVAL, "the name '%.80s' %s", name, fault);
	r = limits(o, &k->kit, b, e);
	if (r == 0)
		r = setting_number(c->state, "sandbox.disk.size", &b->disk, e);
	if (r == 0 && b->disk < ((uint64_t)256 << 20))
		r = err_set(e, -EINVAL, "sandbox.disk.size: at least 256m");
	if (r == 0)
		r = find_template(c, o, &k->kit, b, &t, e);
	if (r < 0)
		return r;
	b->name = strdup(name);
	b->agent = strdup(k->kit.name);
	b->tmpl = strdup(t.digest);
	b->workdir = strdup(primary(&b->shares) ? primary(&b->shares)->path
			    : t.workdir         ? t.workdir
						: "/home/agent");
	image_template_done(&t);
	if (!b->name || !b->agent || !b->tmpl || !b->tmpl_tag || !b->workdir)
		return err_errno(e, -ENOMEM, "cannot create '%s'", name);
	return default_cpus(c, o, &k->kit, b, e);
}

/* ---- network ---- */

/* What the words say, before anything is made. */
static int check_network(struct ctx *c, const struct create_args *o, const struct kit_box *k,
			 struct sandbox *b, struct err *e)
{
	struct box_rules rules = { 0 };
	int r;

	if (o->network && !streq(o->network, "none") && !streq(o->network, "policy"))
		return err_set(e, -EINVAL, "--network: '%.40s' is neither policy nor none",
			       o->network);
	b->no_network = o->network && streq(o->network, "none");
	if (b->no_network)
		return o->allow_network.n || o->deny_network.n
			       ? err_set(e, -EINVAL,
					 "--network none: there is no network to allow or deny")
			       : 0;
	r = policy_provision(&rules, &o->allow_network, &o->deny_network, "", e);
	if (r == 0)
		r = kit_create_rules(c, k, "", &rules, e);
	rules_done(&rules);
	return r == 0 ? policy_ensure(c, e) : r;
}

/* Its own rules are there before it starts. */
static int keep_rules(struct ctx *c, const struct create_args *o, const struct kit_box *k,
		      const struct sandbox *b, struct err *e)
{
	struct box_rules rules = { 0 };
	_close_ int lock = -1;
	int r = policy_provision(&rules, &o->allow_network, &o->deny_network, b->id, e);

	if (r == 0 && !b->no_network)
		r = kit_create_rules(c, k, b->id, &rules, e);
	if (r == 0 && rules.n)
		r = rules_lock(c->state, &lock, e);
	if (r == 0 && rules.n)
		r = rules_add(c->state, &rules, e);
	rules_done(&rules);
	return r;
}

/* ---- credentials ---- */

/* Read and approved before anything is made. */
static int check_credentials(struct ctx *c, const struct create_args *o, const struct kit_box *k,
			     const struct sandbox *b, struct cred_files *ret, struct err *e)
{
	const struct cred_who who = { .id = "", .works = o->works };
	int r = cred_files_read(&o->credentials, ret, e);

	if (r == 0 && ret->n && b->no_network)
		return err_set(e, -EINVAL, "--network none: there is nowhere to use credentials");
	if (r == 0)
		r = kit_create_credentials(k, ret, e);
	return r == 0 ? cred_files_approve(c, &ret->declared, &o->approve, &who, e) : r;
}

/* --approve for a sandbox that is there, and what was written into the approvals by hand; one that runs is told. */
static int approve_more(struct ctx *c, const struct create_args *o, const struct sandbox *b,
			struct err *e)
{
	const struct cred_who who = { .id = b->id, .works = o->works };
	struct compose_declared d = { 0 };
	int r = compose_declared(c, b->id, &d, e);

	if (r == 0)
		r = cred_files_approve(c, &d, &o->approve, &who, e);
	if (r == 0)
		r = kit_create_approved(c, b, e);
	if (r == 0 && d.n)
		r = cred_push(c, b, e);
	compose_declared_done(&d);
	return r;
}

/* The variables of --env, which all of its commands get. */
static int take_env(const struct create_args *o, struct kit_box *k, struct err *e)
{
	struct envs env = { 0 };
	int r = envs_collect(&env, &o->env_file, &o->env, e);

	if (r < 0) {
		envs_done(&env);
		return r;
	}
	k->env = (struct kit_texts) { env.v, env.n };
	return 0;
}

/* All that can be refused before there is anything. */
static int check_all(struct ctx *c, const struct create_args *o, const struct kit_box *k,
		     const char *name, struct sandbox *b, struct cred_files *files, struct err *e)
{
	int r = check_network(c, o, k, b, e);

	if (r == 0)
		r = kit_create_check(b, k, e);
	if (r == 0)
		r = check_credentials(c, o, k, b, files, e);
	if (r == 0)
		r = describe(c, o, k, name, b, e);
	if (r == 0)
		kit_create_project(b, k);
	if (r == 0 && !o->quiet && !b->no_network)
		kit_create_tell(k);
	return r;
}

static int docker_size(struct ctx *c, uint64_t *ret, struct err *e)
{
	int r = setting_number(c->state, "sandbox.disk.dockerVolume", ret, e);

	if (r == 0 && *ret && *ret < ((uint64_t)512 << 20))
		r = err_set(e, -EINVAL, "sandbox.disk.dockerVolume: at least 512m, or 0 for none");
	return r;
}

/* Its row is there, its lock is ours: the rest of it, and its start. */
static int furnish(struct ctx *c, const struct create_args *o, const struct kit_box *k,
		   const struct cred_files *files, const struct sandbox *b, int lock,
		   struct door *ret, struct err *e)
{
	struct start_opts so = { .accel = o->accel, .first = true };
	struct kit_install inst = {
		.start = &so, .no_cache = o->no_cache, .quiet = o->quiet, .lock = lock
	};
	struct kit_box kept = { 0 };
	int r = docker_size(c, &inst.docker, e);

	if (r == 0)
		r = keep_rules(c, o, k, b, e);
	if (r == 0)
		r = cred_files_keep(c, b->id, files, e);
	if (r == 0)
		r = kit_box_keep(c, b->id, k, e);
	if (r == 0)
		r = kit_box_load(c, b->id, &kept, e);
	if (r == 0)
		r = kit_install_disk(c, b, &kept, &inst, &so.installed, e);
	if (r == 0)
		r = state_made(c->state, b, e);
	if (r == 0)
		r = start_locked(c, b, &so, fcntl(lock, F_DUPFD_CLOEXEC, 3), ret, e);
	kit_box_done(&kept);
	return r;
}

static void undo(struct ctx *c, const struct sandbox *b)
{
	_free_ char *run_dir = ctx_run_dir(c, b->id);
	struct err none = { 0 };

	if (halt_and_wait(c, b, true, &none) < 0)
		say("%s", none.msg);
	if (run_dir)
		(void)dirs_remove(-1, run_dir);
	if (state_remove(c->state, b, &none) < 0)
		say("%s", none.msg);
}

/* Made and started, or nothing is left. b is filled in. */
static int create(struct ctx *c, const struct create_args *o, const struct kit_box *k,
		  const char *name, struct sandbox *b, struct door *ret, struct err *e)
{
	_cleanup_(cred_files_done) struct cred_files files = { 0 };
	_close_ int lock = -1;
	int r = check_all(c, o, k, name, b, &files, e);

	if (r == 0)
		r = state_add(c->state, b, &lock, e);
	if (r < 0)
		return r;
	r = furnish(c, o, k, &files, b, lock, ret, e);
	if (r < 0)
		undo(c, b);
	return r;
}

static int check_accel(const char *accel, struct err *e)
{
	if (accel && !streq(accel, "kvm") && !streq(accel, "tcg"))
		return err_set(e, -EINVAL, "--accel: '%.40s' is neither kvm nor tcg", accel);
	return 0;
}

static int run_create(void *opt, struct args *args, struct err *e)
{
	struct create_args *o = opt;
	struct sandbox b = { 0 };
	struct kit_box k = { 0 };
	char name[64] = "";
	struct door d;
	struct ctx c;
	int r = check_accel(o->accel, e);

	if (r == 0)
		r = template_check_pull(o->pull, e);
	if (r < 0)
		return r;
	r = ctx_open(&c, e);
	if (r == 0)
		r = take_paths(&c, o, args->v + 1, args->n - 1, &b.shares, e);
	if (r == 0)
		r = take_rules(o, &b.shares, e);
	if (r == 0)
		r = find_kits(&c, o, args->v[0], &k, e);
	if (r == 0)
		r = take_env(o, &k, e);
	if (r == 0)
		default_name(k.kit.name, &b.shares, name, sizeof(name));
	if (r == 0)
		r = create(&c, o, &k, o->name ? o->name : name, &b, &d, e);
	if (r == 0) {
		door_done(&d);
		if (!o->quiet)
			(void)printf("Created sandbox '%s' (%s). Enter it with: bac %s %s %s\n",
				     b.name, b.id, o->tmpl ? "run --name" : "exec -it", b.name,
				     o->tmpl ? "shell" : "bash");
		r = flush_out(e);
	}
	kit_box_done(&k);
	sandbox_done(&b);
	ctx_done(&c);
	return r;
}

const struct cmd create_cmd = {
	.name = "create",
	.usage = "[OPTIONS] AGENT|KIT [PATH[:ro]...]",
	.brief = "create a sandbox and start it",
	.text = "AGENT is claude, codex, copilot, cursor, docker-agent, droid, gemini, kiro, "
		"opencode, "
		"pi or shell, or\n"
		"the reference of another kit: ./DIR, X.zip, git+https://..., oci://... (see bac "
		"kit "
		"--help).\n"
		"Each PATH is a folder or file of the host that the sandbox sees at the same "
		"path;\n"
		"the first folder is its workspace, where commands start. PATH:ro cannot be "
		"changed from inside.\n"
		"Without a PATH it sees nothing of the host. The sandbox has a disk of its own "
		"(setting\n"
		"sandbox.disk.size) and stops by itself when nobody has used it for a while "
		"(setting\n"
		"sandbox.idleTimeout). What a kit installs is kept for the next sandbox of it.",
	.opts = create_opts,
	.n_opts = ARRAY_SIZE(create_opts),
	.min_args = 1,
	.max_args = SIZE_MAX,
	.size = sizeof(struct create_args),
	.run = run_create,
};

/* ---- run ---- */

static int only_for_new(const struct create_args *o, struct err *e)
{
	const struct {
		bool given;
		const char *option;
	} list[] = { { o->tmpl, "--template" },
		     { o->pull, "--pull" },
		     { o->memory, "--memory" },
		     { o->cpus, "--cpus" },
		     { o->read_only, "--read-only" },
		     { o->hide.n, "--hide" },
		     { o->protect.n, "--protect" },
		     { o->allow.n, "--allow-path" },
		     { o->network, "--network" },
		     { o->allow_network.n, "--allow-network" },
		     { o->deny_network.n, "--deny-network" },
		     { o->credentials.n, "--credentials" },
		     { o->kits.n, "--kit" },
		     { o->kit_args.n, "--kit-arg" },
		     { o->kit_args_files.n, "--kit-args-file" },
		     { o->no_cache, "--no-cache" } };

	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		if (list[i].given)
			return err_set(e, -EINVAL,
				       "%s can only be used when creating a new sandbox",
				       list[i].option);
	return 0;
}

struct target {
	struct kit_box kits; /* what the word names */
	const char *agent;
	char name[64];
	struct box_shares shares; /* what the words name, or the current folder */
	bool paths;               /* words named them */
};

/* It was made from the kit that is meant. */
static bool is_of(struct ctx *c, const struct target *t, const struct sandbox *b)
{
	_free_ char *ref = NULL;

	if (!streq(b->agent, t->agent))
		return false;
	ref = t->kits.n ? kit_box_ref(c, b->id) : NULL;
	return !ref || t->kits.v[t->kits.base].builtin || streq(ref, t->kits.v[t->kits.base].ref);
}

/* The sandbox of an agent in a workspace. -ENOENT: there is none. */
static int find_workspace(struct ctx *c, const struct target *t, const char *path,
			  struct sandbox *ret, struct err *e)
{
	struct sandbox *v;
	size_t n, i;
	int r = state_list(c->state, &v, &n, e), found = -ENOENT;

	if (r < 0)
		return r;
	for (i = 0; i < n; i++) {
		const struct box_share *p = primary(&v[i].shares);

		if (found < 0 && p && streq(p->path, path) && is_of(c, t, &v[i])) {
			*ret = v[i];
			found = 0;
		} else {
			sandbox_done(&v[i]);
		}
	}
	free(v);
	return found;
}

/* A name for a new sandbox: the folder's, with a number behind if another folder of that name has it. */
static int free_name(struct ctx *c, struct target *t, struct err *e)
{
	char base[64];

	default_name(t->agent, &t->shares, base, sizeof(base));
	(void)snprintf(t->name, sizeof(t->name), "%s", base);
	for (unsigned i = 2; i < 1000; i++) {
		struct sandbox b = { 0 };
		struct err none = { 0 };
		int r = state_get(c->state, t->name, &b, &none);

		sandbox_done(&b);
		if (r == -ENOENT)
			return 0;
		if (r < 0)
			return err_set(e, r, "%s", none.msg);
		(void)snprintf(t->name, sizeof(t->name), "%.*s-%u", 58, base, i);
	}
	return err_set(e, -EEXIST, "too many sandboxes are named '%s'; choose a --name", base);
}

/* The sandbox is there: do the words fit it? */
static int fits(const struct target *t, const struct sandbox *b, const char *word, struct err *e)
{
	const struct box_share *mine = primary(&t->shares), *its = primary(&b->shares);

	if (word && !streq(b->agent, t->agent))
		return err_set(e, -EINVAL, "sandbox '%s' was made for the agent '%s', not '%s'",
			       b->name, b->agent, t->agent);
	if (!t->paths || !mine || (its && streq(mine->path, its->path)))
		return 0;
	return err_set(e, -EINVAL,
		       "sandbox '%s' has the workspace %s, not %s; add folders with 'bac mount %s "
		       "PATH'",
		       b->name, its ? its->path : "(none)", mine->path, b->name);
}

/* What the words and --name mean. */
static int find_target(struct ctx *c, const struct create_args *o, const char *word,
		       struct target *t, struct sandbox *b, bool *ret_there, struct err *e)
{
	struct err none = { 0 };
	int r;

	*ret_there = false;
	r = find_kits(c, o, word ? word : "shell", &t->kits, e);
	if (r < 0)
		return r;
	t->agent = t->kits.kit.name;
	if (o->name) {
		(void)snprintf(t->name, sizeof(t->name), "%.63s", o->name);
		r = state_get(c->state, o->name, b, &none);
		if (r == -ENOENT && !word)
			return err_set(e, r, "%s", none.msg);
	} else {
		r = find_workspace(c, t, primary(&t->shares) ? primary(&t->shares)->path : "", b,
				   &none);
		if (r == -ENOENT && free_name(c, t, e) < 0)
			return e->code;
	}
	*ret_there = r == 0;
	if (r < 0 && r != -ENOENT)
		return err_set(e, r, "%s", none.msg);
	return r == 0 ? fits(t, b, word, e) : 0;
}

/* 'bac run NAME', as it once was. */
static bool is_name(struct ctx *c, const struct create_args *o, const char *word, size_t n,
		    struct sandbox *b)
{
	struct err none = { 0 };

	if (!word || n > 1 || o->name || text_name_fault(word) || kit_source_builtin(c, word) ||
	    state_get(c->state, word, b, &none) < 0)
		return false;
	say("'bac run %s' is deprecated; use 'bac run --name %s'", word, word);
	return true;
}

static int open_target(struct ctx *c, struct create_args *o, char **words, size_t n,
		       struct sandbox *b, struct door *d, struct err *e)
{
	struct start_opts so = { .accel = o->accel };
	const char *word = n ? words[0] : NULL;
	struct target t = { .paths = n > 1 };
	char *here[] = { (char *)"." };
	bool there = is_name(c, o, word, n, b);
	int r = 0;

	/* an existing one is named: the current folder says nothing */
	if (!there && (n > 1 || !(o->name && !word)))
		r = n > 1 ? take_paths(c, o, words + 1, n - 1, &t.shares, e)
			  : take_paths(c, o, here, 1, &t.shares, e);
	if (r == 0 && !there)
		r = find_target(c, o, word, &t, b, &there, e);
	if (r == 0 && there)
		r = only_for_new(o, e);
	if (r == 0 && !there)
		r = take_rules(o, &t.shares, e);
	if (r == 0 && there)
		r = approve_more(c, o, b, e);
	if (r == 0 && there) {
		r = start_sandbox(c, b, &so, d, e);
	} else if (r == 0) {
		b->shares = t.shares;
		t.shares = (struct box_shares) { 0 };
		r = create(c, o, &t.kits, t.name, b, d, e);
	}
	kit_box_done(&t.kits);
	shares_done(&t.shares);
	return r;
}

static int run_run(void *opt, struct args *args, struct err *e)
{
	size_t before = MIN(args->dashes, args->n);
	struct create_args *o = opt;
	struct sandbox b = { 0 };
	struct door d;
	struct ctx c;
	int r;

	o->works = !o->detached;
	r = check_accel(o->accel, e);
	if (r == 0)
		r = template_check_pull(o->pull, e);
	if (r < 0)
		return r;
	r = ctx_open(&c, e);
	if (r == 0)
		r = open_target(&c, o, args->v, before, &b, &d, e);
	if (r == 0 && o->detached) {
		(void)printf("%s\n", b.id);
		r = flush_out(e);
		door_done(&d);
	} else if (r == 0) {
		const struct kit_run run = { .env = &o->env,
					     .env_file = &o->env_file,
					     .own = before == 0,
					     .detach_keys = o->detach_keys,
					     .extra = (const char **)args->v + before,
					     .n_extra = args->n - before };

		r = kit_run(&c, &d, &b, &run, e);
		door_done(&d);
	}
	sandbox_done(&b);
	ctx_done(&c);
	return r;
}

const struct cmd run_cmd = {
	.name = "run",
	.usage = "[OPTIONS] [AGENT|KIT] [PATH[:ro]...] [-- ARG...]",
	.brief = "create a sandbox unless it is there, start it, and enter it",
	.text = "AGENT is as for bac create (default: shell). Each PATH is a folder or file of the "
		"host that the sandbox\n"
		"sees at the same path; the first is its workspace, where the agent starts; "
		"without "
		"one it is the\n"
		"current folder. PATH:ro cannot be changed from inside. Run again for the same "
		"agent and workspace, it\n"
		"comes back to the same sandbox; --name chooses one by name.\n\n"
		"On a terminal the agent goes on when the terminal is closed or left (ctrl-\\), "
		"and "
		"run comes back to\n"
		"it. Arguments after -- are added to the agent's command if the first is an "
		"option, "
		"and take the place\n"
		"of its own arguments otherwise. Without AGENT, a sandbox of an image runs the "
		"image's own command,\nif it has one.",
	.opts = run_opts,
	.n_opts = ARRAY_SIZE(run_opts),
	.min_args = 0,
	.max_args = SIZE_MAX,
	.size = sizeof(struct create_args),
	.run = run_run,
};
