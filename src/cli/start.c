/* Starting a sandbox: decide how (accelerator, kernel, limits), write the orders, start a supervisor that
 * inherits the lock, wait for its word.
 *
 * The lock makes it safe for twenty commands at once: one gets it and starts, the others find it taken and
 * wait at the door. A boot that hangs is tried once more, silently; a second time it is an error. */
#include "cli/start.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cred-push.h"
#include "cli/kit-apply.h"
#include "cli/net-push.h"
#include "cli/upstream.h"
#include "image/image.h"
#include "io/fd.h"
#include "sys/lock.h"
#include "sys/scope.h"
#include "sys/share.h"
#include "sys/spawn.h"
#include "vm/vm.h"
#include "wire/order.h"

enum { BUSY_MS = 20000, GREET_MS = 5000, BOOT_PATIENCE = 8 };

/* A setting that is a list. */
struct words {
	char *text;     /* v points into it */
	const char **v; /* NULL-terminated */
	size_t n;
};

static void words_done(struct words *w)
{
	free(w->text);
	free(w->v);
}

/* All that the orders borrow from. */
struct plan {
	struct image_template tmpl;
	struct image_kernel kernel;
	struct vm_probe probe;
	char *dir, *run_dir, *disk, *qemu, *machine, *init, *workspace;
	char *base;       /* our own template, beside an image; or NULL */
	const char **env; /* the image's */
	size_t n_env;
	char *net, *proxy, *audit, *audit_dir;
	char *keeper, *fetch;
	char *upstream, *no_proxy;
	struct words connect, extra_ca, client_certs;
	uint64_t audit_file, audit_total;
	int policy;         /* a sealed memory file, or -1 */
	int credentials;    /* likewise */
	char *rule_text;    /* of the setting; rules points into it */
	const char **rules; /* the setting's, then the sandbox's own */
	size_t n_rules;
	uint64_t boot_ms, stop_ms, idle_ms, disk_size;
	const char *hostname;
	bool leak_refuse;
	bool kvm;
};

static void plan_done(struct plan *p)
{
	image_template_done(&p->tmpl);
	image_kernel_done(&p->kernel);
	vm_probe_done(&p->probe);
	free(p->dir);
	free(p->run_dir);
	free(p->disk);
	free(p->qemu);
	free(p->machine);
	free(p->init);
	free(p->workspace);
	free(p->base);
	free(p->env);
	free(p->net);
	free(p->proxy);
	free(p->audit);
	free(p->audit_dir);
	free(p->upstream);
	free(p->no_proxy);
	free(p->keeper);
	free(p->fetch);
	words_done(&p->connect);
	words_done(&p->extra_ca);
	words_done(&p->client_certs);
	p->policy = fd_close(p->policy);
	p->credentials = fd_close(p->credentials);
	free(p->rule_text);
	free(p->rules);
}

static int plan_settings(struct ctx *c, struct plan *p, struct err *e)
{
	_free_ char *qemu = NULL, *leak = NULL;
	int r;

	r = setting_number(c->state, "vm.bootTimeout", &p->boot_ms, e);
	if (r == 0)
		r = setting_number(c->state, "sandbox.stopTimeout", &p->stop_ms, e);
	if (r == 0)
		r = setting_number(c->state, "sandbox.idleTimeout", &p->idle_ms, e);
	if (r == 0)
		r = setting_get(c->state, "vm.machine", &p->machine, NULL, e);
	if (r == 0)
		r = setting_get(c->state, "vm.qemu", &qemu, NULL, e);
	if (r == 0)
		r = setting_get(c->state, "secrets.onLeak", &leak, NULL, e);
	p->leak_refuse = streq(leak, "refuse");
	return r < 0 ? r : vm_find_qemu(qemu, &p->qemu, e);
}

