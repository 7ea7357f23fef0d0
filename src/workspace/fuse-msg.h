#pragma once
/* One FUSE request, read from a private copy into checked parts. Pure: no system calls, no allocation.
 * The format is that of <linux/fuse.h> (7.31 to 7.38), host byte order.
 *
 * A request is a struct fuse_in_header and a body: one struct of the opcode's, then its names, each with
 * a NUL, then bytes up to the end. */
#include <linux/fuse.h>

#include "base/base.h"

#define FUSE_MSG_NAME_MAX   255U
#define FUSE_MSG_TARGET_MAX 4095U /* of a symbolic link */
#define FUSE_MSG_XATTR_MAX  255U  /* name of an extended attribute */
#define FUSE_MSG_VALUE_MAX  65536U
/* The longest request without the bytes of a WRITE; longer ones are refused unread. */
#define FUSE_MSG_MAX \
	(sizeof(struct fuse_in_header) + 16 + FUSE_MSG_XATTR_MAX + 1 + FUSE_MSG_VALUE_MAX)

enum fuse_msg_answer {
	FUSE_MSG_OK = 0,
	FUSE_MSG_E_HEADER,  /* no header, or its length is not that of the request */
	FUSE_MSG_E_UNKNOWN, /* an opcode that is not served: ENOSYS */
	FUSE_MSG_E_BODY,    /* a body that is not the opcode's: EINVAL */
	FUSE_MSG_E_NAME,    /* a name that cannot be: EINVAL */
	FUSE_MSG_E_LONG,    /* a name that is too long: ENAMETOOLONG */
};

struct fuse_msg {
	struct fuse_in_header h;
	const char *op; /* "LOOKUP", for the log */
	/* All borrowed from the copy. */
	const void *arg; /* the opcode's struct, whole, aligned to 8; NULL if it has none */
	size_t arg_len;  /* of INIT, which has grown: what the guest sent */
	const char *name, *name2;
	const uint8_t *data; /* what follows: a value, a list to forget */
	size_t data_len;
};

/* How many bytes of a request of this opcode are to be copied: all of it, or of a WRITE its arguments.
 * total: of the whole request. */
size_t fuse_msg_head(uint32_t opcode, size_t total);

/* Read p (aligned to 8, head bytes as fuse_msg_head() said, of a request of total bytes). m->h and m->op
 * are set unless the answer is FUSE_MSG_E_HEADER. */
enum fuse_msg_answer fuse_msg_parse(struct fuse_msg *m, const void *p, size_t head, size_t total);
