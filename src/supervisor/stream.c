/* Streams: frames carried between a client and the guest, under two numbers.
 *
 * The supervisor is no end of a stream: DATA and CREDIT pass as they are, so that client and guest govern each
 * other and at most a window for each channel is ever held here. It keeps the books of both, because either may
 * lie: the guest to fill our memory, a client to fill the guest's. */
#include <stdio.h>

#include "supervisor/marks.h"

static struct stream *find(struct sup *s, uint32_t id)
{
	unsigned i;

	for (i = 0; i < s->n_streams; i++)
		if (s->streams[i]->id == id)
			return s->streams[i];
	return NULL;
}

struct stream *sup_stream_of(struct client *c, uint32_t client_id)
{
	struct sup *s = c->sup;
	unsigned i;

	for (i = 0; i < s->n_streams; i++)
		if (s->streams[i]->client == c && s->streams[i]->client_id == client_id)
			return s->streams[i];
	return NULL;
}

static struct stream *stream_new(struct sup *s, struct client *c, uint32_t client_id)
{
	struct stream *st;
	unsigned i;

	if (s->n_streams >= WIRE_STREAMS_MAX || c->streams >= SUP_CLIENT_STREAMS)
		return NULL;
	st = calloc(1, sizeof(*st));
	if (!st)
		return NULL;
	st->id = ++s->next_stream;
	st->client = c;
	st->client_id = client_id;
	for (i = 0; i < ARRAY_SIZE(st->flow); i++)
		st->flow[i] = wire_flow_init();
	c->streams++;
	s->streams[s->n_streams++] = st;
	sup_use_changed(s);
	return st;
}

static void stream_end(struct sup *s, struct stream *st)
{
	unsigned i;

	for (i = 0; i < s->n_streams; i++)
		if (s->streams[i] == st)
			break;
	if (i == s->n_streams)
		return;
	s->streams[i] = s->streams[--s->n_streams];
	if (st->client)
		st->client->streams--;
	sup_marks_stream_free(st);
	free(st);
	sup_use_changed(s);
}

static void give_credit(struct sup *s, struct stream *st, uint8_t chan, uint32_t n)
{
	uint8_t b[4];
	struct wr w = wr_init(b, sizeof(b));

	if (!n)
		return;
	wr_be32(&w, n);
	sup_guest_frame(s, st->id, WIRE_CREDIT, chan, b, sizeof(b));
}

void sup_stream_orphan(struct sup *s, struct stream *st)
{
	uint8_t chan;

	if (st->client)
		st->client->streams--;
	st->client = NULL;
	sup_guest_frame(s, st->id, WIRE_HANGUP, 0, NULL, 0);
	for (chan = 1; chan <= 2; chan++) {
		struct wire_flow *f = &st->flow[chan];

		give_credit(s, st, chan, WIRE_WINDOW - f->may_come);
		f->may_come = WIRE_WINDOW;
		f->owed = 0;
	}
}

/* ---- from the guest ---- */

/* To who listens. */
static void pass(struct sup *s, struct stream *st, uint8_t chan, const uint8_t *p, size_t n)
{
	const struct wire_frame f = {
		.stream = st->id, .type = WIRE_DATA, .chan = chan, .data = p, .len = (uint32_t)n
	};

	if (st->job)
		sup_job_data(s, st, &f);
	else if (st->client)
		sup_client_frame(st->client, st->client_id, WIRE_DATA, chan, p, n);
}

/* It carries a secret: who listens is told, and hears no more of it. */
static void cut(struct sup *s, struct stream *st, const char *name)
{
	char why[256];
	const struct wire_exit x = { .how = EXIT_REFUSED, .code = 125, .text = why };

	(void)snprintf(why, sizeof(why),
		       "stopped: %s holds the value of the secret '%.63s' (the setting "
		       "secrets.onLeak is 'refuse')",
		       st->copy ? "what is copied" : "its output", name);
	if (st->job)
		sup_job_exit(s, st, &x);
	else if (st->client)
		sup_client_exit(st->client, st->client_id, &x);
	st->job = NULL;
	sup_stream_orphan(s, st);
}

