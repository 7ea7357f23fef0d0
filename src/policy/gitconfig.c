/* The new content is read as git reads it; each entry that runs a command (gitconfig-keys.c) must be
 * found, with the same value, among those of the old content. Besides keys there are two ways to lead
 * git elsewhere, which are judged by where they lead: core.worktree, by which a checkout writes files
 * to any place, and the files ".git" and "commondir", by which git takes another folder, with hooks and
 * configuration of its own, for the repository. */
#include "policy/gitconfig.h"

#include <stdio.h>

#include "policy/gitconfig-keys.h"
#include "policy/gitconfig-read.h"
#include "policy/path-part.h"

/* The next component at *at of a path, which is moved behind it; false at the end. */
static bool next_part(const char *path, size_t len, size_t *at, const char **ret, size_t *ret_n)
{
	size_t end;

	while (*at < len && path[*at] == '/')
		(*at)++;
	for (end = *at; end < len && path[end] != '/'; end++)
		;
	*ret = path + *at;
	*ret_n = end - *at;
	*at = end;
	return *ret_n > 0;
}

static bool is_name(const char *s, size_t n, const char *name)
{
	return n == strlen(name) && strncasecmp(s, name, n) == 0;
}

enum gitconfig_kind gitconfig_kind(const char *rel, size_t len)
{
	bool inside = false, refs = false;
	const char *s, *last = rel;
	size_t at = 0, n, last_n = 0;

	while (next_part(rel, len, &at, &s, &n)) {
		inside |= is_name(last, last_n, ".git");
		refs |= inside && (is_name(s, n, "refs") || is_name(s, n, "logs"));
		last = s;
		last_n = n;
	}
	if (is_name(last, last_n, ".git"))
		return GITCONFIG_LINK;
	if (is_name(last, last_n, "commondir") && inside)
		return GITCONFIG_LINK;
	if (!is_name(last, last_n, "config") && !is_name(last, last_n, "config.worktree"))
		return GITCONFIG_OTHER;
	/* a branch may be called "config" */
	return inside && !refs ? GITCONFIG_CONFIG : GITCONFIG_MAYBE;
}

/* An entry of the old content. */
struct pair {
	char *value; /* within key's allocation */
	char key[];
};

struct job {
	const char *rel; /* of the file */
	size_t len;
	struct pair **old;
	size_t n_old, n_new;
	struct gitconfig_answer *ans;
};

static const char why_worktree[] = "lets a checkout write files elsewhere";

/* A path as a list of its components. */
struct stack {
	const char *s[128];
	size_t len[128], n;
};

/* Go from where the stack is along path. False above its root, or if it is too deep. */
static bool go(struct stack *st, const char *path, size_t len)
{
	const char *s;
	size_t at = 0, n;

	while (next_part(path, len, &at, &s, &n)) {
		if (is_name(s, n, "."))
			continue;
		if (is_name(s, n, "..")) {
			if (!st->n--)
				return false;
			continue;
		}
		if (st->n == ARRAY_SIZE(st->s))
			return false;
		st->s[st->n] = s;
		st->len[st->n++] = n;
	}
	return true;
}

/* The first component called so, from 1; 0 if none is. */
static size_t find(const struct stack *st, const char *name)
{
	size_t i;

	for (i = 0; i < st->n; i++)
		if (is_name(st->s[i], st->len[i], name))
			return i + 1;
	return 0;
}

/* Whether core.worktree stays within the share and outside of repositories: git writes "../../../sub"
 * for the submodule whose configuration is .git/modules/sub/config. In other places only steps up will
 * do, since a name may be a symlink. */
static bool stays(const struct job *job, const char *value)
{
	struct stack st = { .n = 0 };
	size_t dir, git;

	if (*value == '/' || !go(&st, job->rel, job->len) || st.n < 2)
		return false;
	dir = --st.n; /* the file itself */
	git = find(&st, ".git");
	if (!git || git == st.n || !is_name(st.s[git], st.len[git], "modules"))
		return value[strspn(value, "./")] == '\0' && go(&st, value, strlen(value)) &&
		       st.n < dir && !find(&st, ".git");
	return go(&st, value, strlen(value)) && !find(&st, ".git");
}

/* Why an entry is not wanted, or NULL. */
static const char *fault_of(const struct job *job, const struct gitconfig_entry *entry)
{
	const struct gitconfig_key *key;

	if (streq(entry->key, "core.worktree"))
		return entry->value && !stays(job, entry->value) ? why_worktree : NULL;
	key = gitconfig_key_find(entry->key, entry->value);
	return key ? key->why : NULL;
}

