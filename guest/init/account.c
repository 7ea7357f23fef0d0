/* Lines of passwd and its kin, split within their bounds. What is not of the form stays as it is. */
#include "guest/init/account.h"

#include <stdio.h>

#include "base/text.h"

#define NAME  "agent"
#define ALIAS "agent:"

struct line {
	const char *p;
	size_t n; /* without the newline */
};

static bool next(const char **p, size_t *n, struct line *ret)
{
	const char *nl = memchr(*p, '\n', *n);

	if (!*n)
		return false;
	ret->p = *p;
	ret->n = nl ? (size_t)(nl - *p) : *n;
	*n -= ret->n + (nl ? 1 : 0);
	*p += ret->n + (nl ? 1 : 0);
	return true;
}

/* Field i (from 0); its length is -1 if there is none. */
static struct line field(const struct line *l, unsigned i)
{
	const char *at = l->p, *end = l->p + l->n, *next;
	struct line none = { NULL, 0 };

	for (; i; i--) {
		at = memchr(at, ':', (size_t)(end - at));
		if (!at)
			return none;
		at++;
	}
	none.p = at;
	next = memchr(at, ':', (size_t)(end - at));
	none.n = (size_t)((next ? next : end) - at);
	return none;
}

static bool is(const struct line *f, const char *s)
{
	return f->p && f->n == strlen(s) && !memcmp(f->p, s, f->n);
}

static bool id_of(const struct line *l, unsigned i, uint32_t *ret)
{
	struct line f = field(l, i);
	char s[16];
	uint64_t v;

	if (!f.p || f.n >= sizeof(s))
		return false;
	memcpy(s, f.p, f.n);
	s[f.n] = '\0';
	if (text_u64(s, UINT32_MAX - 1, &v) < 0)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static bool has_name(const char *p, size_t n, const char *name, struct line *ret)
{
	struct line f;

	while (next(&p, &n, ret)) {
		f = field(ret, 0);
		if (is(&f, name))
			return true;
	}
	return false;
}

static int put_line(struct buf *out, const struct line *l)
{
	int r = buf_add(out, l->p, l->n);

	return r == 0 ? buf_add(out, "\n", 1) : r;
}

/* The lines of a file, with one more in front of the first that has this id, else at the end. */
static int with_line(struct buf *out, const char *p, size_t n, const char *more, uint32_t before)
{
	bool done = false;
	struct line l;
	uint32_t id;
	int r = 0;

	while (r == 0 && next(&p, &n, &l)) {
		if (!done && id_of(&l, 2, &id) && id == before) {
			r = buf_printf(out, "%s\n", more);
			done = true;
		}
		if (r == 0)
			r = put_line(out, &l);
	}
	return r == 0 && !done ? buf_printf(out, "%s\n", more) : r;
}

int account_passwd(struct buf *out, const char *text, size_t n, uint32_t gid, const char *shell,
		   bool hidden)
{
	char more[512];
	struct line l;

	if (has_name(text, n, NAME, &l))
		return 1;
	(void)snprintf(more, sizeof(more), NAME ":%s:%u:%u::" ACCOUNT_HOME ":%s",
		       hidden ? "x" : "*", (unsigned)ACCOUNT_ID, (unsigned)gid, shell);
	return with_line(out, text, n, more, ACCOUNT_ID);
}

static bool is_strong(const struct line *l)
{
	static const char *const names[] = { "sudo", "wheel", "docker" };
	struct line f = field(l, 0);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (is(&f, names[i]))
			return true;
	return false;
}

static bool is_member(struct line members)
{
	const char *at = members.p, *end = members.p + members.n;

	while (at && at < end) {
		const char *comma = memchr(at, ',', (size_t)(end - at)) ?: end;
		struct line one = { at, (size_t)(comma - at) };

		if (is(&one, NAME))
			return true;
		at = comma < end ? comma + 1 : end;
	}
	return false;
}

/* Agent becomes a member of the strong groups. 0, 1 (nothing to do) or of buf_add(). */
static int join(struct buf *out, const char *p, size_t n)
{
	bool changed = false;
	struct line l;
	int r = 0;

	while (r == 0 && next(&p, &n, &l)) {
		struct line members = field(&l, 3);

		if (!is_strong(&l) || !members.p || is_member(members)) {
			r = put_line(out, &l);
			continue;
		}
		changed = true;
		r = buf_add(out, l.p, l.n);
		if (r == 0)
			r = buf_printf(out, "%s" NAME "\n", members.n ? "," : "");
	}
	return r == 0 && !changed ? 1 : r;
}

int account_group(struct buf *out, const char *text, size_t n, uint32_t *ret_gid)
{
	struct buf made = BUF_INIT(out->max);
	uint32_t gid = ACCOUNT_ID;
	struct line l;
	int r;

	if (has_name(text, n, NAME, &l) && id_of(&l, 2, &gid)) {
		*ret_gid = gid;
		return join(out, text, n);
	}
	r = with_line(&made, text, n, ALIAS "x:1000:", ACCOUNT_ID);
	if (r == 0)
		r = join(out, (const char *)buf_data(&made), made.n);
	buf_done(&made);
	*ret_gid = ACCOUNT_ID;
	return MIN(r, 0); /* join() has copied all in any case */
}

int account_shadow(struct buf *out, const char *text, size_t n)
{
	struct line l;
	int r;

	if (has_name(text, n, NAME, &l))
		return 1;
	r = buf_add(out, text, n);
	if (r == 0 && n && text[n - 1] != '\n')
		r = buf_add(out, "\n", 1);
	/* no password, and none that has run out: sudo asks for that, too */
	return r == 0 ? buf_printf(out, ALIAS "!:20000:0:99999:7:::\n") : r;
}
