/* Several kits become one.
 *
 * First what extends what: beginning with the farthest parent, each child is put over what there is so far. Then mixins, in order. Both are the same step (put_over), with two
 * differences: a child may say what its parent said (a scalar: the child's; a credential or a volume that both have: refused), and a mixin has no sandbox of its own. All of it is
 * copied into the result. Credentials are composed last, as a text that is read again, since their declarations point into what they were read from. */
#include <stdio.h>

#include "kit/kit.h"

struct composer {
	struct kit *k;
	struct kit_report *rep;
	struct pool *pool;
	const struct kit
		*kits[KIT_EXTENDS_MAX + 1 + KIT_MIXINS_MAX]; /* in the order of their merge */
	size_t n_kits, n_family;                             /* parents and the base come first */
	struct declared all[DECLARE_MAX];                    /* borrowed, but v[] */
	size_t n_all;
};

#define SAY(c, ...) report_fault_at((c)->rep, NULL, 0, 0, __VA_ARGS__)

/* ---- copies ---- */
static char *text(struct composer *c, const char *s)
{
	return s ? pool_text(c->pool, s, strlen(s)) : NULL;
}

static struct kit_texts texts(struct composer *c, const struct kit_texts *t)
{
	struct kit_texts r = { .v = pool_zero(c->pool, t->n + 1, sizeof(char *)) };
	size_t i;

	for (i = 0; r.v && i < t->n; i++)
		r.v[i] = text(c, t->v[i]);
	r.n = r.v ? t->n : 0;
	return r;
}

/* The array with room for more behind it: a new one, the old one stays in the pool. */
static void *longer(struct composer *c, const void *v, size_t n, size_t more, size_t size)
{
	char *all = pool_zero(c->pool, n + more + 1, size);

	if (all && n)
		memcpy(all, v, n * size);
	return all;
}

/* Those that are not there yet, behind those that are. */
static void unite(struct composer *c, struct kit_texts *into, const struct kit_texts *from)
{
	size_t i, k;
	char **v = longer(c, into->v, into->n, from->n, sizeof(*v));

	if (!v)
		return;
	into->v = v;
	for (i = 0; i < from->n; i++) {
		for (k = 0; k < into->n && !streq(v[k], from->v[i]); k++)
			;
		if (k == into->n)
			v[into->n++] = text(c, from->v[i]);
	}
}

/* ---- lists ---- */
static void add_steps(struct composer *c, struct kit_step **into, size_t *n,
		      const struct kit_step *from, size_t more)
{
	struct kit_step *v = longer(c, *into, *n, more, sizeof(*v));
	size_t i;

	for (i = 0; v && i < more; i++) {
		const struct kit_texts argv = { .v = from[i].argv, .n = from[i].argc };

		v[*n + i] = (struct kit_step) { .argv = texts(c, &argv).v,
						.argc = argv.n,
						.user = text(c, from[i].user),
						.description = text(c, from[i].description),
						.background = from[i].background,
						.kit = text(c, from[i].kit) };
	}
	if (v) {
		*into = v;
		*n += more;
	}
}

static void add_files(struct composer *c, const struct kit *from)
{
	struct kit *k = c->k;
	struct kit_setup_file *v = longer(c, k->files, k->n_files, from->n_files, sizeof(*v));
	size_t i;

	for (i = 0; v && i < from->n_files; i++) {
		const struct kit_setup_file *f = &from->files[i];

		v[k->n_files + i] =
			(struct kit_setup_file) { .path = text(c, f->path),
						  .content = text(c, f->content),
						  .description = text(c, f->description),
						  .mode = f->mode,
						  .only_if_missing = f->only_if_missing,
						  .kit = text(c, f->kit) };
	}
	if (v) {
		k->files = v;
		k->n_files += from->n_files;
	}
}

/* A port that is there already is published once. */
static void add_ports(struct composer *c, const struct kit *from)
{
	struct kit *k = c->k;
	struct kit_port *v = longer(c, k->ports, k->n_ports, from->n_ports, sizeof(*v));
	size_t i, j;

	if (!v)
		return;
	k->ports = v;
	for (i = 0; i < from->n_ports; i++) {
		const struct kit_port *p = &from->ports[i];

		for (j = 0; j < k->n_ports; j++)
			if (v[j].container == p->container &&
			    (v[j].protocol == KIT_UDP) == (p->protocol == KIT_UDP))
				break;
		if (j == k->n_ports)
			v[k->n_ports++] = (struct kit_port) { .container = p->container,
							      .protocol = p->protocol,
							      .name = text(c, p->name),
							      .kit = text(c, p->kit) };
	}
}

