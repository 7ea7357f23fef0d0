/* Orders: fields in the order of one table. */
#include "wire/order.h"

/* What the parser would not take is not written. */
static void put_text(struct wr *w, const char *s)
{
	if (s && strlen(s) > WIRE_PATH_MAX)
		w->bad = true;
	else
		wr_str(w, s);
}

int wire_order_put(struct buf *out, const struct wire_order *m)
{
	size_t max = MIN(buf_space(out), (size_t)ORDER_MAX);
	uint8_t *to = buf_room(out, max);
	struct wr w;
	uint32_t i;

	if (!to)
		return -ENOMEM;
	w = wr_init(to, max);
	wr_be32(&w, ORDER_MAGIC);
#define X(n) put_text(&w, m->n);
	ORDER_TEXTS(X)
#undef X
#define X(n) wr_be64(&w, m->n);
	ORDER_NUMBERS(X)
#undef X
	wr_be32(&w, m->n_qemu_files);
	if (m->n_qemu_files > ORDER_LIST_MAX)
		return -ENOBUFS;
	for (i = 0; i < m->n_qemu_files; i++)
		put_text(&w, m->qemu_files[i]);
	if (!wr_ok(&w))
		return -ENOBUFS;
	buf_added(out, w.n);
	return 0;
}

int wire_order_parse(struct wire_order *ret, const void *p, size_t n)
{
	struct rd r = rd_init(p, n);
	struct wire_order m = { 0 };
	uint32_t i;

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
	m.n_qemu_files = rd_be32(&r);
	if (r.bad || m.n_qemu_files > ORDER_LIST_MAX)
		return WIRE_E_MALFORMED;
	m.qemu_files = calloc((size_t)m.n_qemu_files + 1, sizeof(*m.qemu_files));
	if (!m.qemu_files)
		return -ENOMEM;
	for (i = 0; i < m.n_qemu_files; i++)
		m.qemu_files[i] = rd_str(&r, WIRE_PATH_MAX);
	if (!rd_done(&r)) {
		wire_order_done(&m);
		return WIRE_E_MALFORMED;
	}
	*ret = m;
	return WIRE_OK;
}

void wire_order_done(struct wire_order *m)
{
	free(m->qemu_files);
	m->qemu_files = NULL;
}