static bool guest_data(struct sup *s, struct stream *st, const struct wire_frame *f)
{
	const char *name;

	if (f->chan == 0 || !wire_flow_came(&st->flow[f->chan], f->len))
		return false;
	if (!st->job && !st->client) {
		give_credit(s, st, f->chan, wire_flow_passed(&st->flow[f->chan], f->len, false));
		return true;
	}
	name = sup_marks_data(s, st, f->chan, f->data, f->len, pass);
	if (name)
		cut(s, st, name);
	return true;
}

/* Its end follows what waits. */
static void flush(struct sup *s, struct stream *st)
{
	uint8_t chan;

	for (chan = 1; chan <= 2; chan++)
		sup_marks_end(s, st, chan, pass);
}

static bool guest_credit(struct stream *st, const struct wire_frame *f)
{
	uint32_t n;

	if (f->chan != 0 || wire_u32_parse(&n, f) != WIRE_OK || !wire_flow_credit(&st->flow[0], n))
		return false;
	if (st->client && !st->job)
		sup_client_frame(st->client, st->client_id, WIRE_CREDIT, 0, f->data, f->len);
	return true;
}

static bool guest_exit(struct sup *s, struct stream *st, const struct wire_frame *f)
{
	struct wire_exit x;

	if (wire_exit_parse(&x, f) != WIRE_OK)
		return false;
	flush(s, st);
	if (st->job)
		sup_job_exit(s, st, &x);
	else if (st->client)
		sup_client_exit(st->client, st->client_id, &x);
	stream_end(s, st);
	return true;
}

bool sup_stream_from_guest(struct sup *s, const struct wire_frame *f)
{
	struct stream *st = find(s, f->stream);

	if (!st)
		return false;
	switch (f->type) {
	case WIRE_DATA:
		return guest_data(s, st, f);
	case WIRE_CREDIT:
		return guest_credit(st, f);
	case WIRE_EXIT:
		return guest_exit(s, st, f);
	case WIRE_EOF:
	case WIRE_STARTED:
		if (f->type == WIRE_EOF)
			flush(s, st);
		if (st->client && !st->job)
			sup_client_frame(st->client, st->client_id, f->type, f->chan, f->data,
					 f->len);
		return true;
	default:
		return false;
	}
}

void sup_streams_all_gone(struct sup *s)
{
	struct wire_exit x = { .how = EXIT_REFUSED, .code = 125, .text = s->reason };

	while (s->n_streams) {
		struct stream *st = s->streams[0];

		if (st->job)
			sup_job_exit(s, st, &x);
		else if (st->client)
			sup_client_exit(st->client, st->client_id, &x);
		stream_end(s, st);
	}
}

/* ---- from a client ---- */

static void refuse(struct client *c, uint32_t id, const char *why)
{
	struct wire_exit x = { .how = EXIT_REFUSED, .code = 125, .text = why };

	sup_client_exit(c, id, &x);
}

static const char *closed_because(const struct sup *s)
{
	if (s->state == STATE_STARTING)
		return "the sandbox is still starting; try again";
	return s->state == STATE_RUNNING ? NULL : "the sandbox is stopping";
}

/* What a stream is, for the log: the command, or the path. */
struct what {
	const struct wire_exec *exec; /* or NULL */
	const struct wire_copy *copy;
};

static void describe(struct stream *st, const struct what *w)
{
	size_t n = 0;
	uint32_t i;

	st->copy = !w->exec;
	if (st->copy)
		(void)snprintf(st->what, sizeof(st->what), "%s", w->copy->path);
	for (i = 0; !st->copy && i < w->exec->argc && n < sizeof(st->what) - 1; i++)
		n += (size_t)snprintf(st->what + n, sizeof(st->what) - n, "%s%s", i ? " " : "",
				      w->exec->argv[i]);
}

