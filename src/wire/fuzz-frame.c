/* Any bytes as a conversation from each of the four sides; every payload goes through its parser,
 * and what a parser accepts can be written and read again. */
#include "base/check.h"
#include "wire/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static union any {
	struct wire_hello hello;
	struct wire_config config;
	struct wire_copy copy;
	struct wire_exit exit;
	struct wire_winsize winsize;
	struct wire_status status;
	struct wire_stop stop;
	struct wire_failed failed;
	struct wire_job job;
	struct wire_job_kill job_kill;
	const char *text;
	uint64_t u64;
	uint32_t u32;
	uint8_t u8;
} m;

static size_t touch(const char *s)
{
	return strlen(s);
}

static size_t guest_message(const struct wire_frame *f)
{
	struct wire_exec exec;
	struct wire_env env;

	switch (f->type) {
	case WIRE_HELLO:
		return wire_hello_parse(&m.hello, f) == WIRE_OK ? touch(m.hello.release) : 0;
	case WIRE_CONFIG:
		if (wire_config_parse(&m.config, f) == WIRE_OK)
			return touch(m.config.hostname) + touch(m.config.workdir);
		return 0;
	case WIRE_FAIL:
	case WIRE_NOTE:
		return wire_text_parse(&m.text, f) == WIRE_OK ? touch(m.text) : 0;
	case WIRE_EXEC:
		if (wire_exec_parse(&exec, f->data, f->len) == WIRE_OK)
			wire_exec_done(&exec);
		return 0;
	case WIRE_TRUST:
		return wire_trust_parse(&m.text, f) == WIRE_OK ? touch(m.text) : 0;
	case WIRE_ENV:
	case WIRE_IMAGE:
		if (wire_env_parse(&env, f) == WIRE_OK)
			wire_env_done(&env);
		return 0;
	case WIRE_COPY_IN:
	case WIRE_COPY_OUT:
		if (wire_copy_parse(&m.copy, f) != WIRE_OK)
			return 0;
		check(m.copy.path[0] == '/' && !strchr(m.copy.name, '/'));
		return touch(m.copy.path) + touch(m.copy.user);
	case WIRE_EXIT:
		if (wire_exit_parse(&m.exit, f) != WIRE_OK)
			return 0;
		check(wire_exit_status(&m.exit) <= 128 + 255);
		return touch(m.exit.text);
	case WIRE_SIGNAL:
		if (wire_signal_parse(&m.u8, f) == WIRE_OK)
			check(m.u8 >= 1 && m.u8 <= 64);
		return 0;
	case WIRE_WINSIZE:
		check(wire_winsize_parse(&m.winsize, f) == WIRE_OK);
		return 0;
	default: /* bytes, numbers and nothing */
		check((wire_u64_parse(&m.u64, f) == WIRE_OK) == (f->len == 8));
		check((wire_u32_parse(&m.u32, f) == WIRE_OK) == (f->len == 4));
		return 0;
	}
}

static size_t door_message(const struct wire_frame *f)
{
	switch (f->type) {
	case WIRE_DOOR:
		return wire_door_parse(&m.text, f) == WIRE_OK ? touch(m.text) : 0;
	case WIRE_STATUS_IS:
		if (wire_status_parse(&m.status, f) != WIRE_OK)
			return 0;
		check(!streq(wire_state_name(m.status.state), "unknown"));
		return touch(m.status.remark);
	case WIRE_STOP:
		if (wire_stop_parse(&m.stop, f) == WIRE_OK)
			check(!(m.stop.flags & ~STOP_FLAGS));
		return 0;
	case WIRE_FAILED:
		return wire_failed_parse(&m.failed, f) == WIRE_OK ? touch(m.failed.text) : 0;
	case WIRE_JOB:
		if (wire_job_parse(&m.job, f) == WIRE_OK)
			return touch(m.job.id) + touch(m.job.command) + touch(m.job.user);
		return 0;
	case WIRE_JOB_KILL:
		return wire_job_kill_parse(&m.job_kill, f) == WIRE_OK ? touch(m.job_kill.id) : 0;
	case WIRE_ATTACH:
	case WIRE_JOB_IS:
		return wire_text_parse(&m.text, f) == WIRE_OK ? touch(m.text) : 0;
	default:
		return 0;
	}
}

/* A frame that was taken is made of these very bytes. */
static void written_again(const struct wire_frame *f, const uint8_t *p)
{
	uint8_t head[WIRE_HEADER];

	wire_header_put(head, f->stream, f->type, f->chan, f->flags, f->len);
	check(!memcmp(head, p, WIRE_HEADER));
}

static void conversation(enum wire_from from, const uint8_t *p, size_t n)
{
	struct wire_frame f;
	size_t used;

	while (wire_frame_parse(&f, &used, from, p, n) == WIRE_OK) {
		check(used <= n && f.len <= WIRE_FRAME_MAX && used == WIRE_HEADER + (size_t)f.len);
		check(f.data == p + WIRE_HEADER && f.chan <= 2);
		check(!streq(wire_type_name(f.type), "?"));
		written_again(&f, p);
		check((f.type < WIRE_DOOR ? guest_message(&f) : door_message(&f)) <= f.len);
		p += used;
		n -= used;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	conversation(FROM_GUEST, p, n);
	conversation(FROM_HOST, p, n);
	conversation(FROM_CLIENT, p, n);
	conversation(FROM_DOOR, p, n);
	return 0;
}
