/* Shares: one table of types, one writer and one reader of each body. */
#include "wire/share.h"

static const struct type {
	uint8_t num;
	uint8_t from;
	uint8_t fds;
} types[] = {
#define X(name, num, from, fds) { num, from, fds },
	SHARE_TYPES(X)
#undef X
};

static const struct type *type_find(uint8_t num)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].num == num)
			return &types[i];
	return NULL;
}

static void put_rules(struct wr *w, const struct share_rules *r)
{
	if (r->n > SHARE_RULES_MAX) {
		w->bad = true;
		return;
	}
	wr_be32(w, r->n);
	for (uint32_t i = 0; i < r->n; i++) {
		wr_u8(w, r->v[i].kind);
		wr_text(w, r->v[i].pattern, WIRE_PATH_MAX);
	}
}

static void put_body(struct wr *w, const struct share_msg *m)
{
	switch ((enum share_type)m->type) {
	case SHARE_ADD:
		wr_be32(w, m->add.id);
		wr_u8(w, m->add.flags);
		wr_text(w, m->add.path, WIRE_PATH_MAX);
		break;
	case SHARE_REMOVE:
		wr_be32(w, m->remove);
		break;
	case SHARE_RULES:
		put_rules(w, &m->rules);
		break;
	case SHARE_START:
		break;
	case SHARE_MARKS:
		wr_u8(w, m->marks.refuse);
		wr_be32(w, m->marks.n);
		wr_bytes(w, m->marks.p, m->marks.n);
		break;
	case SHARE_ANSWER:
		wr_be32(w, (uint32_t)m->answer.code);
		wr_cut(w, m->answer.text, WIRE_TEXT_MAX);
		break;
	case SHARE_REFUSED:
		wr_u8(w, m->refused.kind);
		wr_be32(w, m->refused.share);
		wr_be32(w, m->refused.dropped);
		wr_cut(w, m->refused.path, WIRE_PATH_MAX);
		wr_cut(w, m->refused.rule, WIRE_PATH_MAX);
		wr_cut(w, m->refused.op, WIRE_NAME_MAX);
		break;
	case SHARE_CHANGED:
		wr_be32(w, m->changed.id);
		wr_u8(w, m->changed.kind);
		wr_u8(w, m->changed.dir);
		wr_text(w, m->changed.path, WIRE_PATH_MAX);
		break;
	}
}

ssize_t share_put(const struct share_msg *m, void *p, size_t max)
{
	struct wr w = wr_init(p, MIN(max, (size_t)SHARE_MSG_MAX));

	wr_u8(&w, m->type);
	wr_be32(&w, m->seq);
	put_body(&w, m);
	return wr_ok(&w) ? (ssize_t)w.n : -ENOBUFS;
}

static void get_add(struct rd *r, struct share_add *ret)
{
	ret->id = rd_be32(r);
	ret->flags = rd_u8(r);
	ret->path = rd_str(r, WIRE_PATH_MAX);
	if ((ret->flags & ~SHARE_FLAGS) || ret->path[0] != '/')
		r->bad = true;
}

static void get_rules(struct rd *r, struct share_rules *ret)
{
	ret->n = rd_be32(r);
	if (ret->n > SHARE_RULES_MAX)
		r->bad = true;
	for (uint32_t i = 0; i < ret->n && !r->bad; i++) {
		ret->v[i].kind = rd_u8(r);
		ret->v[i].pattern = rd_str(r, WIRE_PATH_MAX);
		if (ret->v[i].kind < SHARE_HIDE || ret->v[i].kind > SHARE_ALLOW)
			r->bad = true;
	}
}

static void get_marks(struct rd *r, struct share_marks *ret)
{
	const uint8_t refuse = rd_u8(r);

	ret->refuse = refuse;
	ret->n = rd_be32(r);
	ret->p = rd_take(r, ret->n);
	if (refuse > 1)
		r->bad = true;
}

static void get_refused(struct rd *r, struct share_refused *ret)
{
	ret->kind = rd_u8(r);
	ret->share = rd_be32(r);
	ret->dropped = rd_be32(r);
	ret->path = rd_str(r, WIRE_PATH_MAX);
	ret->rule = rd_str(r, WIRE_PATH_MAX);
	ret->op = rd_str(r, WIRE_NAME_MAX);
	if (!ret->kind || ret->kind == SHARE_ALLOW || ret->kind > SHARE_LEAK_REFUSED)
		r->bad = true;
}

static void get_changed(struct rd *r, struct wire_changed *ret)
{
	ret->id = rd_be32(r);
	ret->kind = rd_u8(r);
	ret->dir = rd_u8(r);
	ret->path = rd_str(r, WIRE_PATH_MAX);
	if (!ret->kind || ret->kind >= CHANGED_N || ret->dir > 1)
		r->bad = true;
}

static void get_body(struct rd *r, struct share_msg *ret)
{
	switch ((enum share_type)ret->type) {
	case SHARE_ADD:
		get_add(r, &ret->add);
		break;
	case SHARE_REMOVE:
		ret->remove = rd_be32(r);
		break;
	case SHARE_RULES:
		get_rules(r, &ret->rules);
		break;
	case SHARE_START:
		break;
	case SHARE_MARKS:
		get_marks(r, &ret->marks);
		break;
	case SHARE_ANSWER:
		ret->answer.code = (int32_t)rd_be32(r);
		ret->answer.text = rd_str(r, WIRE_TEXT_MAX);
		if (ret->answer.code > 0 || ret->answer.code < -4095)
			r->bad = true;
		break;
	case SHARE_REFUSED:
		get_refused(r, &ret->refused);
		break;
	case SHARE_CHANGED:
		get_changed(r, &ret->changed);
		break;
	}
}

int share_parse(struct share_msg *ret, enum share_from from, const void *p, size_t n, size_t n_fds)
{
	struct rd r = rd_init(p, n);
	const struct type *t;
	struct share_msg m;

	if (n > SHARE_MSG_MAX)
		return WIRE_E_TOO_LARGE;
	m.type = rd_u8(&r);
	m.seq = rd_be32(&r);
	t = type_find(m.type);
	if (r.bad || !t || t->from != from || t->fds != n_fds)
		return WIRE_E_MALFORMED;
	get_body(&r, &m);
	if (!rd_done(&r))
		return WIRE_E_MALFORMED;
	*ret = m;
	return WIRE_OK;
}
