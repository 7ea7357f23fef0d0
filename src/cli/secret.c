/* bac secret: the table of its commands, and what they share. */
#include "cli/secret.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/text.h"
#include "config.h"
#include "cli/cmds.h"
#include "cli/cred-push.h"
#include "cli/policy.h"
#include "io/fd.h"

/* No core of this process, and nobody but root looks into it: values pass through. */
static int close_up(struct err *e)
{
	const struct rlimit none = { 0, 0 };

	/* what looks for leaks at the end has to look into us */
	if ((!BAC_SANITIZED && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) ||
	    setrlimit(RLIMIT_CORE, &none) < 0)
		return err_errno(e, -errno, "cannot keep secrets out of core dumps");
	return 0;
}

/* By name or id; by id also one that is gone and has left secrets behind. */
static int find_sandbox(struct secret *s, const char *name, struct err *e)
{
	int r = state_get(s->c.state, name, &s->b, e);
	size_t n = strlen(name), i;

	if (r != -ENOENT || n != STATE_ID_MAX)
		return r;
	for (i = 0; i < s->n; i++)
		if (!strncmp(s->entries[i].key, name, n) && s->entries[i].key[n] == '/')
			break;
	if (i == s->n)
		return r;
	memcpy(s->b.id, name, n + 1);
	s->b.name = strdup(name);
	return s->b.name ? 0 : err_errno(e, -ENOMEM, "cannot find '%s'", name);
}

int secret_begin(struct secret *s, const struct secret_args *o, struct err *e)
{
	int r;

	*s = (struct secret) { .o = o };
	r = close_up(e);
	if (r == 0)
		r = ctx_open(&s->c, e);
	if (r == 0)
		r = services_load(&s->services, e);
	if (r == 0)
		r = compose_store(&s->c, &s->store, e);
	if (r == 0)
		r = store_list(s->store, &s->entries, &s->n, e);
	return r == 0 && o->sandbox ? find_sandbox(s, o->sandbox, e) : r;
}

void secret_done(struct secret *s)
{
	store_list_done(s->entries, s->n);
	s->store = store_close(s->store);
	services_done(&s->services);
	sandbox_done(&s->b);
	ctx_done(&s->c);
}

const char *secret_scope(const struct secret *s)
{
	return s->b.id[0] ? s->b.id : "global";
}

const char *secret_of(const struct secret *s, char *dst, size_t max)
{
	dst[0] = '\0';
	if (s->b.id[0])
		(void)snprintf(dst, max, " of sandbox '%s'", s->b.name);
	return dst;
}

const struct store_entry *secret_find(const struct secret *s, const char *kind, const char *name)
{
	char key[STORE_KEY_MAX + 1];
	size_t i;

	(void)compose_key(key, secret_scope(s), kind, name);
	for (i = 0; i < s->n; i++)
		if (streq(s->entries[i].key, key))
			return &s->entries[i];
	return NULL;
}

/* ---- a sandbox's own ---- */
static void own_path(const char *id, char ret[64])
{
	(void)snprintf(ret, 64, "%s/secrets", id);
}

