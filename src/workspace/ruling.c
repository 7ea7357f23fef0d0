/* A rule belongs to the real names below the share's root: those by which the server walks. What a name
 * says is kept with its node until names above it change (rule_epoch).
 *
 * A file that has several names is ruled by the strictest that was seen of them, even after the guest
 * forgot the node: such files are remembered by number (struct ruling_links). A guest cannot make them,
 * since it may not link ruled files, so there are few; when there is no room for one more, all files with
 * several names are protected.
 *
 * A path that is too long to be said is protected. */
#include "workspace/ruling.h"

#include <stdio.h>
#include <unistd.h>

#include "policy/gitconfig.h"
#include "policy/path.h"
#include "workspace/alias.h"
#include "workspace/place.h"

/* The path of (parent, name) in buffer i. Its length, or negative. */
static ssize_t path_in(struct fs *f, unsigned i, const struct node *parent, const char *name)
{
	ssize_t len = place_path(parent, name, f->rule_path[i], sizeof(f->rule_path[i]));

	if (len < 0)
		f->rule_path[i][0] = 0;
	return len;
}

static struct path_answer decide(struct fs *f, const struct node *parent, const char *name)
{
	ssize_t len = path_in(f, 0, parent, name);

	if (len < 0)
		return (struct path_answer) { .kind = PATH_PROTECT, .rule = "path too long" };
	return alias_decide(f, parent->share, f->rule_path[0], (size_t)len,
			    path_rules_decide(f->cfg.rules, f->rule_path[0], (size_t)len));
}

/* -EACCES, told. The path is in buffer 0. */
static int refuse(struct fs *f, const char *op, const struct share *s, enum path_rule_kind kind,
		  const char *rule)
{
	struct fs_refusal r = { .kind = (uint8_t)kind,
				.share = s ? s->id : 0,
				.path = f->rule_path[0],
				.rule = rule ? rule : "",
				.op = op };

	if (f->cfg.refused)
		f->cfg.refused(f->cfg.refused_arg, &r);
	return -EACCES;
}

static struct ruling_link *link_slot(struct ruling_links *l, const struct node_key *k)
{
	uint64_t h = (k->ino ^ k->dev << 40) * 0x9e3779b97f4a7c15U;
	size_t i = h >> 40 & (RULING_LINKS - 1);

	while (l->slot[i].kind && (l->slot[i].ino != k->ino || l->slot[i].dev != k->dev))
		i = (i + 1) & (RULING_LINKS - 1);
	return &l->slot[i];
}

/* What any name of this file was ruled, now among them. */
static enum path_rule_kind of_links(struct ruling_links *l, const struct node_key *k,
				    enum path_rule_kind now)
{
	struct ruling_link *e;

	if (!l->slot && now == PATH_FREE)
		return PATH_FREE;
	if (!l->slot)
		l->slot = calloc(RULING_LINKS, sizeof(*l->slot));
	if (!l->slot)
		return MAX(now, PATH_PROTECT);
	e = link_slot(l, k);
	if (!e->kind && l->n >= RULING_LINKS / 2)
		return MAX(now, PATH_PROTECT);
	if (!e->kind && now == PATH_FREE)
		return PATH_FREE;
	l->n += !e->kind;
	*e = (struct ruling_link) { .dev = k->dev,
				    .ino = k->ino,
				    .kind = MAX((uint8_t)now, e->kind) };
	return e->kind;
}

static enum path_rule_kind of_node(struct fs *f, struct node *n)
{
	enum gitconfig_kind git;
	enum path_rule_kind now;

	if (!n->parent || n->gone || n->rule_epoch == f->rule_epoch)
		return n->rule;
	now = decide(f, n->parent, node_name(n)).kind;
	git = gitconfig_kind(f->rule_path[0], strlen(f->rule_path[0]));
	n->rule = (uint8_t)(n->linked ? of_links(&f->ruled, &n->key, now) : now);
	n->git = (uint8_t)(n->linked && git == GITCONFIG_OTHER ? n->git : git);
	n->rule_epoch = f->rule_epoch;
	return n->rule;
}

unsigned ruling_git(struct fs *f, struct node *n)
{
	if (!f->cfg.rules)
		return GITCONFIG_OTHER;
	(void)of_node(f, n);
	return n->git;
}

int ruling_refuse(struct fs *f, const char *op, const struct share *s, const char *path,
		  const char *why)
{
	struct fs_refusal r = {
		.kind = PATH_PROTECT, .share = s ? s->id : 0, .path = path, .rule = why, .op = op
	};

	if (f->cfg.refused)
		f->cfg.refused(f->cfg.refused_arg, &r);
	return -EACCES;
}

bool ruling_hides(struct fs *f, struct node *n)
{
	return f->cfg.rules && of_node(f, n) == PATH_HIDE;
}

static int refuse_node(struct fs *f, const char *op, const struct node *n, enum path_rule_kind kind)
{
	struct path_answer a = { 0 };

	f->rule_path[0][0] = 0;
	if (n->parent)
		a = decide(f, n->parent, node_name(n));
	return refuse(f, op, n->share, kind, a.rule ? a.rule : "another name of the file");
}

