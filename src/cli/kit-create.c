#include "cli/kit-create.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/approve.h"
#include "cli/net-push.h"
#include "io/fd.h"

enum { PROJECT_FILE_MAX = 256 * 1024, TELL_MAX = 240 };

/* ---- what has no effect, or cannot be ---- */
static int check_vars(const struct kit_box *k, struct err *e)
{
	for (size_t i = 0; i < k->kit.n_vars; i++)
		if (strchr(k->kit.vars[i].value, '\n'))
			return err_set(
				e, -EINVAL,
				"the kit '%.64s': environment.variables.%.64s has more than one "
				"line, which a variable of a sandbox cannot have",
				k->kit.vars[i].kit, k->kit.vars[i].name);
	for (size_t i = 0; i < k->env.n; i++)
		if (strchr(k->env.v[i], '\n'))
			return err_set(e, -EINVAL, "--env: a value has more than one line");
	return 0;
}

int kit_create_check(const struct sandbox *b, const struct kit_box *k, struct err *e)
{
	int r = check_vars(k, e);

	for (size_t i = 0; i < k->kit.n_ports && r == 0; i++)
		if (!i)
			say("warning: the kit '%s' publishes ports (%u%s), and this bac does not "
			    "publish ports yet",
			    k->kit.ports[0].kit, k->kit.ports[0].container,
			    k->kit.n_ports > 1 ? ", ..." : "");
	for (size_t i = 0; i < k->kit.n_volumes && r == 0; i++)
		if (!k->kit.volumes[i].tmpfs && k->kit.volumes[i].size)
			say("warning: the volume %s of the kit '%s' is a folder on the sandbox's "
			    "disk: "
			    "its size is not enforced",
			    k->kit.volumes[i].path, k->kit.volumes[i].kit);
	if (r == 0 && k->kit.gpu && *k->kit.gpu)
		say("warning: the kit '%s' wants a GPU, and sandboxes have none", k->kit.name);
	if (r == 0 && b->no_network && k->kit.n_install)
		say("warning: the kit '%s' installs something, and --network none gives it no "
		    "network for that",
		    k->kit.install[0].kit);
	return r;
}

/* ---- credentials ---- */
int kit_create_credentials(const struct kit_box *k, struct cred_files *f, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < k->n && r == 0; i++) {
		const struct kit *kit = &k->v[i].kit;
		struct buf text = BUF_INIT(YAML_MAX);

		if (k->v[i].builtin || !kit->credentials.n)
			continue;
		r = kit_write_credentials(kit, &text);
		r = r < 0 ? err_errno(e, r, "the credentials of '%s'", kit->name)
			  : cred_files_kit(f, kit->name, buf_str(&text), text.n, e);
		buf_done(&text);
	}
	return r;
}

/* ---- network ---- */
static int add_rule(struct box_rules *rules, const char *kit, const char *sandbox, bool allow,
		    const char *resource, struct err *e)
{
	const struct net_rule one = { .scope = NET_SANDBOX, .allow = allow, .resource = resource };
	char group[KIT_NAME_MAX + 8];
	int r;

	(void)snprintf(group, sizeof(group), "kit:%.64s", kit);
	r = rules_append(rules, &one, sandbox, "provisioned", group, e);
	return r < 0 ? err_ctx(e, "the kit '%s'", kit) : 0;
}

struct used {
	const struct kit_box *k;
	const struct approvals *have;
	const char *sandbox;
	struct box_rules *rules;
	struct err *e;
};

/* The kit that declares a service. */
static const struct box_kit *declarer(const struct kit_box *k, const char *service)
{
	for (size_t i = 0; i < k->n; i++)
		for (size_t d = 0; d < k->v[i].kit.credentials.n; d++)
			if (streq(k->v[i].kit.credentials.v[d].service, service))
				return &k->v[i];
	return NULL;
}

/* Where a credential goes, and nothing else of the kit: opened by its approval. */
static int add_used(void *arg, const char *service, const char *resource)
{
	struct used *u = arg;
	const struct box_kit *p = declarer(u->k, service);

	if (!p || !(p->builtin || approve_has(u->have, service, false, resource) ||
		    approve_has(u->have, service, true, resource)))
		return 0;
	return add_rule(u->rules, p->kit.name, u->sandbox, true, resource, u->e);
}

int kit_create_rules(struct ctx *c, const struct kit_box *k, const char *sandbox,
		     struct box_rules *ret, struct err *e)
{
	struct approvals have = { 0 };
	struct used u = { k, &have, sandbox, ret, e };
	int r = approve_load(c->dirs.config, &have, e);

