#pragma once
/* What the payloads mean: one struct a message, with a writer and a parser.
 *
 * Parsers borrow: texts point into the payload. They answer WIRE_OK or WIRE_E_*; the result is
 * set only on WIRE_OK. Writers append a whole frame and return 0, -ENOBUFS or -ENOMEM.
 * Format: docs/protocol/ctl.md. */
#include "wire/frame.h"

enum { WIRE_MAGIC = 0x62616301, WIRE_VERSION = 1 };

struct wire_hello {
	uint16_t version;
	uint64_t boot_ns;
	const char *release;
};
int wire_hello_add(struct buf *out, const struct wire_hello *m) _must_check_;
int wire_hello_parse(struct wire_hello *ret, const struct wire_frame *f);

struct wire_config {
	uint64_t realtime_ns;
	const char *hostname;
	const char *workdir;
};
int wire_config_add(struct buf *out, const struct wire_config *m) _must_check_;
int wire_config_parse(struct wire_config *ret, const struct wire_frame *f);

enum { MOUNT_RO = 1, MOUNT_FILE = 2, MOUNT_FLAGS = 3 };

/* MOUNT, UMOUNT: a share, as the guest and people see it. */
struct wire_mount {
	uint32_t id; /* its name in the root of the file server; 0 from a client */
	uint8_t flags;
	const char *path;  /* absolute */
	const char *alias; /* another name for it, absolute, or "" */
};
int wire_mount_add(struct buf *out, enum wire_type type, const struct wire_mount *m) _must_check_;
int wire_mount_parse(struct wire_mount *ret, const struct wire_frame *f);

/* MOUNTED: the guest's answer to both. */
struct wire_mounted {
	uint32_t id;
	uint32_t code;    /* errno, positive; 0: done */
	const char *text; /* what went wrong, or "" */
};
int wire_mounted_add(struct buf *out, const struct wire_mounted *m) _must_check_;
int wire_mounted_parse(struct wire_mounted *ret, const struct wire_frame *f);

enum { CHANGED_MODIFIED = 1, CHANGED_ATTRIBUTES, CHANGED_CREATED, CHANGED_DELETED, CHANGED_N };

/* A request of one of these groups to the file server asks it to do nothing and say that it was done: see
 * docs/workspace.md. No program of the guest can make the server do more by it. */
enum wire_poke { POKE_MAKE = 0x7bac0001, POKE_CHANGE, POKE_REMOVE, POKE_REMOVE_DIR };

/* CHANGED: the host changed something in a share. */
struct wire_changed {
	uint32_t id;      /* share */
	uint8_t kind;     /* CHANGED_... */
	uint8_t dir;      /* it is a folder */
	const char *path; /* relative to the share */
};
int wire_changed_add(struct buf *out, const struct wire_changed *m) _must_check_;
int wire_changed_parse(struct wire_changed *ret, const struct wire_frame *f);

/* TRUST: the certificate of the sandbox's own authority, PEM; "" when there is none any more. It takes the place of the one
 * before. A text that is longer than WIRE_PEM_MAX is -ENOBUFS. */
int wire_trust_add(struct buf *out, const char *pem) _must_check_;
int wire_trust_parse(const char **ret, const struct wire_frame *f);

/* ENV: defaults of every command's environment, each NAME=value; the whole list, which takes the place of the one before. */
struct wire_env {
	uint32_t n;
	const char **v; /* NULL-terminated */
};
int wire_env_add(struct buf *out, const struct wire_env *m) _must_check_;
/* WIRE_OK, WIRE_E_* or -ENOMEM. The array is on the heap: wire_env_done(). The texts borrow. */
int wire_env_parse(struct wire_env *ret, const struct wire_frame *f);
void wire_env_done(struct wire_env *m);

/* IMAGE, before CONFIG: the root is somebody's image, with these variables. Read as an ENV. */
int wire_image_add(struct buf *out, const struct wire_env *m) _must_check_;

/* READY, TIME, PING, PONG: one number. */
int wire_u64_add(struct buf *out, enum wire_type type, uint64_t v) _must_check_;
int wire_u64_parse(uint64_t *ret, const struct wire_frame *f);

/* SHUTDOWN, STATUS, STARTED: one number, on any stream. CREDIT: with a channel. */
int wire_u32_add(struct buf *out, uint32_t stream, enum wire_type type, uint8_t chan, uint32_t v)
	_must_check_;
int wire_u32_parse(uint32_t *ret, const struct wire_frame *f);

/* FAIL, NOTE, ATTACH, JOB_IS: one text. Longer texts are cut at max bytes by the writer. */
int wire_text_add(struct buf *out, uint32_t stream, enum wire_type type, const char *s)
	_must_check_;
int wire_text_parse(const char **ret, const struct wire_frame *f);

/* Messages without a payload. */
int wire_empty_add(struct buf *out, uint32_t stream, enum wire_type type) _must_check_;

/* AGENT and STARTUP go with DETACH and are the supervisor's: the job that 'bac run' attaches to; a kit's startup command, whose
 * output goes into the sandbox's log and which does not count as use of the sandbox. */
enum {
	EXEC_TTY = 1,
	EXEC_STDIN = 2,
	EXEC_DETACH = 4,
	EXEC_AGENT = 8,
	EXEC_STARTUP = 16,
	EXEC_FLAGS = 31
};

