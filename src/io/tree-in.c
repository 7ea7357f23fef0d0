/* Copy stream, receiving end. */
#include "io/tree-in.h"

#include <poll.h>
#include <unistd.h>

enum { IN_BUF = 64 * 1024 };

void tree_in_init(struct tree_in *in, int fd)
{
	*in = (struct tree_in) { .fd = fd };
	buf_init(&in->buf, IN_BUF);
}

void tree_in_done(struct tree_in *in)
{
	buf_done(&in->buf);
}

/* Wait for some more bytes. */
static int fill(struct tree_in *in, struct err *e)
{
	size_t space = buf_space(&in->buf);
	void *to = buf_room(&in->buf, space);
	struct pollfd wait = { .fd = in->fd, .events = POLLIN };
	ssize_t n;

	if (!to)
		return err_errno(e, -ENOMEM, "cannot receive the copy");
	do {
		n = read(in->fd, to, space);
		if (n < 0 && errno == EAGAIN && poll(&wait, 1, -1) > 0)
			errno = EINTR;
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_errno(e, -errno, "cannot receive the copy");
	if (n == 0)
		return err_set(e, -ENODATA, "the copy is not complete: the sender stopped");
	buf_added(&in->buf, (size_t)n);
	return 0;
}

static int malformed(const struct tree_in *in, struct err *e)
{
	return err_set(e, -EPROTO,
		       "the copy is not complete: record %llu that was sent makes no sense",
		       (unsigned long long)in->records);
}

/* The path below the top, or NULL if it is elsewhere. */
static const char *below(const struct tree_in *in, const char *path)
{
	size_t len = strlen(in->top);

	if (!len)
		return path;
	if (!starts_with(path, in->top))
		return NULL;
	if (!path[len])
		return path + len;
	return path[len] == '/' ? path + len + 1 : NULL;
}

/* Is this record in its place? Makes its paths relative to the top. */
static bool fits(struct tree_in *in, struct copy_record *m)
{
	const char *path = m->path;

	if (in->records == 1) {
		if (strchr(path, '/') || m->kind == COPY_HARD)
			return false;
		memcpy(in->top, path, strlen(path) + 1);
		in->leaf = m->kind != COPY_DIR;
		m->path = "";
		return true;
	}
	if (in->leaf)
		return false;
	m->path = below(in, path);
	if (!m->path || !m->path[0])
		return false;
	if (m->kind == COPY_HARD)
		m->target = below(in, m->target);
	return m->target && (m->kind != COPY_HARD || m->target[0]);
}

int tree_in_next(struct tree_in *in, struct copy_record *ret, struct err *e)
{
	struct copy_record m;
	size_t used;
	int ans, r;

	for (;;) {
		ans = copy_record_parse(&m, &used, buf_data(&in->buf), in->buf.n);
		if (ans != WIRE_AGAIN)
			break;
		r = fill(in, e);
		if (r < 0)
			return r;
	}
	if (ans != WIRE_OK)
		return malformed(in, e);
	if (m.kind == COPY_ERROR)
		return err_set(e, -EREMOTEIO, "%s", m.target);
	if (m.kind == COPY_END)
		return in->records && m.size == in->records ? 0 : malformed(in, e);
	in->records++;
	if (!fits(in, &m))
		return malformed(in, e);
	in->size = m.kind == COPY_FILE ? m.size : 0;
	in->pos = 0;
	in->left = 0;
	*ret = m;
	/* the bytes stay where they are, and with them the texts, until the next fill() */
	buf_consume(&in->buf, used);
	return 1;
}

/* The head of the next extent: 1, or 0 for the end of the file. */
static int next_extent(struct tree_in *in, struct err *e)
{
	struct copy_extent x;
	int ans, r;

	for (;;) {
		ans = copy_extent_parse(&x, &in->pos, in->size, buf_data(&in->buf), in->buf.n);
		if (ans != WIRE_AGAIN)
			break;
		r = fill(in, e);
		if (r < 0)
			return r;
	}
	if (ans != WIRE_OK)
		return malformed(in, e);
	buf_consume(&in->buf, COPY_EXTENT_HEAD);
	in->at = x.offset;
	in->left = x.len;
	return x.len != 0;
}

int tree_in_data(struct tree_in *in, struct tree_data *ret, struct err *e)
{
	int r;

	if (!in->left) {
		r = next_extent(in, e);
		if (r <= 0)
			return r;
	}
	if (!in->buf.n) {
		r = fill(in, e);
		if (r < 0)
			return r;
	}
	*ret = (struct tree_data) { .offset = in->at,
				    .p = buf_data(&in->buf),
				    .n = MIN(in->buf.n, (size_t)in->left) };
	in->at += ret->n;
	in->left -= (uint32_t)ret->n;
	buf_consume(&in->buf, ret->n);
	return 1;
}