bool secret_has_own(struct ctx *c, const struct sandbox *b)
{
	char path[64];

	own_path(b->id, path);
	return faccessat(state_sandboxes_fd(c->state), path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void secret_forget(struct ctx *c, const struct sandbox *b, bool had)
{
	_cleanup_(store_closep) struct store *store = NULL;
	struct err e = { 0 };
	int r = had ? compose_store(c, &store, &e) : 0;

	if (r == 0 && had)
		r = store_remove_scope(store, b->id, &e);
	if (r < 0)
		say("the secrets of '%s' are still stored (%s); remove them with: bac secret rm "
		    "--all "
		    "--sandbox %s",
		    b->name, e.msg, b->id);
}

static int empty_store(struct ctx *c, struct err *e)
{
	_cleanup_(store_closep) struct store *store = NULL;
	struct store_entry *v = NULL;
	size_t n = 0, i;
	int r = compose_store(c, &store, e);

	if (r == 0)
		r = store_list(store, &v, &n, e);
	for (i = 0; i < n && r == 0; i++)
		r = store_remove(store, v[i].key, e);
	store_list_done(v, n);
	return r;
}

void secret_forget_all(struct ctx *c)
{
	static const char *const files[] = { "secrets.json", "secrets.lock", "credentials.yaml",
					     "credentials.lock" };
	struct err e = { 0 };
	size_t i;

	if (store_is_used(c->dirs.config) && empty_store(c, &e) < 0) {
		say("secrets are still stored: %s", e.msg);
		return;
	}
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		_free_ char *path = dirs_join(c->dirs.config, files[i]);

		if (path && unlink(path) < 0 && errno != ENOENT && errno != ENOTDIR)
			say("cannot remove %s: %s", path, err_text(errno));
	}
}

int secret_put(struct secret *s, const char *kind, const char *name, struct store_entry *entry,
	       const char *value, size_t n, struct err *e)
{
	char key[STORE_KEY_MAX + 1], path[64];
	int r = 0;

	if (s->b.id[0]) {
		own_path(s->b.id, path);
		r = fd_replace_file(state_sandboxes_fd(s->c.state), path, 0600, "", 0);
	}
	if (r < 0)
		return err_errno(e, r, "cannot note that '%s' has secrets", s->b.name);
	entry->key = (char *)compose_key(key, secret_scope(s), kind, name);
	return store_put(s->store, entry, value, n, e);
}

int secret_tell(struct secret *s, struct err *e)
{
	return cred_push(&s->c, s->b.id[0] ? &s->b : NULL, e);
}

int secret_refresh(const char *text, int64_t standard, int64_t *ret, struct err *e)
{
	uint64_t ms;

	*ret = standard;
	if (!text)
		return 0;
	*ret = 0;
	if (streq(text, "on-demand"))
		return 0;
	if (text_duration_ms(text, &ms) < 0 || ms < 1000)
		return err_set(e, -EINVAL,
			       "--refresh: '%.40s' is neither on-demand nor a time (as in 55m)",
			       text);
	*ret = (int64_t)(ms / 1000);
	return 0;
}

/* ---- the network ---- */
/* A host of a resource: stars become a letter. False for ranges. */
static bool sample(const char *resource, struct host *ret, uint16_t *ret_port)
{
	char text[NET_RESOURCE_MAX + 1];
	struct err none;
	size_t n = 0;

	for (; *resource && n + 1 < sizeof(text); resource++) {
		if (*resource == '*' && n && text[n - 1] == 'x')
			continue;
		text[n++] = (char)(*resource == '*' ? 'x' : *resource);
	}
	text[n] = '\0';
	if (strchr(text, ',') || strchr(text, '/'))
		text[strcspn(text, ",/")] = '\0';
	if (host_port_parse(ret, ret_port, text, strlen(text), &none) < 0)
		return false;
	*ret_port = *ret_port ? *ret_port : 443;
	return true;
}

bool secret_reaches(const struct net_policy *p, const char *resource)
{
	struct net_request q = { 0 };
	struct host h;

	if (!sample(resource, &h, &q.port))
		return true;
	q.host = &h;
	return net_decide(p, &q).verdict != NET_DENY;
}

static int list_denied(const struct net_policy *p, const struct cred_set *set, const char *service,
		       struct buf *out)
{
	const struct cred_use *u;
	int r = 0;
	size_t i;

	for (i = 0; r == 0 && (u = cred_at(set, i)); i++)
		if (streq(u->service, service) && u->state == CRED_READY &&
		    !secret_reaches(p, u->resource))
			r = buf_printf(out, "%s%s", out->n ? "," : "", u->resource);
	return r;
}

int secret_uses(struct secret *s, struct cred_set **ret, struct err *e)
{
	struct buf out = BUF_INIT(COMPOSE_FILE_MAX);
	struct compose_source source;
	_close_ int lock = -1;
	size_t n = 0, text_n = 0;
	int r = cred_lock(&s->c, &lock, e);

	if (r < 0)
		return r;
	r = compose_source(&s->c, &source, e);
	if (r == 0)
		r = compose_file(&s->c, &source, s->b.id[0] ? &s->b : NULL, false, &out, NULL, &n,
				 e);
	if (r == 0)
		r = cred_file_split((const char *)buf_data(&out), out.n, &text_n);
	if (r == 0)
		r = cred_text_parse((const char *)buf_data(&out), text_n, ret, e);
	compose_source_done(&source);
	buf_done(&out);
	return r;
}

void secret_hint(struct secret *s, const char *service)
{
	_cleanup_(net_policy_freep) struct net_policy *p = NULL;
	_cleanup_(cred_set_freep) struct cred_set *set = NULL;
	struct buf out = BUF_INIT(4096);
	struct err none = { 0 };

	if (policy_load(&s->c, s->b.id, &p, &none) < 0 || secret_uses(s, &set, &none) < 0)
		return;
	if (list_denied(p, set, service, &out) == 0 && out.n)
		say("note: the network rules do not let sandboxes reach %s; allow it with: bac "
		    "policy allow network %s%s%s%s",
		    buf_str(&out), s->b.id[0] ? "--sandbox " : "", s->b.id[0] ? s->b.name : "",
		    s->b.id[0] ? " " : "", buf_str(&out));
	buf_done(&out);
}

/* ---- the table ---- */
#define O       SECRET_OPT
#define SANDBOX O(OPT_STR, sandbox, 0, "sandbox", "SANDBOX", "for this sandbox only")
#define SOURCE \
	O(OPT_STR, command, 0, "command", "COMMAND", \
	  "ask this command of the shell for the value, when it is needed"), \
		O(OPT_STR, ref, 0, "ref", "REFERENCE", \
		  "where the value is: op://..., arn:aws:secretsmanager:..., env:NAME, " \
		  "file:/PATH"), \
		O(OPT_STR, refresh, 0, "refresh", "on-demand|TIME", \
		  "how long what --command or --ref gave is good for")
#define FORCE(help) O(OPT_FLAG, force, 'f', "force", NULL, help)
#define JSON        O(OPT_FLAG, json, 0, "json", NULL, "print JSON")
static const struct opt set_opts[] = {
	SANDBOX,
	O(OPT_STR, token, 't', "token", "VALUE",
	  "the value; others can read it in the process list and your history"),
	SOURCE,
	O(OPT_LIST, hosts, 0, "host", "HOST[:PORT]",
	  "put it on requests to this host too; repeatable"),
	O(OPT_FLAG, oauth, 0, "oauth", NULL,
	  "the tokens of a login: those that the client on this machine has, or JSON on stdin"),
	O(OPT_STR, registry, 0, "registry", "HOST", "a password of a container registry"),
	O(OPT_STR, username, 0, "username", "NAME", "the registry's user"),
	O(OPT_FLAG, password_stdin, 0, "password-stdin", NULL,
	  "read the registry's password from stdin"),
	O(OPT_FLAG, all_sandboxes, 0, "all-sandboxes", NULL,
	  "sandboxes may use it too, not only this machine"),
	O(OPT_STR, endpoint, 0, "registry-auth-endpoint", "URL",
	  "another host that gives out the registry's tokens, and may be shown the password"),
	FORCE("replace one that is there, with --token"),
};
static const struct opt custom_opts[] = {
	O(OPT_LIST, hosts, 0, "host", "HOST[:PORT]", "where it may be used; repeatable"),
	O(OPT_STR, env, 0, "env", "VARIABLE", "the variable that holds the placeholder inside"),
	O(OPT_STR, placeholder, 0, "placeholder", "TEXT",
	  "what stands for it inside; {rand} is random in each sandbox (default: "
	  "bac-cs-{rand})"),
	O(OPT_STR, in, 0, "in", "PLACES",
	  "where it is replaced: a list of headers, basic, query, body (default: "
	  "headers,basic,query)"),
	O(OPT_STR, value, 0, "value", "VALUE",
	  "the value; others can read it in the process list and your history"),
	O(OPT_STR, token, 't', "token", "VALUE", "the same as --value"),
	SOURCE,
	SANDBOX,
	FORCE("replace one that is there"),
};
static const struct opt ls_opts[] = {
	O(OPT_FLAG, global, 0, "global", NULL, "only those for all sandboxes"),
	O(OPT_STR, sandbox, 0, "sandbox", "SANDBOX", "only those of this sandbox"),
	O(OPT_STR, service, 0, "service", "NAME", "only this one"),
	JSON,
	O(OPT_FLAG, quiet, 'q', "quiet", NULL, "only the names"),
};
static const struct opt rm_opts[] = {
	O(OPT_STR, sandbox, 0, "sandbox", "SANDBOX", "one of this sandbox"),
	O(OPT_FLAG, custom, 0, "custom", NULL, "a custom secret, named by its variable"),
	O(OPT_STR, registry, 0, "registry", "HOST", "a registry's password"),
	O(OPT_FLAG, all, 0, "all", NULL, "all of them"),
	FORCE("do not ask"),
};
static const struct opt import_opts[] = {
	O(OPT_FLAG, all, 0, "all", NULL, "all that are new, without asking"),
	O(OPT_FLAG, dry_run, 0, "dry-run", NULL, "say what would be imported"),
	FORCE("also those that are there"),
};
static const struct opt check_opts[] = {
	O(OPT_STR, sandbox, 0, "sandbox", "SANDBOX", "of this sandbox"),
};
static const struct opt services_opts[] = { JSON };

#define OPTS(list) .opts = list, .n_opts = ARRAY_SIZE(list), .size = sizeof(struct secret_args)

static const struct cmd subs[] = {
	{ .name = "set",
	  .usage = "[OPTIONS] [SERVICE]",
	  .brief = "store a key that sandboxes may use, and never see",
	  .text = "The value is asked for on the terminal, else read from stdin. Inside, the "
		  "service's variables\n"
		  "say 'proxy-managed', and the key is put on requests to the service's hosts "
		  "outside. It takes\n"
		  "effect on the next request of sandboxes that run. It opens nothing: the network "
		  "rules hold.",
	  OPTS(set_opts),
	  .max_args = 1,
	  .run = secret_run_set },
	{ .name = "set-custom",
	  .usage = "[OPTIONS]",
	  .brief = "store a key for hosts of your own",
	  .text = "Inside, VARIABLE holds a placeholder; in requests to HOST it becomes the value, "
		  "outside. Anywhere\n"
		  "else a request with the placeholder is refused.",
	  OPTS(custom_opts),
	  .max_args = 0,
	  .run = secret_run_custom },
	{ .name = "ls",
	  .usage = "[OPTIONS]",
	  .brief = "list what is stored, without values",
	  OPTS(ls_opts),
	  .max_args = 0,
	  .run = secret_run_ls },
	{ .name = "list",
	  .usage = "[OPTIONS]",
	  .brief = "the same as ls",
	  OPTS(ls_opts),
	  .max_args = 0,
	  .hidden = true,
	  .run = secret_run_ls },
	{ .name = "rm",
	  .usage = "[OPTIONS] [SERVICE]",
	  .brief = "remove a secret",
	  .text = "Sandboxes that run with it are told on their next request that it is gone.",
	  OPTS(rm_opts),
	  .max_args = 1,
	  .run = secret_run_rm },
	{ .name = "import",
	  .usage = "[OPTIONS] [SERVICE]",
	  .brief = "store keys that are in this shell's environment",
	  OPTS(import_opts),
	  .max_args = 1,
	  .run = secret_run_import },
	{ .name = "check",
	  .usage = "[OPTIONS] SERVICE",
	  .brief = "say for each host whether requests would be authenticated",
	  .text = "One line for each host, and what is missing: the secret, an approval, a network "
		  "rule. The status is\n"
		  "1 if a request to the service's first host, or to one that was declared or "
		  "added, "
		  "would not be authenticated.",
	  OPTS(check_opts),
	  .min_args = 1,
	  .max_args = 1,
	  .run = secret_run_check },
	{ .name = "services",
	  .usage = "[OPTIONS]",
	  .brief = "list the services that are known",
	  OPTS(services_opts),
	  .max_args = 0,
	  .run = secret_run_services },
	{ .name = NULL },
};

const struct cmd secret_cmd = {
	.name = "secret",
	.usage = "COMMAND",
	.brief = "keys that sandboxes may use, and never see",
	.text = "Values are kept in the desktop's keyring, else in a file that only you can read "
		"(setting secrets.store).\n"
		"docs/credentials.md says what is promised.",
	.subs = subs,
};