struct wire_exec {
	uint16_t flags;
	uint16_t rows, cols;
	uint32_t timeout_ms;
	const char *user;  /* "", "name", "uid", "name:group" */
	const char *cwd;   /* "" for the default */
	const char **argv; /* NULL-terminated; argc is at least 1 */
	uint32_t argc;
	const char **env; /* NULL-terminated */
	uint32_t envc;
};
/* The payload (not framed; for wire_message_add()) into out. */
int wire_exec_put(struct buf *out, const struct wire_exec *m) _must_check_;
/* WIRE_OK, WIRE_E_* or -ENOMEM. The two arrays are on the heap: wire_exec_done(). The texts borrow. */
int wire_exec_parse(struct wire_exec *ret, const void *p, size_t n);
void wire_exec_done(struct wire_exec *m);

enum { COPY_TO_DIR = 1, COPY_FOLLOW = 1, COPY_CONTENT = 2 };

struct wire_copy {
	uint16_t flags;
	const char *path; /* absolute, in the guest */
	const char *name; /* COPY_IN: last component of the source, or "" */
	const char *user; /* who owns what is made, as in wire_exec */
};
int wire_copy_add(struct buf *out, uint32_t stream, enum wire_type type, const struct wire_copy *m)
	_must_check_;
int wire_copy_parse(struct wire_copy *ret, const struct wire_frame *f);

enum wire_how {
	EXIT_STATUS,      /* code: status */
	EXIT_SIGNAL,      /* code: signal */
	EXIT_NOT_STARTED, /* code: 126 or 127 */
	EXIT_TIMEOUT,     /* code: 124 */
	EXIT_REFUSED,     /* code: 125 */
	EXIT_COPIED,      /* code: 0 or 1 */
	EXIT_HOW_N,
};

struct wire_exit {
	uint8_t how;
	uint8_t code;
	const char *text; /* "" if there is nothing to say */
};
int wire_exit_add(struct buf *out, uint32_t stream, const struct wire_exit *m) _must_check_;
int wire_exit_parse(struct wire_exit *ret, const struct wire_frame *f);
/* What a shell would show: status, 128+signal, 124 to 127. */
int wire_exit_status(const struct wire_exit *m);

int wire_signal_add(struct buf *out, uint32_t stream, uint8_t signo) _must_check_;
int wire_signal_parse(uint8_t *ret, const struct wire_frame *f); /* 1 to 64 */

struct wire_winsize {
	uint16_t rows, cols;
};
int wire_winsize_add(struct buf *out, uint32_t stream, struct wire_winsize m) _must_check_;
int wire_winsize_parse(struct wire_winsize *ret, const struct wire_frame *f);

/* ---- the door ---- */

int wire_door_add(struct buf *out, const char *id) _must_check_;
int wire_door_parse(const char **ret_id, const struct wire_frame *f);

struct wire_status {
	uint8_t state;       /* enum wire_state */
	uint8_t answers;     /* the guest answered in time */
	uint8_t accel;       /* enum wire_accel */
	uint32_t sessions;   /* running commands with a client */
	uint32_t jobs;       /* running detached jobs */
	uint64_t started_ns; /* realclock */
	uint64_t boot_ns;    /* from the start of QEMU to READY */
	uint32_t qemu_pid;
	const char *remark; /* "" or something worth showing */
};

/* The life of a supervisor. The names are shown to people. */
#define WIRE_STATES(X) \
	X(STARTING, "starting") X(RUNNING, "running") X(STOPPING, "stopping") X(GONE, "stopped")
#define X(n, s) STATE_##n,
enum wire_state { WIRE_STATES(X) STATE_N };
#undef X
const char *wire_state_name(uint8_t state);

enum wire_accel { ACCEL_TCG, ACCEL_KVM, ACCEL_N };

int wire_status_add(struct buf *out, const struct wire_status *m) _must_check_;
int wire_status_parse(struct wire_status *ret, const struct wire_frame *f);

enum { STOP_NOW = 1, STOP_IF_IDLE = 2, STOP_FLAGS = 3 };

struct wire_stop {
	uint32_t deadline_ms;
	uint8_t flags;
};
int wire_stop_add(struct buf *out, const struct wire_stop *m) _must_check_;
int wire_stop_parse(struct wire_stop *ret, const struct wire_frame *f);

struct wire_failed {
	uint32_t code; /* errno, positive */
	const char *text;
};
int wire_failed_add(struct buf *out, const struct wire_failed *m) _must_check_;
int wire_failed_parse(struct wire_failed *ret, const struct wire_frame *f);

enum { JOB_AGENT = 1, JOB_STARTUP = 2, JOB_FLAGS = 3 };

struct wire_job {
	const char *id;
	uint8_t running;
	uint8_t how, code; /* as in wire_exit, once not running */
	uint64_t started_ns, ended_ns;
	const char *command;
	const char *user;
	uint8_t flags; /* JOB_* */
};
int wire_job_add(struct buf *out, const struct wire_job *m) _must_check_;
int wire_job_parse(struct wire_job *ret, const struct wire_frame *f);

struct wire_job_kill {
	const char *id;
	uint8_t signo;
};
int wire_job_kill_add(struct buf *out, const struct wire_job_kill *m) _must_check_;
int wire_job_kill_parse(struct wire_job_kill *ret, const struct wire_frame *f);
