/* Detached commands: they belong to the sandbox, not to a client.
 *
 * The output of a job goes into a ring of records (u8 channel, be16 length, bytes), numbered by the byte
 * since the job's start. A viewer (bac exec --attach) has a position in it and reads on as its own
 * credit allows. Without viewers the guest gets its credit back at once, and old records make room for
 * new ones; with viewers it gets it back only as far as the slowest has read, so that a viewer misses
 * nothing and a stalled one holds the job as a stalled terminal would.
 *
 * The agent's terminal is another matter: what it wrote once is no use on a second terminal, where it would ask the same questions again and
 * be answered twice. A program that draws is told of a size instead, by who attaches, and draws all of it anew; the new terminal is only brought
 * into its modes. Of one that does not draw, such as a shell, the last of what it wrote is shown. */
#include <stdio.h>

#include "base/term.h"
#include "base/text.h"
#include "io/fd.h"
#include "supervisor/sup.h"

enum { RECORD = 3, VIEWERS_MAX = 16, WHY_MAX = 256, AGENT_TAIL = 32 * 1024 };

struct viewer {
	struct client *client;
	uint32_t id; /* stream number at the client */
	uint64_t at; /* position in the ring */
	uint32_t credit[3];
};

struct job {
	struct job *next;
	char id[16];
	char *command, *user;
	struct stream *stream; /* NULL once it has ended */
	struct buf ring;       /* whole records */
	uint64_t base;         /* position of the ring's first byte */
	uint64_t started_ns, ended_ns;
	uint8_t how, code, flags; /* JOB_* */
	char why[WHY_MAX];        /* what the guest said of its end */
	struct term term;         /* AGENT: the modes of its terminal */
	struct slog_carry carry;  /* STARTUP: its output goes into the log */
	struct viewer viewers[VIEWERS_MAX];
	unsigned n_viewers;
};

unsigned sup_jobs_running(const struct sup *s)
{
	const struct job *j;
	unsigned n = 0;

	for (j = s->jobs; j; j = j->next)
		n += j->stream && !(j->flags & JOB_STARTUP);
	return n;
}

unsigned sup_jobs_startup(const struct sup *s)
{
	const struct job *j;
	unsigned n = 0;

	for (j = s->jobs; j; j = j->next)
		n += j->stream && j->flags & JOB_STARTUP;
	return n;
}

static struct job *find(struct sup *s, const char *id)
{
	struct job *j;

	for (j = s->jobs; j; j = j->next)
		if (streq(j->id, id))
			return j;
	return NULL;
}

static void job_free(struct job *j)
{
	free(j->command);
	free(j->user);
	buf_done(&j->ring);
	free(j);
}

/* Make room in the table: the oldest one that has ended goes. */
static bool drop_ended(struct sup *s)
{
	struct job **at = &s->jobs, **oldest = NULL, *gone;

	for (; *at; at = &(*at)->next)
		if (!(*at)->stream && !(*at)->n_viewers)
			oldest = at; /* new ones are put in front */
	if (!oldest)
		return false;
	gone = *oldest;
	*oldest = gone->next;
	job_free(gone);
	s->n_jobs--;
	return true;
}

/* The command line as a person would read it. */
static char *command_line(const struct wire_exec *x)
{
	char line[DOOR_COMMAND_MAX + 1];
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < x->argc && n < sizeof(line) - 1; i++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%s", i ? " " : "", x->argv[i]);
	line[MIN(n, sizeof(line) - 1)] = '\0';
	return strdup(line);
}

int sup_job_new(struct sup *s, struct stream *st, struct client *c, const struct wire_exec *x)
{
	struct job *j;

	if (s->n_jobs >= DOOR_JOBS_MAX && !drop_ended(s))
		return -ENOSPC;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->command = command_line(x);
	j->user = strdup(x->user[0] ? x->user : "agent");
	if (!j->command || !j->user) {
		job_free(j);
		return -ENOMEM;
	}
	buf_init(&j->ring, DOOR_JOB_RING);
	(void)snprintf(j->id, sizeof(j->id), "j%u", ++s->next_job);
	j->started_ns = fd_real_ns();
	j->flags = (uint8_t)((x->flags & EXEC_AGENT ? JOB_AGENT : 0) |
			     (x->flags & EXEC_STARTUP ? JOB_STARTUP : 0));
	j->stream = st;
	j->next = s->jobs;
	s->jobs = j;
	s->n_jobs++;
	st->job = j;
	if (wire_text_add(&c->conn.out, st->client_id, WIRE_JOB_IS, j->id) == 0)
		conn_flush(&c->conn);
	st->client = NULL;
	c->streams--;
	sup_use_changed(s);
	return 0;
}

static size_t record_len(const uint8_t *p)
{
	return RECORD + (size_t)(p[1] << 8 | p[2]);
}

