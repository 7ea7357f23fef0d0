#pragma once
/* The files that the guest knows: a bounded table, found by number, by host file, or by last name.
 *
 * A node lives while the guest counts it (nlookup) or something of ours needs it (refs: its children,
 * handles, waiting jobs, its share). It is known by (share, device, inode, birth), and remembers the
 * parent and the name under which it was last seen, so that it can be found again without keeping a
 * descriptor. GONE: that name was taken away through us; only an open handle leads to it still.
 *
 * Numbers given to the guest carry a generation, so that one that was reused is not mistaken. No system
 * calls here but close(). */
#include "base/base.h"

#define NODE_ROOT 1U /* the directory of the shares */

struct share;
struct handle;
struct dircache;

/* What makes two looks at the host the same file. birth: ns, 0 where the host does not say, and for
 * directories (an overlay gives them a new one when they are first changed). */
struct node_key {
	uint64_t dev, ino, birth;
};

/* The state of a file when the guest's cache of it was good. */
struct node_seen {
	uint64_t size;
	int64_t mtime, ctime; /* ns */
};

#define NODE_INLINE_NAME 24

struct node {
	struct node_key key;
	uint64_t nlookup;
	struct share *share; /* NULL for the root */
	struct node *parent; /* holds a ref of it; NULL: none, or not known any more */
	struct node *key_next, *name_next;
	struct node *lru_prev, *lru_next; /* while fd >= 0 */
	struct handle *handles;           /* open on it */
	struct node_seen seen, told;      /* told: what the guest was told last */
	uint32_t lock_gen;                /* how often a lock on it was got; 0: never */
	uint32_t index, gen, refs, rule_epoch;
	int fd;         /* O_PATH, kept by place.c for directories; -1 */
	uint16_t type;  /* S_IFMT bits */
	uint16_t locks; /* lock owners on it */
	uint8_t rule;   /* enum path_rule_kind, as of rule_epoch */
	uint8_t git;    /* enum gitconfig_kind, likewise */
	bool used : 1, gone : 1, cache_good : 1;
	bool pinned : 1;     /* fd is the share's, never evicted */
	bool cut : 1;        /* for reset.c */
	bool told_good : 1;  /* the guest may believe `told`: nothing was done through us since */
	bool stale_said : 1; /* the last OPEN was answered with ESTALE, to be asked anew */
	bool shared : 1; /* a directory: a range of a file in it was locked, so others may be at work here */
	bool linked : 1; /* had more than one name when last looked at */
	union {
		char small[NODE_INLINE_NAME];
		char *big;
	} text;
	uint8_t name_len;
};

struct node_table {
	struct node **chunks; /* of NODE_CHUNK nodes, never moved, never given back */
	struct node *free;    /* linked by key_next */
	struct node **by_key, **by_name;
	struct dircache *dirs; /* where descriptors of nodes are kept; the caller's */
	size_t n_chunks, max_chunks, buckets, used, memory;
};

/* max: nodes at a time. 0 or -ENOMEM. */
int node_table_init(struct node_table *t, size_t max, struct dircache *dirs);
void node_table_done(struct node_table *t);

/* The live node of this number, or NULL. */
struct node *node_get(const struct node_table *t, uint64_t id);
uint64_t node_id(const struct node *n);

/* NULL if not known. */
struct node *node_by_key(const struct node_table *t, const struct share *s,
			 const struct node_key *k);
struct node *node_by_name(const struct node_table *t, const struct node *parent, const char *name);

/* A new node with no lookups and no refs: ref or count it, or node_drop() it. NULL: the table is full or
 * memory is. The key may not be in the table. */
struct node *node_new(struct node_table *t, struct share *s, const struct node_key *k,
		      uint16_t type);

/* Where it was last seen. The name is at most 255 bytes. Loops that renames on the host might make are
 * cut. 0 or -ENOMEM (then it is where it was). */
int node_place(struct node_table *t, struct node *n, struct node *parent, const char *name);
/* It is at no name any more. */
void node_unplace(struct node_table *t, struct node *n);
/* The same file as nobody else: not found by its key any more (another file has it now). */
void node_unkey(struct node_table *t, struct node *n);
const char *node_name(const struct node *n);

/* Take away up to n lookups, then free it if nothing needs it. */
void node_forget(struct node_table *t, struct node *n, uint64_t lookups);
void node_ref(struct node *n);
void node_unref(struct node_table *t, struct node *n);
/* Free it, and parents that lived for it, if nothing needs it. */
void node_drop(struct node_table *t, struct node *n);

/* All nodes, for a share that goes: each used one in turn, from *at (0 at first); NULL at the end. */
struct node *node_each(const struct node_table *t, size_t *at);
