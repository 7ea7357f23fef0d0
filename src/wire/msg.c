/* Payloads. Each message is written into a small array first and framed afterwards, so that a
 * message which does not fit leaves no half frame behind. */
#include "wire/msg.h"

enum {
	SMALL = 16384,
	ID_MAX = 250, /* what fits into ATTACH and JOB_IS; no id is so long */
};

static int framed(struct buf *out, uint32_t stream, enum wire_type type, const struct wr *w)
{
	return wr_ok(w) ? wire_frame_add(out, stream, type, 0, w->p, w->n) : -ENOBUFS;
}

static int done(const struct rd *r)
{
	return rd_done(r) ? WIRE_OK : WIRE_E_MALFORMED;
}

static struct rd reader(const struct wire_frame *f)
{
	return rd_init(f->data, f->len);
}

int wire_hello_add(struct buf *out, const struct wire_hello *m)
{
	uint8_t b[512];
	struct wr w = wr_init(b, sizeof(b));

	wr_be32(&w, WIRE_MAGIC);
	wr_be16(&w, m->version);
	wr_be16(&w, 0);
	wr_be64(&w, m->boot_ns);
	wr_cut(&w, m->release, WIRE_RELEASE_MAX);
	return framed(out, 0, WIRE_HELLO, &w);
}

int wire_hello_parse(struct wire_hello *ret, const struct wire_frame *f)
{
	struct rd r = reader(f);
	struct wire_hello m;
	uint32_t magic = rd_be32(&r);
	uint16_t zero;

	m.version = rd_be16(&r);
	zero = rd_be16(&r);
	m.boot_ns = rd_be64(&r);
	m.release = rd_str(&r, WIRE_RELEASE_MAX);
	if (magic != WIRE_MAGIC || zero || !rd_done(&r))
		return WIRE_E_MALFORMED;
	*ret = m;
	return WIRE_OK;
}

int wire_config_add(struct buf *out, const struct wire_config *m)
{
	uint8_t b[8192];
	struct wr w = wr_init(b, sizeof(b));

	wr_be64(&w, m->realtime_ns);
	wr_text(&w, m->hostname, WIRE_NAME_MAX);
	wr_text(&w, m->workdir, WIRE_PATH_MAX);
	return framed(out, 0, WIRE_CONFIG, &w);
}

int wire_config_parse(struct wire_config *ret, const struct wire_frame *f)
{
	struct rd r = reader(f);
	struct wire_config m;

	m.realtime_ns = rd_be64(&r);
	m.hostname = rd_str(&r, WIRE_NAME_MAX);
	m.workdir = rd_str(&r, WIRE_PATH_MAX);
	if (!rd_done(&r))
		return WIRE_E_MALFORMED;
	*ret = m;
	return WIRE_OK;
}

int wire_mount_add(struct buf *out, enum wire_type type, const struct wire_mount *m)
{
	uint8_t b[8448];
	struct wr w = wr_init(b, sizeof(b));

	wr_be32(&w, m->id);
	wr_u8(&w, m->flags);
	wr_u8(&w, 0);
	wr_be16(&w, 0);
	wr_text(&w, m->path, WIRE_PATH_MAX);
	wr_text(&w, m->alias, WIRE_PATH_MAX);
	return framed(out, 0, type, &w);
}

int wire_mount_parse(struct wire_mount *ret, const struct wire_frame *f)
{
	struct rd r = reader(f);
	struct wire_mount m;
	uint32_t zero;

	m.id = rd_be32(&r);
	m.flags = rd_u8(&r);
	zero = rd_u8(&r);
	zero |= rd_be16(&r);
	m.path = rd_str(&r, WIRE_PATH_MAX);
	m.alias = rd_str(&r, WIRE_PATH_MAX);
	if (zero || !rd_done(&r) || m.flags & ~MOUNT_FLAGS || m.path[0] != '/' ||
	    (m.alias[0] && m.alias[0] != '/'))
		return WIRE_E_MALFORMED;
	*ret = m;
	return WIRE_OK;
}

int wire_mounted_add(struct buf *out, const struct wire_mounted *m)
{
	uint8_t b[2048];
	struct wr w = wr_init(b, sizeof(b));

	wr_be32(&w, m->id);
	wr_be32(&w, m->code);
	wr_cut(&w, m->text, WIRE_TEXT_MAX);
	return framed(out, 0, WIRE_MOUNTED, &w);
}