/* What one kit puts in front of PATH, in front of what the kits before it put there. */
static char *path_over(struct composer *c, const char *new, const char *old)
{
	struct buf out = BUF_INIT((size_t)2 * YAML_MAX);
	char *s = NULL;

	if (kit_path(new, old, &out) == 0 && buf_str(&out))
		s = pool_text(c->pool, buf_str(&out), out.n);
	else
		c->pool->failed = true;
	buf_done(&out);
	return s;
}

static void add_vars(struct composer *c, const struct kit *from)
{
	struct kit *k = c->k;
	struct kit_var *v = longer(c, k->vars, k->n_vars, from->n_vars, sizeof(*v));
	size_t i, j;

	if (!v)
		return;
	k->vars = v;
	for (i = 0; i < from->n_vars; i++) {
		const struct kit_var *one = &from->vars[i];

		for (j = 0; j < k->n_vars && !streq(v[j].name, one->name); j++)
			;
		v[j].value = j < k->n_vars && streq(one->name, "PATH")
				     ? path_over(c, one->value, v[j].value)
				     : text(c, one->value);
		v[j].kit = text(c, one->kit);
		if (j == k->n_vars) {
			v[j].name = text(c, one->name);
			k->n_vars++;
		}
	}
}

static void add_volumes(struct composer *c, const struct kit *from, bool mixin)
{
	struct kit *k = c->k;
	struct kit_volume *v = longer(c, k->volumes, k->n_volumes, from->n_volumes, sizeof(*v));
	size_t i, j;

	if (!v)
		return;
	k->volumes = v;
	for (i = 0; i < from->n_volumes; i++) {
		const struct kit_volume *one = &from->volumes[i];

		for (j = 0; j < k->n_volumes && !streq(v[j].path, one->path); j++)
			;
		if (j < k->n_volumes && !mixin)
			SAY(c, "volume %.100s defined in both %s and %s", one->path, v[j].kit,
			    one->kit);
		v[j] = (struct kit_volume) { .path = text(c, one->path),
					     .tmpfs = one->tmpfs,
					     .size = one->size,
					     .mode = one->mode,
					     .kit = text(c, one->kit) };
		k->n_volumes += j == k->n_volumes;
	}
}

/* A child's file has its name and its own content behind its parent's; a mixin's content stays apart. */
static void add_instructions(struct composer *c, const struct kit *from, bool mixin)
{
	struct kit *k = c->k;
	const struct kit_instructions *new = from->instructions;
	struct kit_instructions *v, *old;

	if (!from->n_instructions)
		return;
	if (!mixin && k->n_instructions) {
		old = &k->instructions[0];
		old->filename = new->filename ? text(c, new->filename) : old->filename;
		if (new->content && old->content && * old->content) {
			size_t n = strlen(old->content) + strlen(new->content) + 2;
			char *both = pool_zero(c->pool, n + 1, 1);

			if (both)
				(void)snprintf(both, n + 1, "%s%s%s", old->content,
					       old->content[strlen(old->content) - 1] == '\n'
						       ? "\n"
						       : "\n\n",
					       new->content);
			old->content = both;
		} else if (new->content) {
			old->content = text(c, new->content);
		}
		old->kit = text(c, from->name);
		return;
	}
	v = longer(c, k->instructions, k->n_instructions, 1, sizeof(*v));
	if (!v)
		return;
	k->instructions = v;
	v[k->n_instructions++] = (struct kit_instructions) { .filename = text(c, new->filename),
							     .content = text(c, new->content),
							     .kit = text(c, from->name) };
}

/* ---- credentials ---- */
static bool only_routes(const struct declared *d)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		if (d->v[i].kind != CRED_HEADER && d->v[i].kind != CRED_BASIC)
			return false;
	return d->n && !d->env && !d->required && !d->managed;
}

static void add_routes(struct composer *c, struct declared *into, const struct declared *from)
{
	struct cred_use *v = longer(c, into->v, into->n, from->n, sizeof(*v));

	if (!v)
		return;
	memcpy(v + into->n, from->v, from->n * sizeof(*v));
	into->v = v;
	into->n += from->n;
}

