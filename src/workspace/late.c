#include "workspace/late.h"

#include "io/fd.h"

static void hold(struct job *j)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(j->handles); i++)
		if (j->handles[i])
			handle_busy(j->handles[i]);
	if (j->owner)
		lock_busy(j->owner);
}

static void let_go(struct fs *f, struct job *j)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(j->handles); i++)
		if (j->handles[i])
			handle_idle(&f->handles, &f->nodes, j->handles[i]);
	if (j->owner)
		lock_idle(&f->locks, &f->nodes, j->owner);
	for (i = 0; j->own_fds && i < j->n_fds; i++)
		fd_close(j->fd[i]);
}

/* The body's length, or -errno. */
static ssize_t body_of(struct fs *f, struct job *j, void *body)
{
	if (j->result < 0)
		return j->result;
	return j->answer ? j->answer(f, j, body) : 0;
}

ssize_t late_run(struct fs *f, struct call *c, const struct job *what, bool waits)
{
	struct job *j = job_new(f->worker, waits);
	struct job here = *what;
	ssize_t len;

	if (j) {
		here.next = NULL;
		here.waits = waits;
		here.token = c->r->token;
		here.out = c->r->out;
		here.n_out = c->r->n_out;
		here.unique = c->m.h.unique;
		here.used = true;
		*j = here;
		hold(j);
		if (worker_start(f->worker, j) == 0)
			return FS_LATER;
	}
	if (waits) {
		len = -ENOLCK;
	} else {
		here.result = here.run(&here);
		len = body_of(f, &here, f->out);
		if (len > 0)
			len = call_put(c, f->out, (size_t)len);
	}
	if (j) {
		let_go(f, j);
		job_free(f->worker, j);
	} else {
		hold(&here);
		let_go(f, &here);
	}
	return len;
}

size_t late_end(struct fs *f, struct job *j, void **ret_token)
{
	struct fuse_out_header h = { .unique = j->unique };
	ssize_t len = body_of(f, j, f->out);

	if (len > 0 && iov_len(j->out, j->n_out) - sizeof(h) < (size_t)len)
		len = -ERANGE;
	if (len < 0)
		h.error = (int32_t)len;
	else
		(void)iov_put(j->out, j->n_out, sizeof(h), f->out, (size_t)len);
	h.len = (uint32_t)(sizeof(h) + (size_t)MAX(len, 0));
	(void)iov_put(j->out, j->n_out, 0, &h, sizeof(h));
	*ret_token = j->token;
	let_go(f, j);
	job_free(f->worker, j);
	return h.len;
}

void late_drop_all(struct fs *f)
{
	struct job *j;
	size_t at = 0;

	while ((j = worker_each(f->worker, &at))) {
		let_go(f, j);
		job_free(f->worker, j);
	}
}

static bool on_share(const struct job *j, const struct share *s)
{
	const struct node *n = j->handles[0] ? j->handles[0]->node : NULL;

	return !s || (n && n->share == s);
}

void late_cancel_share(struct fs *f, const struct share *s)
{
	struct job *j;
	size_t at = 0;

	while ((j = worker_each(f->worker, &at)))
		if (on_share(j, s))
			worker_cancel(f->worker, j);
}

void late_cancel_unique(struct fs *f, uint64_t unique)
{
	struct job *j;
	size_t at = 0;

	while ((j = worker_each(f->worker, &at)))
		if (j->unique == unique)
			worker_cancel(f->worker, j);
}