int wire_mounted_parse(struct wire_mounted *ret, const struct wire_frame *f)
{
	struct rd r = reader(f);
	struct wire_mounted m;

	m.id = rd_be32(&r);
	m.code = rd_be32(&r);
	m.text = rd_str(&r, WIRE_TEXT_MAX);
	if (!rd_done(&r))
		return WIRE_E_MALFORMED;
	*ret = m;
	return WIRE_OK;
}

int wire_changed_add(struct buf *out, const struct wire_changed *m)
{
	uint8_t b[8192];
	struct wr w = wr_init(b, sizeof(b));

	wr_be32(&w, m->id);
	wr_u8(&w, m->kind);
	wr_u8(&w, m->dir);
	wr_be16(&w, 0);
	wr_text(&w, m->path, WIRE_PATH_MAX);
	return framed(out, 0, WIRE_CHANGED, &w);
}

int wire_changed_parse(struct wire_changed *ret, const struct wire_frame *f)
{
	struct rd r = reader(f);
	struct wire_changed m;
	uint16_t zero;

	m.id = rd_be32(&r);
	m.kind = rd_u8(&r);
	m.dir = rd_u8(&r);
	zero = rd_be16(&r);
	m.path = rd_str(&r, WIRE_PATH_MAX);
	if (zero || !rd_done(&r) || m.dir > 1 || !m.kind || m.kind >= CHANGED_N)
		return WIRE_E_MALFORMED;
	*ret = m;
	return WIRE_OK;
}

int wire_u64_add(struct buf *out, enum wire_type type, uint64_t v)
{
	uint8_t b[8];
	struct wr w = wr_init(b, sizeof(b));

	wr_be64(&w, v);
	return framed(out, 0, type, &w);
}

int wire_u64_parse(uint64_t *ret, const struct wire_frame *f)
{
	struct rd r = reader(f);
	uint64_t v = rd_be64(&r);

	if (!rd_done(&r))
		return WIRE_E_MALFORMED;
	*ret = v;
	return WIRE_OK;
}

int wire_u32_add(struct buf *out, uint32_t stream, enum wire_type type, uint8_t chan, uint32_t v)
{
	uint8_t b[4];
	struct wr w = wr_init(b, sizeof(b));

	wr_be32(&w, v);
	return wire_frame_add(out, stream, type, chan, b, sizeof(b));
}

int wire_u32_parse(uint32_t *ret, const struct wire_frame *f)
{
	struct rd r = reader(f);
	uint32_t v = rd_be32(&r);

	if (!rd_done(&r))
		return WIRE_E_MALFORMED;
	*ret = v;
	return WIRE_OK;
}

int wire_text_add(struct buf *out, uint32_t stream, enum wire_type type, const char *s)
{
	uint8_t b[WIRE_TEXT_MAX + 8];
	struct wr w = wr_init(b, sizeof(b));

	wr_cut(&w, s, type == WIRE_FAIL ? WIRE_TEXT_MAX : ID_MAX);
	return framed(out, stream, type, &w);
}

int wire_text_parse(const char **ret, const struct wire_frame *f)
{
	struct rd r = reader(f);
	const char *s = rd_str(&r, WIRE_TEXT_MAX);

	if (!rd_done(&r))
		return WIRE_E_MALFORMED;
	*ret = s;
	return WIRE_OK;
}

int wire_empty_add(struct buf *out, uint32_t stream, enum wire_type type)
{
	return wire_frame_add(out, stream, type, 0, NULL, 0);
}

static void put_list(struct wr *w, const char **v, uint32_t n, uint32_t max)
{
	uint32_t i;

	wr_be32(w, n);
	if (n > max)
		w->bad = true;
	for (i = 0; i < n && !w->bad; i++)
		wr_text(w, v[i], WIRE_ARG_LEN_MAX);
}

static size_t list_size(const char **v, uint32_t n)
{
	size_t total = 4;
	uint32_t i;

	for (i = 0; i < n; i++)
		total += strlen(v[i]) + 5;
	return total;
}

