#pragma once
/* The files of an image in memory: names, and what they stand for. All memory belongs to the forest and is freed with it; what was
 * removed stays until then. */
#include "base/err.h"
#include "wire/layer.h"

struct node;

/* What one or more names stand for. */
struct inode {
	uint8_t kind; /* LAYER_DIR to LAYER_FIFO */
	uint8_t seen; /* erofs.c */
	uint16_t mode, layer;
	uint32_t uid, gid, mtime_ns, major, minor;
	int64_t mtime;
	uint32_t names; /* nodes that have it */
	uint32_t attrs_len;
	const uint8_t *attrs;
	const char *target;  /* SYMLINK */
	uint64_t size;       /* FILE */
	uint64_t offset;     /* FILE: in the blob of its layer */
	struct node *first;  /* DIR: what is in it */
	uint32_t n, subdirs; /* DIR */
	uint64_t at;         /* erofs.c: where it lies in the image; 0: not placed */
	uint32_t block;      /* erofs.c: where its blocks begin */
	uint32_t number;     /* erofs.c */
};

struct node {
	struct node *parent; /* the root's is itself */
	struct inode *inode;
	struct node *next, *prev; /* in its directory */
	struct node *chain;       /* in the table of names */
	uint16_t depth;
	uint8_t len;
	char name[]; /* with a NUL */
};

/* Steps: components gone through, by all walks together. An honest image of as many files as there may be takes a tenth. */
enum {
	NODES_MAX = 4000000,
	NODES_DEPTH_MAX = 2048,
	NODES_LINKS_MAX = 40,
	NODES_STEPS_MAX = 500000000
};

struct chunk;
struct nodes {
	struct chunk *chunks;
	struct node **table; /* mask + 1 */
	size_t mask;
	size_t n, made; /* names that are there; nodes that were made */
	size_t steps;
	uint64_t seed[2];
	struct node *root;
};

int nodes_init(struct nodes *t, struct err *e) _must_check_;
void nodes_done(struct nodes *t);

struct node *nodes_find(const struct nodes *t, const struct node *dir, const char *name,
			size_t len);
/* A new name in a directory that has none like it. NULL: no memory, or too many. */
struct node *nodes_add(struct nodes *t, struct node *dir, const char *name, size_t len,
		       struct inode *inode);
/* It, and all that is in it. Not for the root. */
void nodes_remove(struct nodes *t, struct node *node);
struct inode *nodes_inode(struct nodes *t, uint8_t kind);
/* A copy that lives as long as the forest; NULL: no memory. */
void *nodes_copy(struct nodes *t, const void *p, size_t n);

/* The directory that the last component of path is in, and that component. Symbolic links on the way are followed within the root,
 * whatever they say. Directories that are missing are made if make is set, else the answer is 1 (as for one that is none).
 * 0, 1, or -errno with *e. */
int nodes_walk(struct nodes *t, const char *path, bool make, struct node **ret_dir,
	       const char **ret_name, struct err *e) _must_check_;
/* Sort what is in a directory by the bytes of the names. 0 or -ENOMEM. */
int nodes_sort(struct inode *dir) _must_check_;
