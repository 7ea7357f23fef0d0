#pragma once
/* Who a command runs as: /etc/passwd and /etc/group, read without NSS. */
#include <sys/types.h>

#include "base/err.h"

enum {
	USER_FILE_MAX = 128 * 1024, /* larger passwd and group files count as empty */
	USER_GROUPS_MAX = 256,      /* further groups are left out */
	USER_PATH_MAX = 1024,       /* home or shell; a longer one counts as absent */
};

struct user {
	uint32_t uid, gid;
	char name[256]; /* the number as text if it has no entry */
	char home[USER_PATH_MAX];
	char shell[USER_PATH_MAX];
	gid_t groups[USER_GROUPS_MAX]; /* supplementary ones, without gid */
	size_t n_groups;
};

/* The content of the two files, borrowed. */
struct user_files {
	const char *passwd, *group;
	size_t passwd_len, group_len;
};

/* Read a file into buf. The length; 0 if it is missing, too large or not a regular file. Never waits for
 * anything but the disk, and does not touch errno. */
size_t user_read(const char *path, char *buf, size_t max);

/* Resolve `spec`: "name", "uid", "name:group", "uid:gid" and so on; "" is the agent. A number without
 * an entry is taken as it is, with "/" as home. An explicit group means: no supplementary groups. 0, or
 * -ENOENT or -EINVAL with a message. Makes no system call and does not allocate. */
int user_find(struct user *ret, const struct user_files *f, const char *spec, struct err *e)
	_must_check_;