static uint64_t slowest(const struct job *j)
{
	uint64_t at = j->base + j->ring.n;
	unsigned i;

	for (i = 0; i < j->n_viewers; i++)
		at = MIN(at, j->viewers[i].at);
	return at;
}

/* Give the guest back what it may send: all of the window but what the slowest viewer has not read. */
static void pay(struct sup *s, struct job *j)
{
	uint64_t behind = j->base + j->ring.n - slowest(j);
	uint8_t chan, b[4];

	if (!j->stream)
		return;
	for (chan = 1; chan <= 2; chan++) {
		struct wire_flow *f = &j->stream->flow[chan];
		uint32_t may = behind > WIRE_WINDOW / 2 ? 0 : WIRE_WINDOW;
		struct wr w = wr_init(b, sizeof(b));

		if (may < f->may_come || may - f->may_come < WIRE_WINDOW / 4)
			continue;
		wr_be32(&w, may - f->may_come);
		f->may_come = may;
		sup_guest_frame(s, j->stream->id, WIRE_CREDIT, chan, b, sizeof(b));
	}
}

static void view_exit(struct job *j, struct viewer *v)
{
	struct wire_exit x = { .how = j->how, .code = j->code, .text = j->why };

	sup_client_exit(v->client, v->id, &x);
}

/* Send a viewer what it may have. True: it has all, the job has ended, and so has the viewer. */
static bool show(struct job *j, struct viewer *v)
{
	if (v->at < j->base)
		v->at = j->base;
	while (v->at < j->base + j->ring.n) {
		const uint8_t *p = buf_data(&j->ring) + (v->at - j->base);
		size_t len = record_len(p) - RECORD;

		if (len > v->credit[p[0]])
			return false;
		v->credit[p[0]] -= (uint32_t)len;
		sup_client_frame(v->client, v->id, WIRE_DATA, p[0], p + RECORD, len);
		v->at += RECORD + len;
	}
	if (j->stream)
		return false;
	view_exit(j, v);
	return true;
}

static void show_all(struct job *j)
{
	unsigned i = 0;

	while (i < j->n_viewers) {
		if (show(j, &j->viewers[i]))
			j->viewers[i] = j->viewers[--j->n_viewers];
		else
			i++;
	}
}

void sup_job_data(struct sup *s, struct stream *st, const struct wire_frame *f)
{
	struct job *j = st->job;
	uint8_t head[RECORD] = { f->chan, (uint8_t)(f->len >> 8), (uint8_t)f->len };

	while (j->ring.n && buf_space(&j->ring) < RECORD + f->len) {
		size_t n = record_len(buf_data(&j->ring));

		buf_consume(&j->ring, n);
		j->base += n;
	}
	if (buf_add(&j->ring, head, RECORD) == 0 && buf_add(&j->ring, f->data, f->len) < 0)
		j->ring.n -= RECORD; /* no memory: this piece is lost, the ring stays whole */
	if (j->flags & JOB_STARTUP)
		slog_bytes(s->log, &j->carry, j->id, f->data, f->len);
	if (j->flags & JOB_AGENT)
		term_see(&j->term, f->data, f->len);
	show_all(j);
	pay(s, j);
}

void sup_job_exit(struct sup *s, struct stream *st, const struct wire_exit *x)
{
	struct job *j = st->job;

	j->stream = NULL;
	j->how = x->how;
	j->code = x->code;
	j->ended_ns = fd_real_ns();
	(void)snprintf(j->why, sizeof(j->why), "%s", x->text);
	if (x->text[0])
		slog_say(s->log, "job %s: %s", j->id, x->text);
	else if (j->flags & JOB_STARTUP && wire_exit_status(x))
		slog_say(s->log, "job %s: ended with %d", j->id, wire_exit_status(x));
	show_all(j);
}

void sup_job_list(struct client *c)
{
	struct job *j;

	for (j = c->sup->jobs; j; j = j->next) {
		struct wire_job m = { .id = j->id,
				      .running = j->stream != NULL,
				      .how = j->how,
				      .code = j->code,
				      .flags = j->flags,
				      .started_ns = j->started_ns,
				      .ended_ns = j->ended_ns,
				      .command = j->command,
				      .user = j->user };

		if (wire_job_add(&c->conn.out, &m) < 0)
			return;
	}
	if (wire_empty_add(&c->conn.out, 0, WIRE_DONE) == 0)
		conn_flush(&c->conn);
}

static void fail(struct client *c, int code, const char *fmt, const char *id)
{
	struct wire_failed m = { .code = (uint32_t)code };
	char text[128];

	(void)snprintf(text, sizeof(text), "job '%.64s' %s", id, fmt);
	m.text = text;
	if (wire_failed_add(&c->conn.out, &m) == 0)
		conn_flush(&c->conn);
}

