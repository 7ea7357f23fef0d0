#pragma once
/* The shared folders as a FUSE file system: requests in, answers out. Knows nothing of virtio.
 *
 * All functions are called by one thread. What may wait for long (sync, lock waits, big copies) is done
 * by threads of its own and answered later. The process's working directory becomes proc_fd and its
 * umask is the guest's (the host's kernel applies it where no default ACL says otherwise); the calling
 * thread gives up CAP_FSETID, so that the host's kernel strips setuid bits as for any user. */
#include <sys/types.h>
#include <sys/uio.h>

#include "base/base.h"

#define FS_LATER (-EINPROGRESS)

#define FS_SHARE_RO   1U /* nothing below may be changed */
#define FS_SHARE_FILE 2U /* the share is one regular file */

#define FS_MAX_WRITE (1U << 20) /* bytes of one READ or WRITE */
#define FS_AGENT_ID  1000U      /* what the server's own uid and gid are to the guest */
#define FS_IOV_MAX   1024U      /* pieces of one request, in or out */

struct fs;
struct leak_set;
struct path_rules;

/* Kinds of a refusal besides those of rules: a secret was written, or was not. */
enum { FS_LEAK = 16, FS_LEAK_REFUSED };

/* A request of the guest's that a path rule refused. The texts live until the callback returns. */
struct fs_refusal {
	uint8_t kind; /* enum path_rule_kind, FS_LEAK, FS_LEAK_REFUSED */
	uint32_t share;
	const char *path; /* below the share, real names, no leading slash */
	const char *rule; /* FS_LEAK: the name of the secret */
	const char *op;   /* "OPEN", "RENAME", ... */
};

/* Something that the host changed in a folder that the guest has listed. */
struct fs_change {
	uint32_t share;
	uint8_t kind; /* CHANGED_... (wire/msg.h) */
	bool dir;
	const char *path; /* below the share */
};

struct fs_config {
	int proc_fd; /* the directory /proc/self/fd; stays the caller's, open as long as the fs */
	uid_t uid;   /* ids of the user for whom all is done */
	gid_t gid;
	size_t fd_budget;  /* descriptors kept for directories; 0: 8192; 4 to 65536 */
	size_t node_max;   /* files known to the guest at a time; 0: 2 Mi (some 400 MiB) */
	size_t handle_max; /* open files of the guest; 0: 16384; at most 262144 */
	const struct path_rules *rules; /* NULL: everything is free; stays the caller's */
	void (*refused)(void *arg, const struct fs_refusal *r); /* may be NULL */
	void (*changed)(void *arg, const struct fs_change *c); /* may be NULL: nothing is watched */
	void *refused_arg;                                     /* of both */
};

/* The pieces point into guest memory, which may change at any time: headers and arguments are copied
 * once. The arrays and what they point to stay valid until the answer; the struct itself is copied. */
struct fs_req {
	const struct iovec *in;
	size_t n_in;
	const struct iovec *out;
	size_t n_out;
	void *token; /* comes back from fs_completed() */
};

/* 0, -ENOMEM, or -errno of eventfd, fchdir, sigaction. */
int fs_new(const struct fs_config *c, struct fs **ret);
/* Ends all waits, joins the threads, closes everything. Requests not yet answered are not. */
struct fs *fs_free(struct fs *f);
DEFINE_FREEP(struct fs, fs_free)

/* >= 0: answered, so many bytes were written to out (0: no answer is due, FORGET); FS_LATER: comes from
 * fs_completed(); other negative: the guest broke the protocol (no whole header, a wrong length, no
 * room for an answer). */
ssize_t fs_handle(struct fs *f, struct fs_req *r);

/* An eventfd, readable when fs_completed() has something. The fs's own. */
int fs_completion_fd(const struct fs *f);
/* Readable when fs_watched() has something to tell to the hook `changed`; -1: there is no such thing. */
int fs_watch_fd(const struct fs *f);
void fs_watched(struct fs *f);
/* One more late answer: its token and the bytes written to its out. False: none. */
bool fs_completed(struct fs *f, void **ret_token, size_t *ret_len);

/* A share becomes the entry "ID" of the root. fd (taken, also on failure): an O_PATH or readable
 * descriptor of the directory, or with FS_SHARE_FILE of the regular file. path: where it is in the guest,
 * absolute; tells which shares lie inside which. On a mount without device files (nodev) each OPEN takes two
 * system calls less. 0, -EEXIST, -EINVAL, -ENOTDIR, -ENOSPC, -ENOMEM. */
int fs_share_add(struct fs *f, uint32_t id, unsigned flags, int fd, const char *path);
/* Whatever was reached through it answers ESTALE from now on, its descriptors are closed. -ENOENT. */
int fs_share_remove(struct fs *f, uint32_t id);

/* Secrets that are looked for in what the guest writes, from now on; s is taken over, and empty then. refuse: such a write gets EACCES; else it is told only, once for each open file. */
void fs_marks(struct fs *f, struct leak_set *s, bool refuse);

/* For tests and the log: how full the tables are. */
struct fs_counts {
	size_t nodes, handles, locks, dir_fds, jobs, node_memory;
};
void fs_count(const struct fs *f, struct fs_counts *ret);
