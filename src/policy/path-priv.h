#pragma once
/* What path.c (patterns), path-freeze.c (the tree) and path-decide.c share. */
#include "policy/path-part.h"
#include "policy/path.h"

enum part_kind {
	PART_TEXT, /* no '*', no '?' */
	PART_GLOB,
	PART_MANY, /* "**": any number of components; never the last of a rule */
};

struct path_part {
	uint16_t at; /* first byte in the rule's text */
	uint8_t len;
	uint8_t kind; /* enum part_kind */
};

#define PATH_ORIGIN_MAX 32 /* with the NUL */

struct path_rule {
	enum path_rule_kind kind;
	char origin[PATH_ORIGIN_MAX];
	char *text;  /* as it was added, and a '*' of our own behind its NUL; of this allocation */
	size_t size; /* of this allocation */
	uint16_t n_parts;
	struct path_part parts[];
};

/* A copy, or NULL on lack of memory; free() it. */
struct path_rule *path_rule_copy(const struct path_rule *old);

struct path_builder {
	struct path_rule **rules;
	size_t n, cap, bytes;
};

/* The rules as a tree of components: the way from a root to a node is the beginning of one or more
 * patterns. Nodes are numbers; 0 means none, except as a parent. */
#define ROOT_STRICT 0 /* HIDE and PROTECT: folds */
#define ROOT_ALLOW  1 /* exceptions: exact */

struct path_node {
	const char *s; /* the component; not for roots and "**" */
	uint32_t hash; /* of parent and folded component */
	uint16_t parent;
	uint16_t many; /* the child "**" */
	uint16_t glob; /* the first child with '*' or '?' */
	uint16_t next; /* the next sibling of that kind */
	uint16_t rule; /* 1 + the first rule that ends here */
	uint8_t len;
	uint8_t first, last; /* of a glob: folded, or 0 if '*' or '?' */
	uint8_t below;       /* strictest kind that ends below; ROOT_STRICT's side only */
	bool exact;          /* below ROOT_ALLOW */
	bool texts;          /* has children without '*' and '?' */
	bool somewhere;      /* not a root, nor "**" below a root: part of the way is fixed */
};

struct path_frees {
	uint32_t at; /* in frees */
	uint16_t n;
};

struct path_rules {
	bool ready;     /* zeros decide nothing but HIDE */
	size_t n_rules; /* those that can still decide something */
	size_t n_nodes;
	size_t mask; /* slots of the table - 1 */
	enum path_rule_kind strictest;
	struct path_rule **rules; /* owned copies, in order of adding */
	uint16_t *same;           /* of each rule: 1 + the next that ends at the same node */
	struct path_frees *freed; /* of each rule: which exceptions free from it */
	uint16_t *frees;
	struct path_node *nodes;
	uint16_t *table; /* open addressing: nodes that are texts, by hash; 0 is empty */
};

#define PATH_HASH_INIT 2166136261U

/* FNV-1a over the folded bytes of a component ... */
static inline uint32_t path_hash_byte(uint32_t h, char c)
{
	return (h ^ path_fold(c)) * 16777619U;
}

/* ... and then with the node above it. */
static inline uint32_t path_hash_node(uint32_t h, size_t parent)
{
	h ^= (uint32_t)parent * 0x9e3779b1U;
	return h ^ h >> 15;
}

/* The child of parent that is this very text (h from path_hash_node()), or 0. */
uint16_t path_node_find(const struct path_rules *r, size_t parent, uint32_t h, const char *s,
			size_t len);
