#pragma once
/* The file system as its own parts see it, and the call: one request on its way through. */
#include <sys/stat.h>

#include "base/leak.h"
#include "workspace/dirbuf.h"
#include "workspace/dircache.h"
#include "workspace/fs.h"
#include "workspace/fuse-msg.h"
#include "workspace/handle.h"
#include "workspace/iov.h"
#include "workspace/lock.h"
#include "workspace/node.h"
#include "workspace/share.h"
#include "workspace/worker.h"

#define FS_DEVS     64U    /* host devices told apart in inode numbers */
#define FS_OUT_MAX  65536U /* the longest answer but that of a READ */
#define FS_PATH_MAX 4096U
#define FS_RULE_MAX 65536U /* a path that a rule is asked about: relative steps lead deep */

struct watches;
struct alias;

/* again.c */
#define AGAIN_MAX 32U
struct again {
	bool used;
	int fd;         /* what was found, or -1 */
	uint64_t node;  /* its number; 0: none yet */
	uint32_t pid;   /* the guest's thread that was told to look */
	uint64_t until; /* fd_now_ns() */
};

/* Files with several names of which one is ruled (ruling.c). */
#define RULING_LINKS 65536U
struct ruling_link {
	uint64_t dev, ino;
	uint8_t kind; /* enum path_rule_kind; 0: free slot */
};
struct ruling_links {
	struct ruling_link *slot; /* RULING_LINKS of them, made when first needed */
	size_t n;
};

struct fs {
	struct fs_config cfg;
	struct dircache dirs;
	struct node_table nodes;
	struct handle_table handles;
	struct share_list shares;
	struct dirbufs dirbufs;
	struct lock_table locks;
	struct worker *worker;
	struct watches *watches; /* or NULL */
	struct again again[AGAIN_MAX];
	unsigned again_next, n_again;
	uint32_t pid; /* of the request at hand */
	struct ruling_links ruled;
	struct alias *aliases; /* ALIAS_MAX of them, made when first needed */
	size_t n_aliases;
	struct leak_set marks; /* none: nothing is looked for */
	bool marks_refuse;
	struct node *root;
	uint64_t devs[FS_DEVS]; /* attr.c */
	unsigned n_devs;
	uint32_t rule_epoch; /* what nodes remember of rules is as old as this */
	uint32_t umask;      /* the process's, as last set; UINT32_MAX: not known */
	bool ready;          /* INIT was answered */
	struct iovec iov[FS_IOV_MAX];
	char path[FS_PATH_MAX], rule_path[2][FS_RULE_MAX], alias_path[FS_RULE_MAX];
	_Alignas(8) uint8_t in[FUSE_MSG_MAX];
	_Alignas(8) uint8_t out[FS_OUT_MAX];
};

struct call {
	const struct fs_req *r;
	struct fuse_msg m;
	struct node *n; /* of the header's number, if the opcode has one */
	size_t room;    /* bytes for an answer's body */
};

/* Each serves one opcode: the length of the body, which it has put; FS_LATER; or -errno, which is the
 * answer. */
typedef ssize_t call_fn(struct fs *f, struct call *c);

/* Put a whole body; its length, or -ERANGE if there is no room. */
ssize_t call_put(const struct call *c, const void *body, size_t len);
