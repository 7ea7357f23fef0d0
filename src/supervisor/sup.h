#pragma once
/* What the files of the supervisor share: one sandbox, its guest, its clients, its jobs.
 *
 * Who owns what: the sup owns everything; a client owns nothing but its connection; a stream belongs to
 * the guest wire and lives until the guest's EXIT, whoever listens. */
#include <uv.h>

#include "base/err.h"
#include "base/leak.h"
#include "supervisor/conn.h"
#include "supervisor/log.h"
#include "wire/flow.h"
#include "wire/msg.h"
#include "wire/order.h"

/* Events in the life of the sandbox; see life.c for the table. */
#define SUP_EVENTS(X) \
	X(READY)       /* the guest is up */ \
	X(FAIL)        /* the guest says that it cannot come up */ \
	X(STOP)        /* somebody asked for an orderly stop */ \
	X(STOP_NOW)    /* somebody asked for an end at once */ \
	X(IDLE)        /* nobody has used it for the configured time */ \
	X(SHARE_GONE)  /* the file server is gone */ \
	X(NET_GONE)    /* what looks after the network is gone */ \
	X(WIRE_BROKEN) /* the guest broke the protocol, or closed the wire */ \
	X(DEADLINE)    /* the boot or the stop took too long */ \
	X(QEMU_GONE)
#define X(n) EV_##n,
enum sup_event { SUP_EVENTS(X) EV_N };
#undef X

enum { SUP_CLIENT_STREAMS = 8, SUP_WHAT_MAX = 160 };

struct sup;
struct job;
struct share;
struct netdoor;
struct stream_marks;
struct net_text;

struct client {
	struct conn conn;
	struct sup *sup;
	struct client *next;
	struct buf gather;  /* an EXEC that comes in several frames */
	uint32_t gather_id; /* its stream; 0: none */
	unsigned streams;
	bool waits_ready, waits_gone, waits_status;
	const struct net_text
		*waits_text;   /* the policy or the credentials, which it brought; NULL: none */
	uint32_t waits_number; /* its number */
};

/* One running command, seen from the wire. */
struct stream {
	uint32_t id;           /* on the guest wire */
	struct client *client; /* who listens, or NULL */
	uint32_t client_id;    /* its number there */
	struct job *job;       /* if detached */
	struct wire_flow flow[3];
	char what[SUP_WHAT_MAX];       /* the command, or the path that is copied; cut */
	bool copy, leaked;             /* a copy; a secret was seen in it */
	struct stream_marks *marks[2]; /* of channels 1 and 2; NULL: nothing is looked for */
};

struct sup {
	uv_loop_t loop;
	struct wire_order order;
	char *order_bytes; /* order borrows from it */
	enum wire_state state;
	struct slog *log;
	struct slog_carry console_carry, kernel_carry;
	int dir_fd, run_fd, run_json, lock_fd, ready_fd;

	pid_t qemu;
	int qemu_pidfd;
	pid_t share_pid; /* the file server; -1: gone */
	int share_pidfd, share_fd;
	uv_poll_t share_poll;
	uv_timer_t share_late;
	struct share *shares; /* parents first */
	unsigned n_shares;
	uint32_t next_share, share_seq;
	struct netdoor *net;   /* NULL: no network */
	struct leak_set marks; /* of secrets that are not to leave the guest: marks.h */
	uint8_t *marks_bytes;  /* the same, while the workspace server has not got them */
	size_t marks_n;
	uint64_t started_ns, started_real_ns, boot_ns;
	struct conn guest, qmp;
	uv_poll_t console, listener, clock_jump;
	int console_fd, listen_fd, clock_fd;
	uv_signal_t sigchld, sigterm;
	uv_timer_t deadline, idle, ping;
	bool hello;     /* the guest has said HELLO */
	char note[280]; /* its NOTE: for the command that started us */
	bool wire_dead;
	bool reading_guest; /* what comes of it for clients is sent when all is read */

