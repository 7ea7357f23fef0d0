/* The proxy's conversations: one table of types, one writer and one reader of each body. */
#include "wire/proxy.h"

static const struct type {
	uint8_t num;
	char from;
	uint8_t fds;
} types[] = {
#define X(name, num, from, fds) { num, from, fds },
	PROXY_TYPES(X)
#undef X
};

static const struct type *type_find(uint8_t num)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].num == num)
			return &types[i];
	return NULL;
}

static void put_config(struct wr *w, const struct proxy_config *c)
{
	wr_text(w, c->sandbox, WIRE_NAME_MAX);
	wr_text(w, c->upstream, PROXY_URL_MAX);
	wr_text(w, c->no_proxy, PROXY_LIST_MAX);
	wr_be32(w, c->generation);
	if (c->n_connect > PROXY_CONNECT_MAX) {
		w->bad = true;
		return;
	}
	wr_be32(w, c->n_connect);
	for (uint32_t i = 0; i < c->n_connect; i++)
		wr_text(w, c->connect[i], PROXY_URL_MAX);
}

static void put_body(struct wr *w, const struct proxy_msg *m)
{
	switch ((enum proxy_type)m->type) {
	case PROXY_CONFIG:
		put_config(w, &m->config);
		break;
	case PROXY_POLICY:
	case PROXY_CREDENTIALS:
	case PROXY_PING:
	case PROXY_PONG:
		wr_be32(w, m->number);
		break;
	case PROXY_RESOLVER:
		wr_text(w, m->resolver.conf, PROXY_RESOLV_MAX);
		wr_text(w, m->resolver.hosts, PROXY_HOSTS_MAX);
		break;
	case PROXY_APPLIED:
		wr_be32(w, m->applied.number);
		wr_be32(w, (uint32_t)m->applied.code);
		wr_cut(w, m->applied.text, PROXY_TEXT_MAX);
		break;
	case PROXY_MARKS:
		if (m->marks.n > PROXY_MARKS_MAX)
			w->bad = true;
		wr_be32(w, m->marks.n);
		wr_bytes(w, m->marks.p, m->marks.n);
		break;
	case PROXY_READY:
	case PROXY_KEEPER:
	case PROXY_TRUST:
		break;
	case PROXY_SAY:
		wr_cut(w, m->say, PROXY_TEXT_MAX);
		break;
	}
}

ssize_t proxy_put(const struct proxy_msg *m, void *p, size_t max)
{
	struct wr w = wr_init(p, MIN(max, (size_t)PROXY_MSG_MAX));

	wr_u8(&w, m->type);
	put_body(&w, m);
	return wr_ok(&w) ? (ssize_t)w.n : -ENOBUFS;
}

static void get_config(struct rd *r, struct proxy_config *ret)
{
	ret->sandbox = rd_str(r, WIRE_NAME_MAX);
	ret->upstream = rd_str(r, PROXY_URL_MAX);
	ret->no_proxy = rd_str(r, PROXY_LIST_MAX);
	ret->generation = rd_be32(r);
	ret->n_connect = rd_be32(r);
	if (ret->n_connect > PROXY_CONNECT_MAX)
		r->bad = true;
	for (uint32_t i = 0; i < ret->n_connect && !r->bad; i++)
		ret->connect[i] = rd_str(r, PROXY_URL_MAX);
}

static void get_applied(struct rd *r, struct proxy_msg *ret)
{
	ret->applied.number = rd_be32(r);
	ret->applied.code = (int32_t)rd_be32(r);
	ret->applied.text = rd_str(r, PROXY_TEXT_MAX);
	if (ret->applied.code > 0 || ret->applied.code < -4095)
		r->bad = true;
}

static void get_marks(struct rd *r, struct proxy_msg *ret)
{
	ret->marks.n = rd_be32(r);
	if (ret->marks.n > PROXY_MARKS_MAX)
		r->bad = true;
	ret->marks.p = rd_take(r, ret->marks.n);
}

static void get_body(struct rd *r, struct proxy_msg *ret)
{
	switch ((enum proxy_type)ret->type) {
	case PROXY_CONFIG:
		get_config(r, &ret->config);
		break;
	case PROXY_POLICY:
	case PROXY_CREDENTIALS:
	case PROXY_PING:
	case PROXY_PONG:
		ret->number = rd_be32(r);
		break;
	case PROXY_RESOLVER:
		ret->resolver.conf = rd_str(r, PROXY_RESOLV_MAX);
		ret->resolver.hosts = rd_str(r, PROXY_HOSTS_MAX);
		break;
	case PROXY_APPLIED:
		get_applied(r, ret);
		break;
	case PROXY_MARKS:
		get_marks(r, ret);
		break;
	case PROXY_READY:
	case PROXY_KEEPER:
	case PROXY_TRUST:
		break;
	case PROXY_SAY:
		ret->say = rd_str(r, PROXY_TEXT_MAX);
		break;
	}
}

int proxy_parse(struct proxy_msg *ret, char from, const void *p, size_t n, size_t n_fds)
{
	struct rd r = rd_init(p, n);
	const struct type *t;
	struct proxy_msg m;

	if (n > PROXY_MSG_MAX)
		return WIRE_E_TOO_LARGE;
	memset(&m, 0, sizeof(m));
	m.type = rd_u8(&r);
	t = type_find(m.type);
	if (r.bad || !t || t->from != from || t->fds != n_fds)
		return WIRE_E_MALFORMED;
	get_body(&r, &m);
	if (!rd_done(&r))
		return WIRE_E_MALFORMED;
	*ret = m;
	return WIRE_OK;
}