static const char *owner(const struct composer *c, const char *service, const struct kit *but)
{
	size_t i, j;

	for (i = 0; i < c->n_kits && c->kits[i] != but; i++)
		for (j = 0; j < c->kits[i]->credentials.n; j++)
			if (streq(c->kits[i]->credentials.v[j].service, service))
				return c->kits[i]->name;
	return "another kit";
}

static void add_credentials(struct composer *c, const struct kit *from, bool mixin)
{
	size_t i, j;

	for (i = 0; i < from->credentials.n; i++) {
		const struct declared *one = &from->credentials.v[i];

		for (j = 0; j < c->n_all && !streq(c->all[j].service, one->service); j++)
			;
		if (j == DECLARE_MAX) {
			SAY(c, "more than %d credentials", DECLARE_MAX);
			return;
		}
		if (j == c->n_all)
			c->all[c->n_all++] = *one;
		else if (mixin && only_routes(one))
			add_routes(c, &c->all[j], one);
		else
			SAY(c, "credential %s defined in both %s and %s", one->service,
			    owner(c, one->service, from), from->name);
	}
}

static int read_credentials(struct composer *c, struct err *e)
{
	struct kit all = { .credentials = { .v = c->all, .n = c->n_all } };
	struct buf out = BUF_INIT(CRED_TEXT_MAX);
	int r;

	if (!c->n_all)
		return 0;
	r = kit_write_credentials(&all, &out);
	r = r < 0 ? err_errno(e, r, "cannot compose credentials")
		  : declare_parse("kit", c->k->name, (const char *)buf_data(&out), out.n,
				  &c->k->credentials, e);
	buf_done(&out);
	return r;
}

/* ---- scalars ---- */
static void put_text(struct composer *c, char **into, const char *from)
{
	if (from)
		*into = text(c, from);
}

/* `command` of a child takes the place of all that follows its parent's program. */
static void put_command(struct composer *c, const struct kit *from)
{
	struct kit *k = c->k;

	if (!from->entrypoint.n && !from->has_command && !from->has_interactive)
		return;
	if (from->entrypoint.n)
		k->entrypoint = texts(c, &from->entrypoint);
	else if (k->entrypoint.n > 1)
		k->entrypoint.n = 1;
	if (k->entrypoint.v)
		k->entrypoint.v[k->entrypoint.n] = NULL;
	k->command = texts(c, &from->command);
	k->interactive = texts(c, &from->interactive);
	k->has_command = from->has_command;
	k->has_interactive = from->has_interactive;
}

static void put_scalars(struct composer *c, const struct kit *from)
{
	struct kit *k = c->k;

	k->kind = KIT_SANDBOX;
	k->version = from->version;
	put_text(c, &k->name, from->name);
	put_text(c, &k->kit_version, from->kit_version);
	put_text(c, &k->display_name, from->display_name);
	put_text(c, &k->description, from->description);
	put_text(c, &k->source_url, from->source_url);
	put_text(c, &k->image, from->image);
	put_text(c, &k->gpu, from->gpu);
	if (from->cpu > 0)
		k->cpu = from->cpu;
	if (from->memory)
		k->memory = from->memory;
	put_command(c, from);
	unite(c, &k->licenses, &from->licenses);
	unite(c, &k->locked, &from->locked);
	unite(c, &k->mixins, &from->mixins);
}

static void put_over(struct composer *c, const struct kit *from, bool mixin)
{
	struct kit *k = c->k;

	if (!mixin)
		put_scalars(c, from);
	k->privileged |= from->privileged;
	unite(c, &k->allow, &from->allow);
	unite(c, &k->deny, &from->deny);
	add_ports(c, from);
	add_vars(c, from);
	add_steps(c, &k->install, &k->n_install, from->install, from->n_install);
	add_steps(c, &k->startup, &k->n_startup, from->startup, from->n_startup);
	add_files(c, from);
	add_volumes(c, from, mixin);
	add_instructions(c, from, mixin);
	add_credentials(c, from, mixin);
}

