/* /etc/passwd and /etc/group.
 *
 * Anybody in the guest who is root may write anything there, so a line is split within its bounds and
 * a line that does not fit the form is passed over, as libc does. */
#include "guest/init/user.h"

#include <stdio.h>

#include "base/text.h"
#include "guest/init/raw.h"

enum { FIELDS_MAX = 7 };

#define ID_MAX (UINT32_MAX - 1) /* -1 means "leave it" to the kernel */

/* A line, split at ':'. The fields borrow and are not terminated. */
struct line {
	const char *p[FIELDS_MAX];
	size_t n[FIELDS_MAX];
	size_t fields; /* at least `want`, or the line is no good */
};

struct lines {
	const char *p;
	size_t n;
};

static bool next_line(struct lines *in, struct line *ret, size_t want)
{
	while (in->n) {
		const char *nl = memchr(in->p, '\n', in->n);
		const char *end = nl ? nl : in->p + in->n, *at = in->p, *colon;
		struct line l = { .fields = 0 };

		in->n -= (size_t)(end - in->p) + (nl ? 1 : 0);
		in->p = nl ? nl + 1 : end;
		if (memchr(at, '\0', (size_t)(end - at)))
			continue;
		while (l.fields < want) {
			colon = memchr(at, ':', (size_t)(end - at));
			l.p[l.fields] = at;
			l.n[l.fields++] = (size_t)((colon ? colon : end) - at);
			if (!colon)
				break;
			at = colon + 1;
		}
		if (l.fields < want || !l.n[0] || l.p[0][0] == '#')
			continue;
		*ret = l;
		return true;
	}
	return false;
}

static bool field_is(const struct line *l, size_t i, const char *s)
{
	return l->n[i] == strlen(s) && !memcmp(l->p[i], s, l->n[i]);
}

static bool field_id(const struct line *l, size_t i, uint32_t *ret)
{
	char s[16];
	uint64_t v;

	if (l->n[i] >= sizeof(s))
		return false;
	memcpy(s, l->p[i], l->n[i]);
	s[l->n[i]] = '\0';
	if (text_u64(s, ID_MAX, &v) < 0)
		return false;
	*ret = (uint32_t)v;
	return true;
}

/* Copy a field; the fallback if it is empty or too long. */
static void field_copy(const struct line *l, size_t i, char *dst, size_t max, const char *fallback)
{
	if (!l->n[i] || l->n[i] >= max) {
		(void)snprintf(dst, max, "%s", fallback);
		return;
	}
	memcpy(dst, l->p[i], l->n[i]);
	dst[l->n[i]] = '\0';
}

/* Find name, else the entry whose uid is the number in name, and fill *u. */
static bool passwd_find(const struct user_files *f, const char *name, struct user *u)
{
	struct lines in = { f->passwd, f->passwd_len };
	struct line l, by_number = { .fields = 0 };
	uint32_t uid, gid;
	uint64_t number;
	bool numeric = text_u64(name, ID_MAX, &number) == 0, found = false;

	while (!found && next_line(&in, &l, 7)) {
		if (!field_id(&l, 2, &uid) || !field_id(&l, 3, &gid))
			continue;
		if (numeric && !by_number.fields && uid == number)
			by_number = l;
		found = field_is(&l, 0, name);
	}
	if (!found && !by_number.fields)
		return false;
	if (!found)
		l = by_number;
	if (!field_id(&l, 2, &u->uid) || !field_id(&l, 3, &u->gid))
		return false;
	field_copy(&l, 0, u->name, sizeof(u->name), "?");
	field_copy(&l, 5, u->home, sizeof(u->home), "/");
	field_copy(&l, 6, u->shell, sizeof(u->shell), "/bin/sh");
	return true;
}

static int group_find(const struct user_files *f, const char *name, uint32_t *ret, struct err *e)
{
	struct lines in = { f->group, f->group_len };
	uint64_t number;
	struct line l;
	uint32_t gid;

	while (next_line(&in, &l, 3))
		if (field_is(&l, 0, name) && field_id(&l, 2, &gid)) {
			*ret = gid;
			return 0;
		}
	if (text_u64(name, ID_MAX, &number) < 0)
		return err_set(e, -ENOENT, "there is no group '%s' in the sandbox", name);
	*ret = (uint32_t)number;
	return 0;
}

static bool is_member(const struct line *l, const char *name)
{
	const char *at = l->p[3], *end = at + l->n[3];
	size_t len = strlen(name);

	while (at < end) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		const char *stop = comma ? comma : end;

		if ((size_t)(stop - at) == len && !memcmp(at, name, len))
			return true;
		at = stop + 1;
	}
	return false;
}

static void add_groups(const struct user_files *f, struct user *u)
{
	struct lines in = { f->group, f->group_len };
	struct line l;
	uint32_t gid;
	size_t i;

	while (u->n_groups < USER_GROUPS_MAX && next_line(&in, &l, 4)) {
		if (!is_member(&l, u->name) || !field_id(&l, 2, &gid) || gid == u->gid)
			continue;
		for (i = 0; i < u->n_groups && u->groups[i] != gid; i++)
			;
		if (i == u->n_groups)
			u->groups[u->n_groups++] = gid;
	}
}

int user_find(struct user *ret, const struct user_files *f, const char *spec, struct err *e)
{
	const char *colon = strchr(spec, ':');
	size_t len = colon ? (size_t)(colon - spec) : strlen(spec);
	char name[256] = "agent";
	struct user u = { .home = "/", .shell = "/bin/sh" };
	uint64_t number;
	bool known;

	if (len >= sizeof(name))
		return err_set(e, -EINVAL, "the user's name is too long");
	if (len) {
		memcpy(name, spec, len);
		name[len] = '\0';
	}
	known = passwd_find(f, name, &u);
	if (!known) {
		if (text_u64(name, ID_MAX, &number) < 0)
			return err_set(e, -ENOENT, "there is no user '%s' in the sandbox", name);
		u.uid = (uint32_t)number;
		memcpy(u.name, name, sizeof(name));
	}
	if (colon) {
		int r = group_find(f, colon + 1, &u.gid, e);

		if (r < 0)
			return r;
	} else if (known) {
		add_groups(f, &u);
	}
	*ret = u;
	return 0;
}

size_t user_read(const char *path, char *buf, size_t max)
{
	int fd = raw_open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	size_t n = 0;
	struct stat st = { 0 };
	long k = 1;

	if (fd < 0)
		return 0;
	/* a FIFO or a device could be read without end */
	if (raw(SYS_fstat, fd, (long)&st, 0) == 0 && S_ISREG(st.st_mode))
		while (n < max && (k = raw_read(fd, buf + n, max - n)) > 0)
			n += (size_t)k;
	raw_close(fd);
	return k == 0 ? n : 0;
}
