/* Orders: fields in the order of one table. */
#include "wire/order.h"

static void put_list(struct wr *w, const char *const *list, uint32_t n)
{
	uint32_t i;

	wr_be32(w, n);
	if (n > ORDER_LIST_MAX)
		w->bad = true;
	for (i = 0; i < n && !w->bad; i++)
		wr_text(w, list[i], WIRE_PATH_MAX);
}

int wire_order_put(struct buf *out, const struct wire_order *m)
{
	size_t max = MIN(buf_space(out), (size_t)ORDER_MAX);
	uint8_t *to = buf_room(out, max);
	struct wr w;

	if (!to)
		return -ENOMEM;
	w = wr_init(to, max);
	wr_be32(&w, ORDER_MAGIC);
#define X(n) wr_text(&w, m->n, WIRE_PATH_MAX);
	ORDER_TEXTS(X)
#undef X
#define X(n) wr_be64(&w, m->n);
	ORDER_NUMBERS(X)
#undef X
#define X(n) put_list(&w, m->n, m->n_##n);
	ORDER_LISTS(X)
#undef X
	if (!wr_ok(&w))
		return -ENOBUFS;
	buf_added(out, w.n);
	return 0;
}

/* 0, or -ENOMEM; what is wrong makes the reader bad. */
static int take_list(struct rd *r, const char ***ret, uint32_t *ret_n)
{
	uint32_t n = rd_be32(r), i;
	const char **list;

	if (n > ORDER_LIST_MAX)
		r->bad = true;
	if (r->bad)
		return 0;
	list = calloc((size_t)n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		list[i] = rd_str(r, WIRE_PATH_MAX);
	*ret = list;
	*ret_n = n;
	return 0;
}

int wire_order_parse(struct wire_order *ret, const void *p, size_t n)
{
	struct rd r = rd_init(p, n);
	struct wire_order m = { 0 };
	int k = 0;

	if (n > ORDER_MAX)
		return WIRE_E_TOO_LARGE;
	if (rd_be32(&r) != ORDER_MAGIC)
		return WIRE_E_MALFORMED;
#define X(n) m.n = rd_str(&r, WIRE_PATH_MAX);
	ORDER_TEXTS(X)
#undef X
#define X(n) m.n = rd_be64(&r);
	ORDER_NUMBERS(X)
#undef X
#define X(n) \
	if (k == 0) \
		k = take_list(&r, &m.n, &m.n_##n);
	ORDER_LISTS(X)
#undef X
	if (k < 0 || !rd_done(&r)) {
		wire_order_done(&m);
		return k < 0 ? k : WIRE_E_MALFORMED;
	}
	*ret = m;
	return WIRE_OK;
}

void wire_order_done(struct wire_order *m)
{
#define X(n) \
	free(m->n); \
	m->n = NULL;
	ORDER_LISTS(X)
#undef X
}
