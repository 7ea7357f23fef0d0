#pragma once
/* A command's end of the door: a connection to one supervisor. Every wait has a deadline. */
#include "cli/say.h"
#include "wire/msg.h"

struct door {
	int fd;
	struct buf in, out;
	size_t taken; /* bytes of in that the last frame took */
};

/* Deadlines are fd_now_ns() values. */
uint64_t door_in_ms(uint64_t ms);

/* Connect to run_dir/ctl.sock and read the greeting. 0; -ENOENT or -ECONNREFUSED: nobody there (no message);
 * else -Exxx with a message. */
int door_open(const char *run_dir, uint64_t deadline, struct door *ret, struct err *e) _must_check_;
/* Only connect; the greeting (DOOR) comes as the first frame. */
int door_connect(const char *run_dir, struct door *ret, struct err *e) _must_check_;
/* Take the greeting. What is queued may be sent before. 0 or -errno as door_next(). */
int door_greeted(struct door *d, uint64_t deadline) _must_check_;
void door_done(struct door *d);

/* Send all that is queued. 0, -ETIMEDOUT, -errno. */
int door_flush(struct door *d, uint64_t deadline) _must_check_;

/* The next frame; it borrows from the door until the next call. 0, -ETIMEDOUT, -EPIPE (the supervisor is
 * gone), -EPROTO. */
int door_next(struct door *d, uint64_t deadline, struct wire_frame *ret) _must_check_;

/* Send what is queued and read one answer of the given type. FAILED becomes an error with the supervisor's
 * text. 0 or -Exxx with a message; name is the sandbox's. */
int door_answer(struct door *d, const char *name, enum wire_type type, uint64_t deadline,
		struct wire_frame *ret, struct err *e) _must_check_;

/* Hand over a policy (a memory file; borrowed) and wait until it holds. 0, or -Exxx with a message; name is the sandbox's. */
int door_policy(struct door *d, const char *name, int policy, uint64_t deadline, struct err *e)
	_must_check_;
/* Likewise credentials: the file of policy/cred.h. */
int door_credentials(struct door *d, const char *name, int file, uint64_t deadline, struct err *e)
	_must_check_;
