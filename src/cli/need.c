#include "cli/need.h"

static bool is_login(const struct cred_use *u)
{
	return u->kind == CRED_OAUTH || u->kind == CRED_TOKEN;
}

/* A key beats a login. Without either it is the key that somebody will store, if there is a place for one. */
static bool by_login(const struct declared *one, enum need_kind stored)
{
	if (stored != NEED_NONE)
		return stored == NEED_LOGIN;
	for (size_t i = 0; i < one->n; i++)
		if (!is_login(&one->v[i]))
			return false;
	return true;
}

/* The hosts at which it is not approved, each as FORMAT has it, or between them. */
static int put_hosts(const struct approvals *have, const struct declared *one, bool login,
		     bool words, struct buf *out)
{
	bool first = true;
	int r = 0;

	for (size_t i = 0; i < one->n && r == 0; i++) {
		const struct cred_use *u = &one->v[i];

		if (is_login(u) != login || approve_has(have, one->service, login, u->resource))
			continue;
		if (words)
			r = buf_printf(out, " --approve %s=%s", one->service, u->resource);
		else
			r = buf_printf(out, "%s%s", first ? "" : ", ", u->resource);
		first = false;
	}
	return r;
}

static bool is_approved(const struct approvals *have, const struct declared *one, bool login)
{
	for (size_t i = 0; i < one->n; i++)
		if (is_login(&one->v[i]) == login &&
		    !approve_has(have, one->service, login, one->v[i].resource))
			return false;
	return true;
}

static int put_start(struct buf *out, const char *origin, const char *service)
{
	return buf_printf(out, "%s%s requires the secret '%s'", out->n ? "; " : "", origin,
			  service);
}

static int need_one(const struct need *n, const char *origin, const struct declared *one,
		    struct buf *out)
{
	enum need_kind stored = n->stored ? n->stored(n->arg, one->service) : NEED_KEY;
	bool login = by_login(one, stored);
	int r = 0;

	if (stored == NEED_NONE) {
		r = put_start(out, origin, one->service);
		if (r == 0)
			r = buf_printf(out, ", and there is none (bac secret set %s%s)",
				       one->service, login ? " --oauth" : "");
	}
	if (r < 0 || !n->have || is_approved(n->have, one, login))
		return r;
	r = put_start(out, origin, one->service);
	if (r == 0)
		r = buf_printf(out, " at ");
	if (r == 0)
		r = put_hosts(n->have, one, login, false, out);
	if (r == 0)
		r = buf_printf(out, ", and nobody has approved that (add");
	if (r == 0)
		r = put_hosts(n->have, one, login, true, out);
	return r == 0 ? buf_printf(out, ")") : r;
}

int need_line(const struct need *n, const struct declarations *v, size_t n_v, struct buf *out)
{
	int r = 0;

	for (size_t i = 0; i < n_v; i++)
		for (size_t k = 0; k < v[i].n && r == 0; k++)
			if (v[i].v[k].required)
				r = need_one(n, v[i].origin, &v[i].v[k], out);
	return r;
}
