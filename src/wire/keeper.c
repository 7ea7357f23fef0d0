/* The keeper's conversations: one table of types, and of each the fields of its body in their order. A letter is a field:
 *
 *   n number        t text           T text2          U text3        c text, for people: cut
 *   p port          e code           w when           P text, PEM
 *   v bytes: value  V bytes2: value  h bytes: chain   k bytes2: key  m bytes: marks */
#include "wire/keeper.h"

static const struct type {
	uint8_t num;
	char from;
	uint8_t fds;
} types[] = {
#define X(name, num, from, fds) { num, from, fds },
	KEEPER_TYPES(X)
#undef X
};

static const char *const fields[] = {
	[KEEPER_CONFIG] = "tT", [KEEPER_CREDENTIALS] = "n", [KEEPER_POLICY] = "n",
	[KEEPER_PING] = "n",    [KEEPER_PROXY] = "",        [KEEPER_FETCH] = "",
	[KEEPER_LEAF] = "ntp",  [KEEPER_VALUE] = "nTtp",    [KEEPER_TOKENS] = "nTtpvVwU",
	[KEEPER_GOT] = "nvw",   [KEEPER_NOT] = "nc",        [KEEPER_PUT_DONE] = "n",
	[KEEPER_PONG] = "n",    [KEEPER_APPLIED] = "nec",   [KEEPER_READY] = "",
	[KEEPER_SAY] = "c",     [KEEPER_CA] = "P",          [KEEPER_MARKS] = "m",
	[KEEPER_BREACH] = "c",  [KEEPER_LEAF_IS] = "nhkw",  [KEEPER_VALUE_IS] = "nv",
	[KEEPER_NO] = "nec",    [KEEPER_KEPT] = "n",        [KEEPER_GET] = "nt",
	[KEEPER_PUT] = "ntv",   [KEEPER_PEEK] = "nt",       [KEEPER_TURN] = "nt",
	[KEEPER_LOOSE] = "n",   [KEEPER_OVER] = "n",
};

static const struct type *type_find(uint8_t num)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].num == num)
			return &types[i];
	return NULL;
}

static bool code_fits(uint8_t type, int32_t code)
{
	if (type == KEEPER_NO)
		return code > 0 && code < KEEPER_NO_N;
	return code <= 0 && code >= -4095;
}

static size_t bytes_max(char field)
{
	switch (field) {
	case 'h':
		return KEEPER_CHAIN_MAX;
	case 'k':
		return KEEPER_KEY_MAX;
	case 'm':
		return KEEPER_MARKS_MAX;
	default:
		return KEEPER_VALUE_MAX;
	}
}

static void put_bytes(struct wr *w, struct keeper_bytes b, size_t max)
{
	if (b.n > max)
		w->bad = true;
	wr_be32(w, b.n);
	wr_bytes(w, b.p, b.n);
}

static void put_code(struct wr *w, const struct keeper_msg *m)
{
	if (!code_fits(m->type, m->code))
		w->bad = true;
	wr_be32(w, (uint32_t)m->code);
}

static void put_field(struct wr *w, const struct keeper_msg *m, char field)
{
	switch (field) {
	case 'n':
		wr_be32(w, m->number);
		break;
	case 't':
		wr_text(w, m->text, KEEPER_TEXT_MAX);
		break;
	case 'T':
		wr_text(w, m->text2, KEEPER_TEXT_MAX);
		break;
	case 'U':
		wr_text(w, m->text3, KEEPER_TEXT_MAX);
		break;
	case 'P':
		wr_text(w, m->text, KEEPER_PEM_MAX);
		break;
	case 'c':
		wr_cut(w, m->text, KEEPER_TEXT_MAX);
		break;
	case 'p':
		wr_be16(w, m->port);
		break;
	case 'e':
		put_code(w, m);
		break;
	case 'w':
		wr_be64(w, m->when);
		break;
	case 'V':
	case 'k':
		put_bytes(w, m->bytes2, bytes_max(field));
		break;
	default:
		put_bytes(w, m->bytes, bytes_max(field));
		break;
	}
}

ssize_t keeper_put(const struct keeper_msg *m, void *p, size_t max)
{
	struct wr w = wr_init(p, MIN(max, (size_t)KEEPER_MSG_MAX));

	if (!type_find(m->type))
		return -ENOBUFS;
	wr_u8(&w, m->type);
	for (const char *f = fields[m->type]; *f; f++)
		put_field(&w, m, *f);
	return wr_ok(&w) ? (ssize_t)w.n : -ENOBUFS;
}

static struct keeper_bytes get_bytes(struct rd *r, size_t max)
{
	struct keeper_bytes b = { .n = rd_be32(r) };

	if (b.n > max)
		r->bad = true;
	b.p = rd_take(r, b.n);
	return b;
}

static void get_code(struct rd *r, struct keeper_msg *m)
{
	m->code = (int32_t)rd_be32(r);
	if (!code_fits(m->type, m->code))
		r->bad = true;
}

static void get_field(struct rd *r, struct keeper_msg *m, char field)
{
	switch (field) {
	case 'n':
		m->number = rd_be32(r);
		break;
	case 't':
	case 'c':
		m->text = rd_str(r, KEEPER_TEXT_MAX);
		break;
	case 'T':
		m->text2 = rd_str(r, KEEPER_TEXT_MAX);
		break;
	case 'U':
		m->text3 = rd_str(r, KEEPER_TEXT_MAX);
		break;
	case 'P':
		m->text = rd_str(r, KEEPER_PEM_MAX);
		break;
	case 'p':
		m->port = rd_be16(r);
		break;
	case 'e':
		get_code(r, m);
		break;
	case 'w':
		m->when = rd_be64(r);
		break;
	case 'V':
	case 'k':
		m->bytes2 = get_bytes(r, bytes_max(field));
		break;
	default:
		m->bytes = get_bytes(r, bytes_max(field));
		break;
	}
}

int keeper_parse(struct keeper_msg *ret, char from, const void *p, size_t n, size_t n_fds)
{
	struct rd r = rd_init(p, n);
	struct keeper_msg m = { 0 };
	const struct type *t;

	if (n > KEEPER_MSG_MAX)
		return WIRE_E_TOO_LARGE;
	m.type = rd_u8(&r);
	t = type_find(m.type);
	if (r.bad || !t || t->from != from || t->fds != n_fds)
		return WIRE_E_MALFORMED;
	for (const char *f = fields[m.type]; f && *f; f++)
		get_field(&r, &m, *f);
	if (!rd_done(&r))
		return WIRE_E_MALFORMED;
	*ret = m;
	return WIRE_OK;
}
