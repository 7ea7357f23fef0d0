#include "supervisor/marks.h"

#include "supervisor/net.h"
#include "supervisor/share.h"

/* Of one channel of one stream. */
struct stream_marks {
	struct leak_scan scan;
	struct buf held; /* with leak_refuse: came, and may not go on yet */
};

enum { HELD_MAX = LEAK_LENGTH_MAX + WIRE_FRAME_MAX };

void sup_marks_free(struct sup *s)
{
	leak_set_done(&s->marks);
	free(s->marks_bytes);
	s->marks_bytes = NULL;
}

void sup_marks_again(struct sup *s)
{
	int r;

	if (!s->marks_bytes)
		return;
	r = sup_share_marks(s, s->marks_bytes, s->marks_n, s->order.leak_refuse);
	if (r == -EAGAIN)
		return;
	if (r < 0)
		slog_say(s->log, "the workspace server was not told which secrets to look for: %s",
			 err_text(r));
	free(s->marks_bytes);
	s->marks_bytes = NULL;
}

int sup_marks_set(struct sup *s, const uint8_t *p, size_t n)
{
	struct leak_set set;
	uint8_t *copy;
	int r = leak_set_parse(&set, p, n);

	if (r < 0)
		return r;
	copy = malloc(n);
	if (!copy) {
		leak_set_done(&set);
		return -ENOMEM;
	}
	memcpy(copy, p, n);
	sup_marks_free(s);
	s->marks = set;
	s->marks_bytes = copy;
	s->marks_n = n;
	sup_marks_again(s);
	return 0;
}

void sup_marks_stream_free(struct stream *st)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(st->marks); i++) {
		if (st->marks[i])
			buf_done(&st->marks[i]->held);
		free(st->marks[i]);
		st->marks[i] = NULL;
	}
}

static struct stream_marks *marks_of(struct stream *st, uint8_t chan)
{
	struct stream_marks **at = &st->marks[chan - 1];

	if (!*at) {
		*at = calloc(1, sizeof(**at));
		if (*at)
			buf_init(&(*at)->held, HELD_MAX);
	}
	return *at;
}

void sup_marks_blank(const struct sup *s, char *text)
{
	const size_t n = strlen(text);
	struct leak_scan c = { 0 };
	struct leak_hit hit;
	size_t at = 0;

	while (s->marks.n && at < n) {
		at += leak_scan(&c, &s->marks, (const uint8_t *)text + at, n - at, &hit);
		if (hit.length)
			memset(text + hit.start, '*', hit.length);
	}
	if (s->marks.n && leak_held(&c) < n)
		memset(text + leak_held(&c), '*', n - (size_t)leak_held(&c));
}

static void tell(struct sup *s, struct stream *st, const char *name)
{
	const bool refuse = s->order.leak_refuse;

	if (st->leaked)
		return;
	st->leaked = true;
	sup_marks_blank(s, st->what); /* a command that was given the value itself */
	slog_say(s->log, "the secret '%s' was in the output of %s%s", name, st->what,
		 refuse ? ", which was cut" : "");
	sup_net_leaked(s, st->copy, st->what, name, refuse);
}

/* So many bytes of what waits go on. */
static void let_go(struct sup *s, struct stream *st, uint8_t chan, size_t n,
		   void (*pass)(struct sup *s, struct stream *st, uint8_t chan, const uint8_t *p,
				size_t n))
{
	struct buf *b = &st->marks[chan - 1]->held;
	size_t one;

	while (n) {
		one = MIN(n, (size_t)WIRE_FRAME_MAX);
		pass(s, st, chan, buf_data(b), one);
		buf_consume(b, one);
		n -= one;
	}
}

/* The first secret in it that is whole. */
static const char *look(struct sup *s, struct stream_marks *m, const uint8_t *p, size_t n)
{
	const char *name = NULL;
	struct leak_hit hit;
	size_t at = 0;

	while (at < n) {
		at += leak_scan(&m->scan, &s->marks, p + at, n - at, &hit);
		name = hit.length && !name ? hit.name : name;
	}
	return name;
}

const char *sup_marks_data(struct sup *s, struct stream *st, uint8_t chan, const uint8_t *p,
			   size_t n,
			   void (*pass)(struct sup *s, struct stream *st, uint8_t chan,
					const uint8_t *p, size_t n))
{
	struct stream_marks *m = st->marks[chan - 1];
	const char *name;
	uint64_t base;

	if (s->marks.n && !m)
		m = marks_of(st, chan);
	if (!m) {
		pass(s, st, chan, p, n);
		return NULL;
	}
	name = look(s, m, p, n);
	if (name)
		tell(s, st, name);
	if (name && s->order.leak_refuse)
		return name;
	if (!s->order.leak_refuse || (!m->held.n && leak_held(&m->scan) == m->scan.seen)) {
		pass(s, st, chan, p, n);
		return NULL;
	}
	if (buf_add(&m->held, p, n) < 0)
		return "(no memory to look for secrets)";
	base = m->scan.seen - m->held.n;
	let_go(s, st, chan, (size_t)(MAX(leak_held(&m->scan), base) - base), pass);
	return NULL;
}

void sup_marks_end(struct sup *s, struct stream *st, uint8_t chan,
		   void (*pass)(struct sup *s, struct stream *st, uint8_t chan, const uint8_t *p,
				size_t n))
{
	if (st->marks[chan - 1])
		let_go(s, st, chan, st->marks[chan - 1]->held.n, pass);
}