	for (size_t i = 0; i < k->n && r == 0; i++) {
		const struct kit *kit = &k->v[i].kit;

		for (size_t a = 0; a < kit->allow.n && r == 0; a++)
			r = add_rule(ret, kit->name, sandbox, true, kit->allow.v[a], e);
		for (size_t a = 0; a < kit->deny.n && r == 0; a++)
			r = add_rule(ret, kit->name, sandbox, false, kit->deny.v[a], e);
	}
	if (r == 0) {
		*e = (struct err) { 0 };
		r = kit_unlisted(&k->kit, add_used, &u);
		if (r < 0 && !e->msg[0])
			r = err_errno(e, r, "the credentials of the kits");
	}
	approve_done(&have);
	return r;
}

static bool has_rule(const struct box_rules *rules, const char *resource)
{
	for (size_t i = 0; i < rules->n; i++)
		if (rules->v[i].allow && streq(rules->v[i].resource, resource))
			return true;
	return false;
}

struct more {
	struct used used;
	struct box_rules there;
};

static int add_missing(void *arg, const char *service, const char *resource)
{
	struct more *m = arg;

	return has_rule(&m->there, resource) ? 0 : add_used(&m->used, service, resource);
}

static int add_approved(struct ctx *c, const struct sandbox *b, const struct kit_box *k,
			struct err *e)
{
	struct approvals have = { 0 };
	struct box_rules rules = { 0 };
	struct more m = { .used = { k, &have, b->id, &rules, e } };
	_close_ int lock = -1;
	int r = rules_lock(c->state, &lock, e);

	if (r == 0)
		r = approve_load(c->dirs.config, &have, e);
	if (r == 0)
		r = rules_list(c->state, b->id, &m.there, e);
	if (r == 0)
		r = kit_unlisted(&k->kit, add_missing, &m);
	if (r == 0 && rules.n)
		r = rules_add(c->state, &rules, e);
	if (r == 0 && rules.n)
		r = net_push(c, b, e);
	rules_done(&rules);
	rules_done(&m.there);
	approve_done(&have);
	return r;
}

int kit_create_approved(struct ctx *c, const struct sandbox *b, struct err *e)
{
	struct kit_box k = { 0 };
	int r = kit_box_load(c, b->id, &k, e);

	if (r == 0 && !b->no_network && k.kit.credentials.n)
		r = add_approved(c, b, &k, e);
	kit_box_done(&k);
	return MIN(r, 0);
}

void kit_create_tell(const struct kit_box *k)
{
	for (size_t i = 0; i < k->n; i++) {
		const struct kit *kit = &k->v[i].kit;
		struct buf out = BUF_INIT(TELL_MAX);
		size_t a = 0;

		while (a < kit->allow.n &&
		       buf_printf(&out, "%s%s", a ? ", " : "", kit->allow.v[a]) == 0)
			a++;
		if (out.n)
			say("the kit '%s' opens %s%s", kit->name, buf_str(&out),
			    a < kit->allow.n ? ", ..." : "");
		buf_done(&out);
	}
}

/* ---- the project's own variables ---- */
static const char *const project_files[] = { ".env",
					     ".env.local",
					     ".envrc",
					     ".devcontainer/devcontainer.json",
					     ".devcontainer.json",
					     "docker-compose.yml",
					     "docker-compose.yaml",
					     "compose.yml",
					     "compose.yaml" };

/* A file of the user's project, which may be anything: only a plain one, below the folder, and not more of it than is sensible. */
static char *read_project(int dir, const char *path, size_t *ret_n)
{
	_close_ int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	char *text;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	text = malloc(PROJECT_FILE_MAX);
	n = text ? fd_read_all(fd, text, PROJECT_FILE_MAX) : -1;
	if (n < 0) {
		free(text);
		return NULL;
	}
	*ret_n = (size_t)n;
	return text;
}

void kit_create_project(const struct sandbox *b, const struct kit_box *k)
{
	_close_ int dir = -1;

	if (!k->kit.n_vars || !b->shares.n || !b->shares.v[0].primary)
		return;
	dir = open(b->shares.v[0].path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t f = 0; dir >= 0 && f < ARRAY_SIZE(project_files); f++) {
		size_t n = 0;
		_free_ char *text = read_project(dir, project_files[f], &n);

		for (size_t i = 0; text && i < k->kit.n_vars; i++)
			if (kit_sets(text, n, k->kit.vars[i].name))
				say("warning: the kit '%s' sets %s, and so does %s of the project: "
				    "what is started without that file has the kit's value",
				    k->kit.vars[i].kit, k->kit.vars[i].name, project_files[f]);
	}
}