	struct client *clients;
	unsigned n_clients;
	struct stream *streams[WIRE_STREAMS_MAX];
	unsigned n_streams;
	uint32_t next_stream;
	struct job *jobs;
	unsigned n_jobs;
	uint32_t next_job;
	unsigned stop_flags;
	uint32_t stop_ms;
	char reason[256]; /* why it ended, for run.json and for clients */
	bool hung;        /* the boot passed its deadline: worth a second try */
	bool clean;       /* the guest said BYE */
};

/* life.c */
void sup_event(struct sup *s, enum sup_event ev);
void sup_reason(struct sup *s, const char *fmt, ...) _printf_(2, 3);
/* Signals first, before QEMU is started, so that its end is not missed; then the rest. */
int sup_life_start(struct sup *s, struct err *e) _must_check_;
int sup_life_watch(struct sup *s, struct err *e) _must_check_;
/* The guest wire was closed: QEMU must end soon, or is ended. */
void sup_life_wire_closed(struct sup *s);

/* guest.c: the guest wire */
int sup_guest_open(struct sup *s, int ctl_fd, int qmp_fd, struct err *e) _must_check_;
void sup_guest_time(struct sup *s);
void sup_guest_shutdown(struct sup *s);
void sup_guest_quit(struct sup *s); /* through QMP, and SIGKILL */
/* Append to the guest's queue; a queue that is full breaks the wire. */
void sup_guest_frame(struct sup *s, uint32_t stream, enum wire_type type, uint8_t chan,
		     const void *p, size_t n);

/* stream.c */
struct stream *sup_stream_of(struct client *c, uint32_t client_id);
/* Nobody listens any more: the guest is told, and its output is swallowed. */
void sup_stream_orphan(struct sup *s, struct stream *st);
/* A frame from the guest on a stream. False: it broke the protocol. */
bool sup_stream_from_guest(struct sup *s, const struct wire_frame *f);
/* A frame from a client on a stream. False likewise. */
bool sup_stream_from_client(struct client *c, const struct wire_frame *f);
void sup_streams_all_gone(struct sup *s); /* the guest is gone: each client gets an EXIT */
void sup_use_changed(struct sup *s);      /* start or stop the idle timer */

/* door.c: the clients */
int sup_door_open(struct sup *s, struct err *e) _must_check_;
void sup_door_close(struct sup *s);
void sup_door_flush(struct sup *s);  /* what reading the guest has left in the queues */
void sup_door_settle(struct sup *s); /* answer those who wait for a state */
void sup_door_answer_status(struct sup *s, bool guest_answers);
void sup_client_frame(struct client *c, uint32_t stream, enum wire_type type, uint8_t chan,
		      const void *p, size_t n);
void sup_client_failed(struct client *c, int code, const char *text); /* code: errno */
void sup_client_exit(struct client *c, uint32_t client_id, const struct wire_exit *x);

/* jobs.c: detached commands */
/* Makes the job that owns st; the client is told its id. 0, or -errno. */
int sup_job_new(struct sup *s, struct stream *st, struct client *c, const struct wire_exec *x);
void sup_job_data(struct sup *s, struct stream *st, const struct wire_frame *f);
void sup_job_exit(struct sup *s, struct stream *st, const struct wire_exit *x);
void sup_job_list(struct client *c);
void sup_job_kill(struct client *c, const struct wire_job_kill *m);
void sup_job_attach(struct client *c, uint32_t client_id, const char *id);
/* A frame from a viewer. True: it was for a job. */
bool sup_job_from_viewer(struct client *c, const struct wire_frame *f);
void sup_job_viewer_gone(struct client *c);
unsigned sup_jobs_running(const struct sup *s); /* without those of startup, which are no use */
unsigned sup_jobs_startup(const struct sup *s);
void sup_jobs_free(struct sup *s);

/* seal.c */
/* Before the event loop is made: no io_uring, so that libuv (1.45 and later) does without. */
int sup_seal_rings(struct err *e) _must_check_;
/* From here on only the listed system calls. */
int sup_seal(struct err *e) _must_check_;
