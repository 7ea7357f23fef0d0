#include "workspace/dirbuf.h"

#include "workspace/handle.h"

static struct dirbuf *pick(struct dirbufs *d)
{
	struct dirbuf **oldest = NULL;
	size_t i;

	for (i = 0; i < DIRBUF_N; i++) {
		if (!d->buf[i])
			d->buf[i] = calloc(1, sizeof(*d->buf[i]));
		if (!d->buf[i])
			continue;
		if (!d->buf[i]->owner)
			return d->buf[i];
		if (!oldest || d->buf[i]->used_at < (*oldest)->used_at)
			oldest = &d->buf[i];
	}
	return oldest ? *oldest : NULL;
}

struct dirbuf *dirbuf_take(struct dirbufs *d, struct handle *h)
{
	struct dirbuf *b = h->buf;

	if (!b) {
		b = pick(d);
		if (!b)
			return NULL;
		if (b->owner)
			dirbuf_give(b->owner);
		b->owner = h;
		h->buf = b;
		b->at = b->n = 0;
	}
	b->used_at = ++d->clock;
	return b;
}

void dirbuf_give(struct handle *h)
{
	if (!h->buf)
		return;
	h->buf->owner = NULL;
	h->buf = NULL;
}

void dirbuf_done(struct dirbufs *d)
{
	size_t i;

	for (i = 0; i < DIRBUF_N; i++)
		free(d->buf[i]);
	*d = (struct dirbufs) { 0 };
}