static int plan_rules(struct ctx *c, const struct sandbox *b, struct plan *p, struct err *e)
{
	char *line, *rest = NULL;
	size_t most = b->shares.n_rules + 1;
	int r = setting_get(c->state, "workspace.rules", &p->rule_text, NULL, e);

	if (r < 0)
		return r;
	setting_rules_lines(p->rule_text);
	for (const char *s = p->rule_text; *s; s++)
		most += *s == '\n';
	p->rules = calloc(most + 1, sizeof(*p->rules));
	if (!p->rules)
		return err_errno(e, -ENOMEM, "cannot start '%s'", b->name);
	for (line = strtok_r(p->rule_text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		p->rules[p->n_rules++] = line;
	for (size_t i = 0; i < b->shares.n_rules; i++)
		p->rules[p->n_rules++] = b->shares.rules[i];
	return 0;
}

static int plan_words(struct ctx *c, const char *key, struct words *ret, struct err *e)
{
	char *one, *rest = NULL;
	size_t most = 1;
	int r = setting_get(c->state, key, &ret->text, NULL, e);

	if (r < 0)
		return r;
	for (const char *s = ret->text; *s; s++)
		most += *s == ',' || *s == '\n' || *s == ' ';
	ret->v = calloc(most + 1, sizeof(*ret->v));
	if (!ret->v)
		return err_errno(e, -ENOMEM, "cannot read %s", key);
	for (one = strtok_r(ret->text, ", \n", &rest); one; one = strtok_r(NULL, ", \n", &rest))
		ret->v[ret->n++] = one;
	return 0;
}

static int plan_credentials(struct ctx *c, const struct sandbox *b, struct plan *p, struct err *e)
{
	int r = cred_push_file(c, b, &p->credentials, e);

	if (r < 0 || b->no_network)
		return r;
	p->keeper = dirs_join(c->dirs.libexec, "bac-keeper");
	p->fetch = dirs_join(c->dirs.libexec, "bac-fetch");
	if (!p->keeper || !p->fetch)
		return err_errno(e, -ENOMEM, "cannot start '%s'", b->name);
	r = plan_words(c, "tls.extraCa", &p->extra_ca, e);
	for (size_t i = 0; r == 0 && i < p->extra_ca.n; i++)
		if (access(p->extra_ca.v[i], R_OK) < 0)
			r = err_errno(e, -errno, "tls.extraCa: cannot read %s", p->extra_ca.v[i]);
	return r == 0 ? plan_words(c, "tls.clientCerts", &p->client_certs, e) : r;
}

static int plan_network(struct ctx *c, const struct sandbox *b, struct plan *p, struct err *e)
{
	_free_ char *dir = NULL;
	int r = net_push_file(c, b, false, &p->policy, e);

	if (r < 0 || b->no_network)
		return r;
	p->net = dirs_join(c->dirs.libexec, "bac-net");
	p->proxy = dirs_join(c->dirs.libexec, "bac-proxy");
	p->audit = dirs_join(c->dirs.libexec, "bac-audit");
	if (!p->net || !p->proxy || !p->audit ||
	    asprintf(&dir, "%s/audit/%s", c->dirs.state, b->id) < 0)
		return err_errno(e, -ENOMEM, "cannot start '%s'", b->name);
	if (dirs_make(dir) < 0)
		return err_errno(e, -errno, "cannot make %s", dir);
	/* it is taken as a mount (sys/share.h), which no link may lead to */
	p->audit_dir = realpath(dir, NULL);
	if (!p->audit_dir)
		return err_errno(e, -errno, "cannot find %s", dir);
	r = setting_number(c->state, "audit.fileSize", &p->audit_file, e);
	if (r == 0)
		r = setting_number(c->state, "audit.totalSize", &p->audit_total, e);
	if (r == 0)
		r = upstream_get(c, &p->upstream, &p->no_proxy, e);
	return r == 0 ? plan_words(c, "net.connectTo", &p->connect, e) : r;
}

/* What an image says of the user is not so: commands run as agent. */
static bool is_ours(const char *entry)
{
	static const char *const names[] = { "HOME=", "USER=", "LOGNAME=", "SHELL=" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (starts_with(entry, names[i]))
			return true;
	return false;
}

/* What an image needs beside its root. */
static int plan_image(struct ctx *c, const struct sandbox *b, struct plan *p, struct err *e)
{
	char **env = p->tmpl.config.env;
	size_t n = 0;
	int r;

	while (env[n])
		n++;
	p->env = calloc(n + 1, sizeof(*p->env));
	if (!p->env)
		return err_errno(e, -ENOMEM, "cannot start '%s'", b->name);
	for (size_t i = 0; i < n; i++)
		if (!is_ours(env[i]))
			p->env[p->n_env++] = env[i];
	r = image_template_base(c->dirs.cache, p->kernel.digest, &p->base, e);
	return MIN(r, 0);
}

static int plan_images(struct ctx *c, const struct sandbox *b, struct plan *p, struct err *e)
{
	_free_ char *want = NULL;
	int r;

	p->init = dirs_join(c->dirs.libexec, "bac-init");
	p->workspace = dirs_join(c->dirs.libexec, "bac-workspace");
	if (!p->init || !p->workspace)
		return err_errno(e, -ENOMEM, "cannot start '%s'", b->name);
	r = setting_get(c->state, "vm.kernel", &want, NULL, e);
	if (r == 0)
		r = image_template_find(c->dirs.cache, b->tmpl, &p->tmpl, e);
	if (r < 0)
		return r;
	r = image_kernel_find(c->dirs.cache, p->init, streq(want, "auto") ? NULL : want,
			      *p->tmpl.kernel ? p->tmpl.kernel : NULL, &p->kernel, e);
	if (r == 0 && p->tmpl.layers)
		r = plan_image(c, b, p, e);
	if (r == 0)
		image_template_use(c->dirs.cache, p->tmpl.digest);
	return r;
}

/* What the machine has and what was asked for: p's probe, and whether it is KVM. *ret_asked is the caller's. */
static int probe_accel(struct ctx *c, const char *option, struct plan *p, char **ret_asked,
		       struct err *e)
{
	_free_ char *asked = NULL;
	int r = setting_get(c->state, "vm.accel", &asked, NULL, e);

	if (r == 0)
		r = vm_probe(c->dirs.cache, p->qemu, p->kernel.vmlinux, p->kernel.initrd, false,
			     &p->probe, e);
	if (r != 0)
		return r;
	if (option) {
		free(asked);
		asked = strdup(option);
		if (!asked)
			return err_errno(e, -ENOMEM, "cannot choose an accelerator");
	}
	p->kvm = p->probe.kvm && !streq(asked, "tcg");
	*ret_asked = take_ptr(asked);
	return 0;
}

static int choose_accel(struct ctx *c, const struct sandbox *b, const struct start_opts *o,
			struct plan *p, struct err *e)
{
	_free_ char *accel = NULL;
	uint64_t require;
	int r = setting_number(c->state, "vm.requireKvm", &require, e);

	if (r == 0)
		r = probe_accel(c, o->accel, p, &accel, e);
	if (r != 0 || p->kvm)
		return r;
	if (require)
		return err_set(e, -ENOTSUP,
			       "cannot start '%s': the setting vm.requireKvm forbids emulation, "
			       "and KVM is not used: %s",
			       b->name, p->probe.kvm ? "emulation was asked for" : p->probe.why);
	if (streq(accel, "kvm"))
		return err_set(e, -ENOTSUP, "cannot start '%s' with KVM: %s", b->name,
			       p->probe.why);
	if (!o->quiet)
		say("warning: '%s' runs emulated: slow, and a weaker wall than KVM (%s)", b->name,
		    p->probe.kvm ? "asked for" : p->probe.why);
	return 0;
}

int start_one_thread(struct ctx *c, const struct sandbox *b, const char *accel, struct err *e)
{
	_cleanup_(plan_done) struct plan p = { .policy = -1, .credentials = -1 };
	_free_ char *asked = NULL;
	int r = plan_settings(c, &p, e);

	if (r == 0)
		r = plan_images(c, b, &p, e);
	if (r == 0)
		r = probe_accel(c, accel, &p, &asked, e);
	return r < 0 ? r : !p.kvm && !p.probe.tcg_safe;
}

static int plan_paths(struct ctx *c, const struct sandbox *b, struct plan *p, struct err *e)
{
	struct stat st;

	p->dir = state_dir(c->state, b->id);
	p->run_dir = ctx_run_dir(c, b->id);
	p->disk = p->dir ? dirs_join(p->dir, "disk.img") : NULL;
	if (!p->dir || !p->run_dir || !p->disk)
		return err_errno(e, -ENOMEM, "cannot start '%s'", b->name);
	if (dirs_make(p->run_dir) < 0)
		return err_errno(e, -errno, "cannot make %s", p->run_dir);
	if (access(p->disk, R_OK | W_OK) < 0 || stat(p->disk, &st) < 0)
		return err_errno(e, -errno, "cannot start '%s': its disk %s", b->name, p->disk);
	p->disk_size = (uint64_t)st.st_size;
	return 0;
}

/* The orders as a memory file. */
static int write_orders(const struct sandbox *b, const struct plan *p, int *ret_fd, struct err *e)
{
	struct wire_order o = { .id = b->id,
				.name = b->name,
				.hostname = p->hostname,
				.dir = p->dir,
				.run_dir = p->run_dir,
				.root_image = p->tmpl.root,
				.base_image = p->base,
				.disk_image = p->disk,
				.kernel = p->kernel.vmlinux,
				.initrd = p->kernel.initrd,
				.cmdline = p->base ? "bac.base" : "",
				.qemu = p->qemu,
				.machine = p->machine,
				.workspace = p->workspace,
				.workdir = b->workdir,
				.net = p->net,
				.proxy = p->proxy,
				.audit = p->audit,
				.audit_dir = p->audit_dir,
				.upstream = p->upstream,
				.no_proxy = p->no_proxy,
				.network = !b->no_network,
				.audit_file = p->audit_file,
				.audit_total = p->audit_total,
				.leak_refuse = p->leak_refuse,
				.connect = p->connect.v,
				.n_connect = (uint32_t)p->connect.n,
				.keeper = p->keeper,
				.fetch = p->fetch,
				.extra_ca = p->extra_ca.v,
				.n_extra_ca = (uint32_t)p->extra_ca.n,
				.client_certs = p->client_certs.v,
				.n_client_certs = (uint32_t)p->client_certs.n,
				.accel = p->kvm ? ACCEL_KVM : ACCEL_TCG,
				.cpus = b->cpus,
				.memory = b->memory,
				.disk_size = p->disk_size,
				.tsc_khz = p->probe.tsc_khz,
				.tcg_multi = p->probe.tcg_safe,
				.boot_ms = p->boot_ms,
				.stop_ms = p->stop_ms,
				.idle_ms = p->idle_ms,
				.qemu_files = (const char **)p->probe.qemu_files,
				.n_qemu_files = (uint32_t)p->probe.n_qemu_files,
				.rules = p->rules,
				.n_rules = (uint32_t)p->n_rules,
				.image = p->tmpl.layers != NULL,
				.image_env = p->env,
				.n_image_env = (uint32_t)p->n_env };
	struct buf out = BUF_INIT(ORDER_MAX);
	_close_ int fd = memfd_create("bac-orders", MFD_CLOEXEC);
	int r;

	for (char **blob = p->tmpl.blobs; blob && *blob; blob++)
		o.n_root_blobs++;
	o.root_blobs = (const char **)p->tmpl.blobs;
	r = fd < 0 ? -errno : wire_order_put(&out, &o);

	if (r == 0)
		r = fd_write_all(fd, buf_data(&out), out.n);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	buf_done(&out);
	if (r < 0)
		return err_errno(e, r, "cannot write the supervisor's orders");
	*ret_fd = take_fd(&fd);
	return 0;
}

/* ---- shares ---- */

int start_share(int sock, const struct box_share *p, bool umount, struct err *e)
{
	struct wire_mount m = { .flags = (uint8_t)((p->read_only ? MOUNT_RO : 0) |
						   (p->file ? MOUNT_FILE : 0)),
				.path = p->path,
				.alias = p->alias };
	struct buf out = BUF_INIT(WIRE_FRAME_MAX);
	_close_ int tree = -1;
	int r = umount ? 0 : share_take(p->path, p->read_only, &tree, e);

	if (r < 0)
		return r;
	r = wire_mount_add(&out, umount ? WIRE_UMOUNT : WIRE_MOUNT, &m);
	if (r == 0)
		r = fd_send_with(sock, buf_data(&out), out.n, tree, 0);
	buf_done(&out);
	return r < 0 ? err_errno(e, r, "cannot share %s", p->path) : 0;
}

static int parents_first(const void *a, const void *b)
{
	const struct box_share *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* All shares, and START. 1: the supervisor is gone, and has said why. */
static int send_shares(int sock, const struct sandbox *b, struct err *e)
{
	_free_ struct box_share *v = calloc(b->shares.n + 1, sizeof(*v));
	struct buf out = BUF_INIT(WIRE_FRAME_MAX);
	int r = 0;

	if (!v)
		return err_errno(e, -ENOMEM, "cannot start '%s'", b->name);
	for (size_t i = 0; i < b->shares.n; i++)
		v[i] = b->shares.v[i]; /* its texts are borrowed */
	qsort(v, b->shares.n, sizeof(*v), parents_first);
	for (size_t i = 0; r == 0 && i < b->shares.n; i++) {
		r = start_share(sock, &v[i], false, e);
		if (r == -ENOENT)
			(void)err_set(
				e, r,
				"its folder %s is gone; put it back, or take it out with 'bac "
				"umount %s %s'",
				v[i].path, b->name, v[i].path);
	}
	if (r == -EPIPE || r == -ECONNRESET)
		return 1;
	if (r < 0)
		return err_ctx(e, "cannot start '%s'", b->name);
	r = wire_empty_add(&out, 0, WIRE_START);
	if (r == 0 && send(sock, buf_data(&out), out.n, MSG_NOSIGNAL) < 0)
		r = 1;
	buf_done(&out);
	return r < 0 ? err_errno(e, r, "cannot start '%s'", b->name) : r;
}

/* ---- the supervisor ---- */

/* The words before the supervisor's name: a systemd scope, where there is a manager. NULL: none. */
static char **scope_words(const struct sandbox *b)
{
	/* QEMU needs room beside the guest's memory: its code, translation buffer, device state; the proxy for what
	 * waits in its sockets. */
	struct sys_scope scope = { .id = b->id,
				   .text = b->name,
				   .memory_max = b->memory + ((uint64_t)1024 << 20),
				   .tasks_max = 96 + b->cpus };
	struct sys_systemd m;
	char **words = NULL;

	if (sys_systemd_find(&m) == 1) {
		words = sys_scope_argv(&m, &scope);
		sys_systemd_done(&m);
	}
	return words;
}

enum { WORDS_MAX = 32 };

static int spawn(struct ctx *c, const struct sandbox *b, const struct plan *p, int orders, int lock,
		 int ready, int shares, struct err *e)
{
	struct sys_fd fds[] = { { orders, 3 }, { lock, 4 },      { ready, 5 },
				{ shares, 6 }, { p->policy, 7 }, { p->credentials, 8 } };
	_free_ char *prog = dirs_join(c->dirs.libexec, "bac-supervisor");
	const char *argv[WORDS_MAX + 2] = { NULL };
	struct sys_cmd cmd = {
		.argv = argv, .dir = "/", .fds = fds, .n_fds = ARRAY_SIZE(fds), .outlives = true
	};
	char **words = scope_words(b);
	size_t n = 0;
	int r;

	for (; words && words[n] && n < WORDS_MAX; n++)
		argv[n] = words[n];
	argv[n] = prog;
	r = prog ? sys_spawn(&cmd, NULL, NULL, e)
		 : err_errno(e, -ENOMEM, "cannot start '%s'", b->name);
	sys_scope_free(words);
	return r;
}

/* The supervisor's one line. 0: ready; 1: the boot hung; -Exxx with its text. */
static int await(int fd, const struct sandbox *b, uint64_t deadline, struct err *e)
{
	char line[ERR_MSG_MAX + 2] = "";
	size_t n = 0;

	while (n < sizeof(line) - 1 && !strchr(line, '\n')) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t now = fd_now_ns();
		ssize_t k;

		if (now >= deadline)
			return err_set(e, -ETIMEDOUT,
				       "sandbox '%s' does not come up; see 'bac logs %s'", b->name,
				       b->name);
		if (poll(&p, 1, (int)MIN((deadline - now) / 1000000 + 1, (uint64_t)60000)) == 0)
			continue;
		k = read(fd, line + n, sizeof(line) - 1 - n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			break;
		n += (size_t)k;
	}
	line[strcspn(line, "\n")] = '\0';
	if (line[0] == 'R') {
		/* what the guest says: err_set() makes it fit to be shown */
		if (line[1])
			(void)err_set(e, 0, "%s", line + 1);
		if (line[1])
			say("note: %s", e->msg);
		return 0;
	}
	if (!line[0])
		(void)err_set(e, -EIO, "its supervisor ended without a word (see 'bac logs %s')",
			      b->name);
	else
		(void)err_set(e, -EIO, "%s", line + 1);
	(void)err_ctx(e, "cannot start '%s'", b->name);
	return line[0] == 'H' ? 1 : e->code;
}

static int one_try(struct ctx *c, const struct sandbox *b, const struct plan *p, int lock,
		   struct err *e)
{
	_close_ int orders = -1, mine = -1, theirs = -1, sender = -1, taker = -1;
	int pipefd[2], pair[2], r;

	r = write_orders(b, p, &orders, e);
	if (r < 0)
		return r;
	if (pipe2(pipefd, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "cannot start '%s'", b->name);
	mine = pipefd[0];
	theirs = pipefd[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, -errno, "cannot start '%s'", b->name);
	sender = pair[0];
	taker = pair[1];
	r = spawn(c, b, p, orders, lock, theirs, taker, e);
	if (r < 0)
		return r;
	theirs = fd_close(theirs);
	taker = fd_close(taker);
	r = send_shares(sender, b, e);
	sender = fd_close(sender);
	if (r < 0) {
		struct err after;

		/* it ends at once, and lets go of the lock */
		(void)!await(mine, b, door_in_ms(GREET_MS), &after);
		return r;
	}
	return await(mine, b, door_in_ms(p->boot_ms * BOOT_PATIENCE + BUSY_MS), e);
}

static int lost(const struct sandbox *b, struct err *e)
{
	return err_set(
		e, -ENOENT,
		"the directory of sandbox '%s' is gone; remove what is left with 'bac rm %s'",
		b->name, b->name);
}

static int make_plan(struct ctx *c, const struct sandbox *b, const struct start_opts *o,
		     struct plan *p, struct err *e)
{
	int r;

	if (b->lost)
		return lost(b, e);
	p->hostname = o->maker ? "sandbox" : b->name;
	r = plan_paths(c, b, p, e);
	if (r == 0)
		r = plan_settings(c, p, e);
	if (r == 0)
		r = plan_rules(c, b, p, e);
	if (r == 0)
		r = plan_network(c, b, p, e);
	if (r == 0)
		r = plan_credentials(c, b, p, e);
	if (r == 0)
		r = plan_images(c, b, p, e);
	return r < 0 ? r : choose_accel(c, b, o, p, e);
}

static int connect_ready(struct ctx *c, const struct sandbox *b, struct door *ret, struct err *e)
{
	int r = start_connect(c, b, door_in_ms(GREET_MS), ret, e);

	return r > 0 ? err_set(e, -EPIPE,
			       "sandbox '%s' ended right after its start (see 'bac logs %s')",
			       b->name, b->name)
		     : r;
}

int start_locked(struct ctx *c, const struct sandbox *b, const struct start_opts *o, int lock_fd,
		 struct door *ret, struct err *e)
{
	_cleanup_(plan_done) struct plan p = { .policy = -1, .credentials = -1 };
	_close_ int lock = lock_fd;
	struct door d;
	int r;

	last_run_settle(c, b);
	r = make_plan(c, b, o, &p, e);
	if (r == 0)
		r = one_try(c, b, &p, lock, e);
	if (r > 0)
		r = one_try(c, b, &p, lock, e);
	if (r > 0)
		return e->code;
	if (r == 0)
		state_used(c->state, b);
	if (r == 0)
		r = connect_ready(c, b, &d, e);
	if (r < 0)
		return r;
	r = net_push_if_changed(c, b, p.policy, &d, e);
	if (r == 0)
		r = cred_push_if_changed(c, b, p.credentials, &d, !o->maker, e);
	if (r == 0 && !o->maker)
		r = kit_apply_start(c, b, o, e);
	if (r < 0)
		door_done(&d);
	else
		*ret = d;
	return r;
}

int start_connect(struct ctx *c, const struct sandbox *b, uint64_t deadline, struct door *ret,
		  struct err *e)
{
	_free_ char *run_dir = ctx_run_dir(c, b->id);
	int r;

	if (!run_dir)
		return err_errno(e, -ENOMEM, "cannot reach '%s'", b->name);
	r = door_open(run_dir, deadline, ret, e);
	return r == -ENOENT || r == -ECONNREFUSED ? 1 : r;
}

/* It runs, or starts, or stops: wait at the door. 0: ready. 1: it is gone, try again. */
static int join(struct ctx *c, const struct sandbox *b, struct door *ret, struct err *e)
{
	uint64_t boot_ms;
	struct wire_frame f;
	struct door d;
	int r;

	r = setting_number(c->state, "vm.bootTimeout", &boot_ms, e);
	if (r == 0)
		r = start_connect(c, b, door_in_ms(GREET_MS), &d, e);
	if (r != 0)
		return r;
	r = wire_empty_add(&d.out, 0, WIRE_WAIT);
	if (r == 0)
		r = door_answer(&d, b->name, WIRE_DONE,
				door_in_ms(boot_ms * BOOT_PATIENCE + BUSY_MS), &f, e);
	if (r == 0) {
		*ret = d;
		return 0;
	}
	door_done(&d);
	return r == -ECANCELED || r == -EPIPE ? 1 : r;
}

int start_sandbox(struct ctx *c, const struct sandbox *b, const struct start_opts *o,
		  struct door *ret, struct err *e)
{
	uint64_t deadline = door_in_ms(BUSY_MS);
	struct timespec pause = { .tv_nsec = 10000000 };
	int r, lock;

	for (;;) {
		r = join(c, b, ret, e);
		if (r <= 0) {
			if (r == 0)
				state_used(c->state, b);
			return r;
		}
		r = state_lock(c->state, b->id, 0, &lock);
		if (r == 0)
			return start_locked(c, b, o, lock, ret, e);
		if (r == -ENOENT)
			return lost(b, e);
		if (r != -EBUSY)
			return err_errno(e, r, "cannot start '%s'", b->name);
		if (fd_now_ns() > deadline)
			return err_set(
				e, r,
				"sandbox '%s' is busy: another command works on it; try again",
				b->name);
		(void)nanosleep(&pause, NULL);
	}
}