void sup_job_kill(struct client *c, const struct wire_job_kill *m)
{
	struct job *j = find(c->sup, m->id);

	if (!j) {
		fail(c, ENOENT, "not found (see 'bac exec --list')", m->id);
		return;
	}
	if (!j->stream) {
		fail(c, ESRCH, "has ended already", m->id);
		return;
	}
	sup_guest_frame(c->sup, j->stream->id, WIRE_SIGNAL, 0, &m->signo, 1);
	if (wire_empty_add(&c->conn.out, 0, WIRE_DONE) == 0)
		conn_flush(&c->conn);
}

/* What another terminal begins with. */
static void join_agent(struct job *j, struct viewer *v)
{
	struct buf modes = BUF_INIT(TERM_TEXT_MAX);
	uint64_t end = j->base + j->ring.n;

	if (term_draws(&j->term)) {
		v->at = end;
		if (term_put(&j->term, &modes) == 0 && modes.n) {
			v->credit[1] -= (uint32_t)modes.n;
			sup_client_frame(v->client, v->id, WIRE_DATA, 1, buf_data(&modes), modes.n);
		}
	}
	while (v->at + AGENT_TAIL < end)
		v->at += record_len(buf_data(&j->ring) + (v->at - j->base));
	buf_done(&modes);
}

void sup_job_attach(struct client *c, uint32_t client_id, const char *id)
{
	struct wire_exit x = { .how = EXIT_REFUSED, .code = 125 };
	struct job *j = find(c->sup, id);
	struct viewer *v;
	char text[128];

	if (!j || j->n_viewers >= VIEWERS_MAX) {
		(void)snprintf(text, sizeof(text), "job '%.64s' %s", id,
			       j ? "has too many viewers" : "not found (see 'bac exec --list')");
		x.text = text;
		sup_client_exit(c, client_id, &x);
		return;
	}
	v = &j->viewers[j->n_viewers++];
	*v = (struct viewer) { .client = c,
			       .id = client_id,
			       .at = j->base,
			       .credit = { 0, WIRE_WINDOW, WIRE_WINDOW } };
	if (j->flags & JOB_AGENT)
		join_agent(j, v);
	show_all(j);
}

static struct viewer *viewer_of(struct client *c, uint32_t id, struct job **ret)
{
	struct job *j;
	unsigned i;

	for (j = c->sup->jobs; j; j = j->next)
		for (i = 0; i < j->n_viewers; i++)
			if (j->viewers[i].client == c && j->viewers[i].id == id) {
				*ret = j;
				return &j->viewers[i];
			}
	return NULL;
}

static void viewer_credit(struct sup *s, struct job *j, struct viewer *v,
			  const struct wire_frame *f)
{
	uint32_t n;

	if (wire_u32_parse(&n, f) != WIRE_OK || n > WIRE_WINDOW - v->credit[f->chan])
		return;
	v->credit[f->chan] += n;
	show_all(j);
	pay(s, j);
}

bool sup_job_from_viewer(struct client *c, const struct wire_frame *f)
{
	struct sup *s = c->sup;
	struct job *j;
	struct viewer *v = viewer_of(c, f->stream, &j);

	if (!v)
		return false;
	switch (f->type) {
	case WIRE_CREDIT:
		viewer_credit(s, j, v, f);
		break;
	case WIRE_DATA:
		/* A viewer's typing: what the job's input has no room for is dropped. */
		if (j->stream && f->chan == 0 && f->len <= j->stream->flow[0].may_send) {
			j->stream->flow[0].may_send -= f->len;
			sup_guest_frame(s, j->stream->id, WIRE_DATA, 0, f->data, f->len);
		}
		sup_client_frame(c, f->stream, WIRE_CREDIT, 0,
				 (uint8_t[]) { 0, 0, (uint8_t)(f->len >> 8), (uint8_t)f->len }, 4);
		break;
	case WIRE_SIGNAL:
	case WIRE_WINSIZE:
		if (j->stream)
			sup_guest_frame(s, j->stream->id, f->type, 0, f->data, f->len);
		break;
	default:
		break;
	}
	return true;
}

void sup_job_viewer_gone(struct client *c)
{
	struct job *j;
	unsigned i;

	for (j = c->sup->jobs; j; j = j->next) {
		for (i = 0; i < j->n_viewers;) {
			if (j->viewers[i].client == c)
				j->viewers[i] = j->viewers[--j->n_viewers];
			else
				i++;
		}
		pay(c->sup, j);
	}
}

void sup_jobs_free(struct sup *s)
{
	while (s->jobs) {
		struct job *j = s->jobs;

		s->jobs = j->next;
		job_free(j);
	}
}
