/* Payloads of the door: what a command and the supervisor say to each other. */
#include "wire/msg.h"

#define X(n, s) [STATE_##n] = s,
static const char *const state_names[] = { WIRE_STATES(X) };
#undef X

const char *wire_state_name(uint8_t state)
{
	return state < ARRAY_SIZE(state_names) ? state_names[state] : "unknown";
}

static int framed(struct buf *out, enum wire_type type, const struct wr *w)
{
	return wr_ok(w) ? wire_frame_add(out, 0, type, 0, w->p, w->n) : -ENOBUFS;
}

int wire_door_add(struct buf *out, const char *id)
{
	uint8_t b[128];
	struct wr w = wr_init(b, sizeof(b));

	wr_be32(&w, WIRE_MAGIC);
	wr_be16(&w, WIRE_VERSION);
	wr_be16(&w, 0);
	wr_str(&w, id);
	return framed(out, WIRE_DOOR, &w);
}

int wire_door_parse(const char **ret_id, const struct wire_frame *f)
{
	struct rd r = rd_init(f->data, f->len);
	uint32_t magic = rd_be32(&r);
	uint16_t version = rd_be16(&r), zero = rd_be16(&r);
	const char *id = rd_str(&r, WIRE_NAME_MAX);

	if (!rd_done(&r) || magic != WIRE_MAGIC || version != WIRE_VERSION || zero)
		return WIRE_E_MALFORMED;
	*ret_id = id;
	return WIRE_OK;
}

int wire_status_add(struct buf *out, const struct wire_status *m)
{
	uint8_t b[2048];
	struct wr w = wr_init(b, sizeof(b));

	wr_u8(&w, m->state);
	wr_u8(&w, m->answers);
	wr_u8(&w, m->accel);
	wr_u8(&w, 0);
	wr_be32(&w, m->sessions);
	wr_be32(&w, m->jobs);
	wr_be64(&w, m->started_ns);
	wr_be64(&w, m->boot_ns);
	wr_be32(&w, m->qemu_pid);
	wr_cut(&w, m->remark, WIRE_TEXT_MAX);
	return framed(out, WIRE_STATUS_IS, &w);
}

int wire_status_parse(struct wire_status *ret, const struct wire_frame *f)
{
	struct rd r = rd_init(f->data, f->len);
	struct wire_status m;
	uint8_t zero;

	m.state = rd_u8(&r);
	m.answers = rd_u8(&r);
	m.accel = rd_u8(&r);
	zero = rd_u8(&r);
	m.sessions = rd_be32(&r);
	m.jobs = rd_be32(&r);
	m.started_ns = rd_be64(&r);
	m.boot_ns = rd_be64(&r);
	m.qemu_pid = rd_be32(&r);
	m.remark = rd_str(&r, WIRE_TEXT_MAX);
	if (!rd_done(&r) || m.state >= STATE_N || m.accel >= ACCEL_N || m.answers > 1 || zero)
		return WIRE_E_MALFORMED;
	*ret = m;
	return WIRE_OK;
}

int wire_stop_add(struct buf *out, const struct wire_stop *m)
{
	uint8_t b[5];
	struct wr w = wr_init(b, sizeof(b));

	wr_be32(&w, m->deadline_ms);
	wr_u8(&w, m->flags);
	return framed(out, WIRE_STOP, &w);
}

int wire_stop_parse(struct wire_stop *ret, const struct wire_frame *f)
{
	struct rd r = rd_init(f->data, f->len);
	struct wire_stop m;

	m.deadline_ms = rd_be32(&r);
	m.flags = rd_u8(&r);
	if (!rd_done(&r) || m.flags & ~STOP_FLAGS)
		return WIRE_E_MALFORMED;
	*ret = m;
	return WIRE_OK;
}

int wire_failed_add(struct buf *out, const struct wire_failed *m)
{
	uint8_t b[2048];
	struct wr w = wr_init(b, sizeof(b));

	wr_be32(&w, m->code);
	wr_cut(&w, m->text, WIRE_TEXT_MAX);
	return framed(out, WIRE_FAILED, &w);
}

int wire_failed_parse(struct wire_failed *ret, const struct wire_frame *f)
{
	struct rd r = rd_init(f->data, f->len);
	struct wire_failed m;

	m.code = rd_be32(&r);
	m.text = rd_str(&r, WIRE_TEXT_MAX);
	if (!rd_done(&r) || m.code == 0 || m.code > 4095)
		return WIRE_E_MALFORMED;
	*ret = m;
	return WIRE_OK;
}

int wire_job_add(struct buf *out, const struct wire_job *m)
{
	uint8_t b[2048];
	struct wr w = wr_init(b, sizeof(b));

	wr_str(&w, m->id);
	wr_u8(&w, m->running);
	wr_u8(&w, m->how);
	wr_u8(&w, m->code);
	wr_u8(&w, m->flags);
	wr_be64(&w, m->started_ns);
	wr_be64(&w, m->ended_ns);
	wr_cut(&w, m->command, DOOR_COMMAND_MAX);
	wr_cut(&w, m->user, WIRE_USER_MAX);
	return framed(out, WIRE_JOB, &w);
}

int wire_job_parse(struct wire_job *ret, const struct wire_frame *f)
{
	struct rd r = rd_init(f->data, f->len);
	struct wire_job m;

	m.id = rd_str(&r, WIRE_NAME_MAX);
	m.running = rd_u8(&r);
	m.how = rd_u8(&r);
	m.code = rd_u8(&r);
	m.flags = rd_u8(&r);
	m.started_ns = rd_be64(&r);
	m.ended_ns = rd_be64(&r);
	m.command = rd_str(&r, DOOR_COMMAND_MAX);
	m.user = rd_str(&r, WIRE_USER_MAX);
	if (!rd_done(&r) || m.running > 1 || m.how >= EXIT_HOW_N || m.flags & ~JOB_FLAGS)
		return WIRE_E_MALFORMED;
	*ret = m;
	return WIRE_OK;
}

int wire_job_kill_add(struct buf *out, const struct wire_job_kill *m)
{
	uint8_t b[128];
	struct wr w = wr_init(b, sizeof(b));

	wr_str(&w, m->id);
	wr_u8(&w, m->signo);
	return framed(out, WIRE_JOB_KILL, &w);
}

int wire_job_kill_parse(struct wire_job_kill *ret, const struct wire_frame *f)
{
	struct rd r = rd_init(f->data, f->len);
	struct wire_job_kill m;

	m.id = rd_str(&r, WIRE_NAME_MAX);
	m.signo = rd_u8(&r);
	if (!rd_done(&r) || m.signo < 1 || m.signo > 64)
		return WIRE_E_MALFORMED;
	*ret = m;
	return WIRE_OK;
}