/* ---- what may be composed ---- */
/* What a parent has locked, and its child says. */
static void check_locked(struct composer *c, const struct kit *parent, const struct kit *child)
{
	const struct {
		const char *path;
		bool said;
	} t[] = {
		{ "sandbox.image", child->image },
		{ "sandbox.entrypoint", child->entrypoint.n },
		{ "sandbox.command", child->has_command || child->has_interactive },
		{ "sandbox.resources.cpu", child->cpu > 0 },
		{ "sandbox.resources.memory", child->memory },
		{ "agentInstructions.filename",
		  child->n_instructions && child->instructions[0].filename },
		{ "security.privileged", child->privileged },
	};
	size_t i, j, n;

	for (i = 0; i < parent->locked.n; i++)
		for (j = 0; j < ARRAY_SIZE(t); j++) {
			n = strlen(parent->locked.v[i]);
			if (t[j].said && !strncmp(t[j].path, parent->locked.v[i], n) &&
			    (!t[j].path[n] || t[j].path[n] == '.'))
				SAY(c, "kit %s sets %s, which its parent %s has locked",
				    child->name, t[j].path, parent->name);
		}
}

static bool is_of_family(const struct composer *c, const char *name)
{
	size_t i;

	for (i = 0; i < c->n_family; i++)
		if (streq(c->kits[i]->name, name))
			return true;
	return false;
}

static void check_kits(struct composer *c)
{
	const struct kit *base = c->kits[c->n_family - 1];
	size_t i, j;

	for (i = 0; i < c->n_kits; i++) {
		const struct kit *k = c->kits[i];
		bool mixin = i >= c->n_family;

		for (j = 0; j < i; j++)
			if (streq(c->kits[j]->name, k->name)) {
				if (!mixin)
					SAY(c, "kit %s extends itself", k->name);
				else
					SAY(c, "duplicate kit name \"%s\"", k->name);
			}
		if (mixin && k->kind != KIT_MIXIN)
			SAY(c, "kit %s must be kind mixin, got sandbox", k->name);
		else if (!mixin && k->kind != KIT_SANDBOX)
			SAY(c, "kit %s must be kind sandbox, got mixin", k->name);
		else if (mixin && k->requires_agent && !is_of_family(c, k->requires_agent))
			SAY(c, "kit %s requires the agent %s, got %s", k->name, k->requires_agent,
			    base->name);
	}
	for (i = 0; i + 1 < c->n_family; i++)
		for (j = i + 1; j < c->n_family; j++)
			check_locked(c, c->kits[i], c->kits[j]);
}

/* A parent that is not there leaves the kit without what it extends: whoever found the chain is asked for all of it. */
static int gather(struct composer *c, const struct kit *base, const struct kit *const *parents,
		  size_t n_parents, const struct kit *const *mixins, size_t n_mixins, struct err *e)
{
	const struct kit *last = n_parents ? parents[n_parents - 1] : base;
	size_t i;

	if (n_parents > KIT_EXTENDS_MAX)
		return err_set(e, -EINVAL, "kit %s extends more than %d levels deep", base->name,
			       KIT_EXTENDS_MAX);
	if (n_mixins > KIT_MIXINS_MAX)
		return err_set(e, -EINVAL, "more than %d mixins", KIT_MIXINS_MAX);
	if (last->extends)
		return err_set(e, -EINVAL, "kit %s extends '%s', which was not found", last->name,
			       last->extends);
	for (i = n_parents; i-- > 0;)
		c->kits[c->n_kits++] = parents[i];
	c->kits[c->n_kits++] = base;
	c->n_family = c->n_kits;
	for (i = 0; i < n_mixins; i++)
		c->kits[c->n_kits++] = mixins[i];
	check_kits(c);
	return report_result(c->rep, e);
}

static int merge(struct composer *c, struct err *e)
{
	size_t i;
	int r;

	for (i = 0; i < c->n_kits; i++)
		put_over(c, c->kits[i], i >= c->n_family);
	if (!c->k->image)
		SAY(c, "kit %s has no image: neither it nor what it extends names one", c->k->name);
	if (c->pool->failed)
		return err_set(e, -ENOMEM, "out of memory");
	r = report_result(c->rep, e);
	return r == 0 ? read_credentials(c, e) : r;
}

int kit_compose(const struct kit *base, const struct kit *const *parents, size_t n_parents,
		const struct kit *const *mixins, size_t n_mixins, struct kit *ret,
		struct kit_report *rep, struct err *e)
{
	struct composer *c = calloc(1, sizeof(*c));
	struct kit k = { 0 };
	int r;

	if (!c)
		return err_set(e, -ENOMEM, "out of memory");
	c->k = &k;
	c->rep = rep;
	c->pool = &k.pool;
	r = gather(c, base, parents, n_parents, mixins, n_mixins, e);
	if (r == 0)
		r = merge(c, e);
	free(c);
	if (r < 0)
		kit_done(&k);
	else
		*ret = k;
	return r;
}
