#pragma once
/* The server's end of the conversation with its supervisor (wire/share.h): shares come and go, rules are set
 * once, refusals are told. */
#include "policy/path.h"
#include "wire/share.h"
#include "workspace/fs.h"

struct control {
	int sock;
	struct fs *fs; /* from the first share on, or START; ours */
	struct fs_config config;
	struct path_rules *rules; /* ours */
	bool start;               /* START came; to be answered with control_started() */
	uint32_t start_seq;
	uint64_t deaf_until;              /* fd_now_ns() at which news are told again */
	uint64_t second;                  /* in which refusals are counted */
	uint32_t refused;                 /* told in it */
	uint32_t dropped;                 /* not told since the last */
	struct share_msg m;               /* the one that is being done */
	int fd;                           /* that came with it, or -1 */
	uint8_t bytes[SHARE_MSG_MAX + 1]; /* one more, to see what is too long */
};

/* sock and c->proc_fd stay the caller's; the hook for refusals is set by us. 0 or -ENOMEM. */
int control_new(int sock, const struct fs_config *c, struct control **ret) _must_check_;
struct control *control_free(struct control *c); /* the file system too; NULL is fine */

/* Wait for one message if `wait`, and do it. 1: done; 0: none there; -ECONNRESET: the supervisor has gone;
 * -EPROTO or another errno: the conversation is over. */
int control_read(struct control *c, bool wait) _must_check_;

/* The process is sealed (r is 0), or it could not be: answer START. 0 or -errno. */
int control_started(struct control *c, int r) _must_check_;