/* For the old content: remember. The first GITCONFIG_ENTRIES_MAX are enough. */
static int remember(void *user, const struct gitconfig_entry *entry)
{
	struct job *job = user;
	size_t k = strlen(entry->key) + 1, v;
	struct pair *pair;

	if (job->n_old == GITCONFIG_ENTRIES_MAX || !fault_of(job, entry))
		return 0;
	v = strlen(entry->value) + 1;
	pair = malloc(sizeof(*pair) + k + v);
	if (!pair)
		return -ENOMEM;
	pair->value = pair->key + k;
	memcpy(pair->key, entry->key, k);
	memcpy(pair->value, entry->value, v);
	job->old[job->n_old++] = pair;
	return 0;
}

static bool was_there(const struct job *job, const struct gitconfig_entry *entry)
{
	size_t i;

	for (i = 0; i < job->n_old; i++)
		if (streq(job->old[i]->key, entry->key) && streq(job->old[i]->value, entry->value))
			return true;
	return false;
}

enum { STOP = 100 }; /* none of enum gitconfig_read */

static int refuse(struct gitconfig_answer *ans, const char *why, const char *key, unsigned line)
{
	*ans = (struct gitconfig_answer) { .adds = true, .why = why, .line = line };
	(void)snprintf(ans->key, sizeof(ans->key), "%s", key);
	return STOP;
}

/* For the new content: compare. */
static int compare(void *user, const struct gitconfig_entry *entry)
{
	struct job *job = user;
	const char *why = fault_of(job, entry);

	if (!why)
		return 0;
	if (job->n_new++ == GITCONFIG_ENTRIES_MAX)
		return refuse(job->ans, "has too many keys that run commands", "", entry->line);
	return was_there(job, entry) ? 0 : refuse(job->ans, why, entry->key, entry->line);
}

static void compare_configs(struct job *job, bool maybe, const void *old, size_t old_n,
			    const void *new, size_t new_n)
{
	struct gitconfig_answer *ans = job->ans;
	unsigned line;
	int r;

	job->old = calloc(GITCONFIG_ENTRIES_MAX, sizeof(struct pair *));
	if (!job->old || gitconfig_read(old, old_n, remember, job, &line) == -ENOMEM) {
		(void)refuse(ans, "cannot be checked: out of memory", "", 0);
		return;
	}
	r = gitconfig_read(new, new_n, compare, job, &line);
	if (r == -ENOMEM)
		(void)refuse(ans, "cannot be checked: out of memory", "", 0);
	else if (r == GITCONFIG_READ_LONG)
		(void)refuse(ans, "has a key that is too long to be checked", "", line);
	else if (r == GITCONFIG_READ_BAD && !maybe)
		(void)refuse(ans, "is not a valid git configuration", "", line);
}

/* Whether a path, as ".git" files have it, names a repository that git made below another one's ".git":
 * what lies there is ruled like that one. */
static bool leads_inside(const char *path, size_t n)
{
	size_t at = 0, k, steps = 0;
	const char *s;

	while (next_part(path, n, &at, &s, &k)) {
		if (is_name(s, k, ".git"))
			steps = 1;
		else if (steps && is_name(s, k, ".."))
			return false;
		else if (steps == 1)
			steps = is_name(s, k, "modules") || is_name(s, k, "worktrees") ? 2 : 0;
		else if (steps == 2)
			steps = 3;
	}
	return steps == 3;
}

/* For ".git" and "commondir". What has another form git refuses. */
static bool link_is_fine(const char *rel, size_t len, const char *p, size_t n)
{
	static const char word[] = "gitdir: ";

	if (memchr(p, '\0', n))
		return false;
	while (n && (p[n - 1] == '\n' || p[n - 1] == '\r'))
		n--;
	if (len >= 9 && is_name(rel + len - 9, 9, "commondir"))
		return n == 0 || (n == 5 && !memcmp(p, "../..", 5));
	if (n < sizeof(word) - 1 || memcmp(p, word, sizeof(word) - 1) != 0)
		return true;
	return leads_inside(p + sizeof(word) - 1, n - (sizeof(word) - 1));
}

struct gitconfig_answer gitconfig_adds(const char *rel, size_t len, const void *old, size_t old_n,
				       const void *new, size_t new_n)
{
	const enum gitconfig_kind kind = gitconfig_kind(rel, len);
	struct gitconfig_answer ans = { .adds = false };
	struct job job = { .rel = rel, .len = len, .ans = &ans };

	if (kind == GITCONFIG_OTHER || !new_n || (old_n == new_n && !memcmp(old, new, new_n)))
		return ans;
	if (new_n > GITCONFIG_MAX || old_n > GITCONFIG_MAX) {
		(void)refuse(&ans, "is too large to be checked", "", 0);
	} else if (kind == GITCONFIG_LINK) {
		if (!link_is_fine(rel, len, new, new_n))
			(void)refuse(&ans, "leads git to a repository elsewhere", "", 0);
	} else {
		compare_configs(&job, kind == GITCONFIG_MAYBE, old, old_n, new, new_n);
	}
	while (job.n_old)
		free(job.old[--job.n_old]);
	free(job.old);
	return ans;
}
