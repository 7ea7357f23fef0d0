/* Copy stream, sending end. */
#include "io/tree-out.h"

#include "io/fd.h"

enum { OUT_BUF = 2 * (TREE_CHUNK + COPY_EXTENT_HEAD) };

int tree_out_init(struct tree_out *o, int fd, struct err *e)
{
	*o = (struct tree_out) { .fd = fd, .p = malloc(OUT_BUF) };
	return o->p ? 0 : err_errno(e, -ENOMEM, "cannot send the copy");
}

void tree_out_done(struct tree_out *o)
{
	free(o->p);
	*o = (struct tree_out) { .fd = -1, .broken = true };
}

static int flush(struct tree_out *o, struct err *e)
{
	int r = o->broken ? -EPIPE : fd_write_all(o->fd, o->p, o->n);

	o->n = 0;
	if (r < 0) {
		o->broken = true;
		return err_errno(e, r, "cannot send the copy");
	}
	return 0;
}

/* See to it that there is room for len bytes behind what is there already. */
static int make_room(struct tree_out *o, size_t len, struct err *e)
{
	return OUT_BUF - o->n < len ? flush(o, e) : 0;
}

int tree_out_record(struct tree_out *o, const struct copy_record *m, struct err *e)
{
	int r = make_room(o, COPY_RECORD_MAX, e);
	size_t len;

	if (r < 0)
		return r;
	r = copy_record_put(o->p + o->n, &len, m);
	if (r < 0)
		return err_set(e, r, "'%s' cannot be sent: a path of it is too long", m->path);
	o->n += len;
	o->records++;
	return 0;
}

uint8_t *tree_out_room(struct tree_out *o, struct err *e)
{
	if (make_room(o, COPY_EXTENT_HEAD + TREE_CHUNK, e) < 0)
		return NULL;
	return o->p + o->n + COPY_EXTENT_HEAD;
}

void tree_out_extent(struct tree_out *o, uint64_t offset, size_t n)
{
	copy_extent_put(o->p + o->n, (struct copy_extent) { offset, (uint32_t)n });
	o->n += COPY_EXTENT_HEAD + n;
}

int tree_out_close(struct tree_out *o, uint64_t size, struct err *e)
{
	int r = make_room(o, COPY_EXTENT_HEAD, e);

	if (r < 0)
		return r;
	copy_extent_put(o->p + o->n, (struct copy_extent) { size, 0 });
	o->n += COPY_EXTENT_HEAD;
	return 0;
}

int tree_out_end(struct tree_out *o, struct err *e)
{
	struct copy_record m = { .kind = COPY_END, .size = o->records, .path = "", .target = "" };
	int r = tree_out_record(o, &m, e);

	return r < 0 ? r : flush(o, e);
}

void tree_out_fail(struct tree_out *o, const struct err *e)
{
	struct copy_record m = { .kind = COPY_ERROR,
				 .path = "",
				 .target = e->msg[0] ? e->msg : "unknown error" };
	struct err ignored;

	if (!o->broken && tree_out_record(o, &m, &ignored) == 0)
		(void)flush(o, &ignored);
}