int ruling_name(struct fs *f, const char *op, struct node *parent, const char *name)
{
	struct path_answer a;
	struct node *n;

	if (!f->cfg.rules)
		return 0;
	a = decide(f, parent, name);
	if (a.kind != PATH_FREE)
		return refuse(f, op, parent->share, a.kind, a.rule);
	n = node_by_name(&f->nodes, parent, name);
	if (n && of_node(f, n) != PATH_FREE)
		return refuse_node(f, op, n, n->rule);
	return 0;
}

int ruling_symlink(struct fs *f, const char *op, struct node *parent, const char *name)
{
	enum path_rule_kind kind = PATH_PROTECT;
	enum gitconfig_kind git;
	ssize_t len;

	if (!f->cfg.rules)
		return 0;
	len = path_in(f, 0, parent, name);
	if (len >= 0 && !alias_near(f, parent->share, f->rule_path[0], (size_t)len))
		kind = path_rules_below(f->cfg.rules, f->rule_path[0], (size_t)len);
	git = gitconfig_kind(f->rule_path[0], (size_t)MAX(len, 0));
	if (kind == PATH_FREE && git != GITCONFIG_CONFIG && git != GITCONFIG_LINK)
		return 0;
	return refuse(f, op, parent->share, PATH_PROTECT, "a link on the way to ruled files");
}

int ruling_moves(struct fs *f, const char *op, const struct ruling_move *m)
{
	ssize_t old, new;

	if (!f->cfg.rules)
		return 0;
	if (m->type == S_IFLNK && ruling_symlink(f, op, m->to, m->new) < 0)
		return -EACCES;
	old = path_in(f, 0, m->from, m->old);
	new = path_in(f, 1, m->to, m->new);
	if (old < 0 || new < 0)
		return refuse(f, op, m->from->share, PATH_PROTECT, "path too long");
	if (m->type != S_IFDIR)
		return 0;
	if (alias_near(f, m->from->share, f->rule_path[0], (size_t)old) ||
	    alias_near(f, m->to->share, f->rule_path[1], (size_t) new))
		return -EXDEV;
	return path_rules_may_move(f->cfg.rules, f->rule_path[0], (size_t)old, f->rule_path[1],
				   (size_t) new)
		       ? 0
		       : -EXDEV;
}

int ruling_open(struct fs *f, const char *op, struct node *n, bool write)
{
	enum path_rule_kind kind;

	if (!f->cfg.rules)
		return 0;
	kind = of_node(f, n);
	if (kind == PATH_HIDE || (kind == PATH_PROTECT && write))
		return refuse_node(f, op, n, kind);
	return 0;
}

/* The host's name of what is open. */
static ssize_t name_of(struct fs *f, int fd, char *dst, size_t max)
{
	char text[12];
	ssize_t len;

	(void)snprintf(text, sizeof(text), "%d", fd);
	len = readlinkat(f->cfg.proc_fd, text, dst, max - 1);
	if (len < 0)
		return -errno;
	dst[len] = 0;
	return len;
}

/* The host tells no name of more than 4,095 bytes: then each of the names that we know is looked at, from the file up to the share's root. */
static bool step_by_step(struct fs *f, const struct node *n, int fd)
{
	struct statx own, there;

	if (place_statx(fd, NULL, &own) < 0)
		return false;
	if (!own.stx_nlink)
		return true;
	for (; n->parent && n != n->share->root; n = n->parent) {
		int dir = place_dir(f, n->parent);

		if (dir < 0 || place_statx(dir, node_name(n), &there) < 0 ||
		    there.stx_ino != own.stx_ino || there.stx_dev_major != own.stx_dev_major ||
		    there.stx_dev_minor != own.stx_dev_minor || place_statx(dir, NULL, &own) < 0)
			return false;
	}
	return n == n->share->root;
}

bool ruling_there(struct fs *f, const struct node *n, int fd)
{
	static const char gone[] = " (deleted)";
	char *now = f->rule_path[1];
	ssize_t root, len;

	if (!f->cfg.rules || !n->share || n == n->share->root)
		return true;
	root = name_of(f, n->share->fd, f->path, sizeof(f->path));
	len = name_of(f, fd, now, sizeof(f->rule_path[1]));
	if (len == -ENAMETOOLONG)
		return step_by_step(f, n, fd);
	if (root < 0 || len < 0)
		return false;
	if (root == 1) /* "/": the share is a mount of its own */
		root = 0;
	if (len <= root || strncmp(now, f->path, (size_t)root) != 0 || now[root] != '/')
		return false;
	now += root + 1;
	len -= root + 1;
	if (n->parent && path_in(f, 0, n->parent, node_name(n)) == len &&
	    streq(now, f->rule_path[0]))
		return true;
	if (len >= (ssize_t)strlen(gone) && streq(now + len - strlen(gone), gone))
		return true;
	return alias_decide(f, n->share, now, (size_t)len,
			    path_rules_decide(f->cfg.rules, now, (size_t)len))
			       .kind == PATH_FREE &&
	       gitconfig_kind(now, (size_t)len) == GITCONFIG_OTHER;
}

int ruling_change(struct fs *f, const char *op, struct node *n)
{
	return ruling_open(f, op, n, true);
}