int wire_exec_put(struct buf *out, const struct wire_exec *m)
{
	size_t need = 10 + strlen(m->user) + 5 + strlen(m->cwd) + 5 + list_size(m->argv, m->argc) +
		      list_size(m->env, m->envc);
	struct wr w;
	void *to;

	if (need > WIRE_EXEC_MAX || need > buf_space(out))
		return -ENOBUFS;
	to = buf_room(out, need);
	if (!to)
		return -ENOMEM;
	w = wr_init(to, need);
	wr_be16(&w, m->flags);
	wr_be16(&w, m->rows);
	wr_be16(&w, m->cols);
	wr_be32(&w, m->timeout_ms);
	wr_text(&w, m->user, WIRE_USER_MAX);
	wr_text(&w, m->cwd, WIRE_PATH_MAX);
	put_list(&w, m->argv, m->argc, WIRE_ARGS_MAX);
	put_list(&w, m->env, m->envc, WIRE_ENV_MAX);
	if (!wr_ok(&w))
		return -ENOBUFS;
	buf_added(out, w.n);
	return 0;
}

/* A count and that many texts. The array is no larger than the bytes that are there can fill. */
static int parse_list(struct rd *r, uint32_t max, const char ***ret, uint32_t *ret_n)
{
	uint32_t n = rd_be32(r), i;
	const char **v;

	if (n > max || n > r->n / 5)
		return WIRE_E_MALFORMED;
	v = calloc((size_t)n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		v[i] = rd_str(r, WIRE_ARG_LEN_MAX);
	*ret = v;
	*ret_n = n;
	return WIRE_OK;
}

static int parse_lists(struct rd *r, struct wire_exec *m)
{
	int ans = parse_list(r, WIRE_ARGS_MAX, &m->argv, &m->argc);
	uint32_t i;

	if (ans != WIRE_OK)
		return ans;
	ans = parse_list(r, WIRE_ENV_MAX, &m->env, &m->envc);
	if (ans != WIRE_OK)
		return ans;
	for (i = 0; i < m->envc; i++)
		if (!strchr(m->env[i], '=') || m->env[i][0] == '=')
			return WIRE_E_MALFORMED;
	return m->argc ? WIRE_OK : WIRE_E_MALFORMED;
}

int wire_exec_parse(struct wire_exec *ret, const void *p, size_t n)
{
	struct rd r = rd_init(p, n);
	struct wire_exec m = { 0 };
	int ans;

	if (n > WIRE_EXEC_MAX)
		return WIRE_E_TOO_LARGE;
	m.flags = rd_be16(&r);
	m.rows = rd_be16(&r);
	m.cols = rd_be16(&r);
	m.timeout_ms = rd_be32(&r);
	m.user = rd_str(&r, WIRE_USER_MAX);
	m.cwd = rd_str(&r, WIRE_PATH_MAX);
	if (r.bad || m.flags & ~EXEC_FLAGS)
		return WIRE_E_MALFORMED;
	ans = parse_lists(&r, &m);
	if (ans == WIRE_OK)
		ans = done(&r);
	if (ans != WIRE_OK) {
		wire_exec_done(&m);
		return ans;
	}
	*ret = m;
	return WIRE_OK;
}

void wire_exec_done(struct wire_exec *m)
{
	free(m->argv);
	free(m->env);
	m->argv = m->env = NULL;
}

int wire_trust_add(struct buf *out, const char *pem)
{
	uint8_t b[WIRE_PEM_MAX + 8];
	struct wr w = wr_init(b, sizeof(b));

	wr_text(&w, pem, WIRE_PEM_MAX);
	return framed(out, 0, WIRE_TRUST, &w);
}

int wire_trust_parse(const char **ret, const struct wire_frame *f)
{
	struct rd r = reader(f);
	const char *s = rd_str(&r, WIRE_PEM_MAX);

	if (!rd_done(&r))
		return WIRE_E_MALFORMED;
	*ret = s;
	return WIRE_OK;
}

static bool assigns(const char *s)
{
	return strchr(s, '=') && s[0] != '=';
}

static int add_env(struct buf *out, enum wire_type type, const struct wire_env *m)
{
	_free_ uint8_t *b = malloc(WIRE_FRAME_MAX);
	struct wr w;

	if (!b)
		return -ENOMEM;
	w = wr_init(b, WIRE_FRAME_MAX);
	put_list(&w, m->v, m->n, WIRE_DEFAULTS_MAX);
	for (uint32_t i = 0; i < m->n && !w.bad; i++)
		w.bad = !assigns(m->v[i]);
	return framed(out, 0, type, &w);
}

int wire_env_add(struct buf *out, const struct wire_env *m)
{
	return add_env(out, WIRE_ENV, m);
}

int wire_image_add(struct buf *out, const struct wire_env *m)
{
	return add_env(out, WIRE_IMAGE, m);
}

int wire_env_parse(struct wire_env *ret, const struct wire_frame *f)
{
	struct rd r = reader(f);
	struct wire_env m = { 0 };
	int ans = parse_list(&r, WIRE_DEFAULTS_MAX, &m.v, &m.n);

	if (ans != WIRE_OK)
		return ans;
	ans = done(&r);
	for (uint32_t i = 0; i < m.n && ans == WIRE_OK; i++)
		if (!assigns(m.v[i]))
			ans = WIRE_E_MALFORMED;
	if (ans != WIRE_OK) {
		wire_env_done(&m);
		return ans;
	}
	*ret = m;
	return WIRE_OK;
}

void wire_env_done(struct wire_env *m)
{
	free(m->v);
	m->v = NULL;
	m->n = 0;
}

int wire_copy_add(struct buf *out, uint32_t stream, enum wire_type type, const struct wire_copy *m)
{
	uint8_t b[SMALL];
	struct wr w = wr_init(b, sizeof(b));

	wr_be16(&w, m->flags);
	wr_text(&w, m->path, WIRE_PATH_MAX);
	wr_text(&w, m->name, WIRE_PATH_MAX);
	wr_text(&w, m->user, WIRE_USER_MAX);
	return framed(out, stream, type, &w);
}

int wire_copy_parse(struct wire_copy *ret, const struct wire_frame *f)
{
	struct rd r = reader(f);
	struct wire_copy m;

	m.flags = rd_be16(&r);
	m.path = rd_str(&r, WIRE_PATH_MAX);
	m.name = rd_str(&r, WIRE_PATH_MAX);
	m.user = rd_str(&r, WIRE_USER_MAX);
	if (!rd_done(&r) || m.path[0] != '/' || m.flags & ~3)
		return WIRE_E_MALFORMED;
	if (strchr(m.name, '/') || streq(m.name, ".") || streq(m.name, ".."))
		return WIRE_E_MALFORMED;
	*ret = m;
	return WIRE_OK;
}

int wire_exit_add(struct buf *out, uint32_t stream, const struct wire_exit *m)
{
	uint8_t b[WIRE_TEXT_MAX + 16];
	struct wr w = wr_init(b, sizeof(b));

	wr_u8(&w, m->how);
	wr_u8(&w, m->code);
	wr_be16(&w, 0);
	wr_cut(&w, m->text, WIRE_TEXT_MAX);
	return framed(out, stream, WIRE_EXIT, &w);
}

int wire_exit_parse(struct wire_exit *ret, const struct wire_frame *f)
{
	struct rd r = reader(f);
	struct wire_exit m;
	uint16_t zero;

	m.how = rd_u8(&r);
	m.code = rd_u8(&r);
	zero = rd_be16(&r);
	m.text = rd_str(&r, WIRE_TEXT_MAX);
	if (!rd_done(&r) || zero || m.how >= EXIT_HOW_N)
		return WIRE_E_MALFORMED;
	*ret = m;
	return WIRE_OK;
}

int wire_exit_status(const struct wire_exit *m)
{
	return m->how == EXIT_SIGNAL ? 128 + m->code : m->code;
}

int wire_signal_add(struct buf *out, uint32_t stream, uint8_t signo)
{
	return wire_frame_add(out, stream, WIRE_SIGNAL, 0, &signo, 1);
}

int wire_signal_parse(uint8_t *ret, const struct wire_frame *f)
{
	if (f->len != 1 || f->data[0] < 1 || f->data[0] > 64)
		return WIRE_E_MALFORMED;
	*ret = f->data[0];
	return WIRE_OK;
}

int wire_winsize_add(struct buf *out, uint32_t stream, struct wire_winsize m)
{
	uint8_t b[4];
	struct wr w = wr_init(b, sizeof(b));

	wr_be16(&w, m.rows);
	wr_be16(&w, m.cols);
	return framed(out, stream, WIRE_WINSIZE, &w);
}

int wire_winsize_parse(struct wire_winsize *ret, const struct wire_frame *f)
{
	struct rd r = reader(f);
	struct wire_winsize m;

	m.rows = rd_be16(&r);
	m.cols = rd_be16(&r);
	if (!rd_done(&r))
		return WIRE_E_MALFORMED;
	*ret = m;
	return WIRE_OK;
}