/* Hand a whole EXEC to the guest, or a COPY as it came. */
static void open_stream(struct client *c, uint32_t id, enum wire_type type, const void *p, size_t n,
			const struct what *w)
{
	const struct wire_exec *x = w->exec;
	struct sup *s = c->sup;
	const char *why = closed_because(s);
	struct stream *st;
	int r;

	if (why) {
		refuse(c, id, why);
		return;
	}
	st = stream_new(s, c, id);
	if (!st) {
		refuse(c, id, "too many commands at once in this sandbox (256)");
		return;
	}
	describe(st, w);
	sup_guest_time(s);
	if (!s->guest.open || wire_message_add(&s->guest.out, st->id, type, p, n) < 0) {
		refuse(c, id, "the sandbox takes no more commands now; try again");
		stream_end(s, st);
		return;
	}
	conn_flush(&s->guest);
	if (!x || !(x->flags & EXEC_DETACH))
		return;
	r = sup_job_new(s, st, c, x);
	if (r < 0) {
		refuse(c, id, "too many detached jobs run in this sandbox (64); end one first");
		sup_stream_orphan(s, st);
	}
}

static bool client_exec(struct client *c, const struct wire_frame *f)
{
	struct wire_exec x;
	int ans;

	if (c->gather_id && c->gather_id != f->stream)
		return false;
	if (sup_stream_of(c, f->stream) || buf_add(&c->gather, f->data, f->len) < 0)
		return false;
	c->gather_id = f->flags & WIRE_MORE ? f->stream : 0;
	if (c->gather_id)
		return true;
	ans = wire_exec_parse(&x, buf_data(&c->gather), c->gather.n);
	if (ans != WIRE_OK)
		return false;
	open_stream(c, f->stream, WIRE_EXEC, buf_data(&c->gather), c->gather.n,
		    &(struct what) { .exec = &x });
	wire_exec_done(&x);
	buf_consume(&c->gather, c->gather.n);
	return true;
}

static bool client_copy(struct client *c, const struct wire_frame *f)
{
	struct wire_copy m;

	if (sup_stream_of(c, f->stream) || wire_copy_parse(&m, f) != WIRE_OK)
		return false;
	open_stream(c, f->stream, f->type, f->data, f->len, &(struct what) { .copy = &m });
	return true;
}

static bool client_credit(struct sup *s, struct stream *st, const struct wire_frame *f)
{
	struct wire_flow *flow = &st->flow[f->chan];
	uint32_t n;

	if (f->chan == 0 || wire_u32_parse(&n, f) != WIRE_OK || n > WIRE_WINDOW - flow->may_come)
		return false;
	flow->may_come += n;
	sup_guest_frame(s, st->id, WIRE_CREDIT, f->chan, f->data, f->len);
	return true;
}

static bool client_data(struct sup *s, struct stream *st, const struct wire_frame *f)
{
	if (f->chan != 0 || f->len > st->flow[0].may_send)
		return false;
	st->flow[0].may_send -= f->len;
	sup_guest_frame(s, st->id, WIRE_DATA, 0, f->data, f->len);
	return true;
}

static bool client_small(struct sup *s, struct stream *st, const struct wire_frame *f)
{
	struct wire_winsize size;
	uint8_t signo;

	if (f->type == WIRE_SIGNAL && wire_signal_parse(&signo, f) != WIRE_OK)
		return false;
	if (f->type == WIRE_WINSIZE && wire_winsize_parse(&size, f) != WIRE_OK)
		return false;
	if (f->type == WIRE_EOF && f->chan != 0)
		return false;
	sup_guest_frame(s, st->id, f->type, f->chan, f->data, f->len);
	return true;
}

bool sup_stream_from_client(struct client *c, const struct wire_frame *f)
{
	struct stream *st;

	if (f->type == WIRE_EXEC)
		return client_exec(c, f);
	if (f->type == WIRE_COPY_IN || f->type == WIRE_COPY_OUT)
		return client_copy(c, f);
	if (sup_job_from_viewer(c, f))
		return true;
	st = sup_stream_of(c, f->stream);
	if (!st)
		return true; /* it came too late: the stream has ended */
	switch (f->type) {
	case WIRE_CREDIT:
		return client_credit(c->sup, st, f);
	case WIRE_DATA:
		return client_data(c->sup, st, f);
	case WIRE_EOF:
	case WIRE_SIGNAL:
	case WIRE_WINSIZE:
	case WIRE_HANGUP:
		return client_small(c->sup, st, f);
	default:
		return false;
	}
}
