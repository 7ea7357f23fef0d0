#pragma once
/* The files of a kit: spec.yaml, files/home and files/workspace, and nothing else of the folder that they are in.
 *
 * Taken from an open directory that may change or lie while we look: every name is opened below it and never through a link, every file is read once. Links
 * must stay inside of the tree that they are in. What is copied is what was checked. */
#include "base/err.h"

enum {
	KIT_TREE_ENTRIES_MAX = 4096,
	KIT_TREE_BYTES_MAX = 64 * 1024 * 1024,
	KIT_TREE_DEPTH_MAX = 32,
	KIT_TREE_PATH_MAX = 1024,
	KIT_SPEC_MAX = 256 * 1024,
};

enum kit_entry_kind { KIT_FILE = 'f', KIT_EXEC = 'x', KIT_DIR = 'd', KIT_LINK = 'l' };

struct kit_entry {
	char *path; /* "spec.yaml", "files/home/.bashrc" */
	char *link; /* of a KIT_LINK, else NULL */
	uint64_t size;
	uint8_t kind;
	uint8_t sum[32]; /* SHA-256 of a file */
};

struct kit_tree {
	struct kit_entry *v; /* in the order of their paths' bytes */
	size_t n;
	uint64_t bytes;
	char digest[65]; /* SHA-256 over its files and links: kinds, paths, targets, contents */
	char **ignored;  /* what is there and not used: "files/etc" */
	size_t n_ignored;
};

/* Walk the kit at src; to: an empty directory that takes a copy (modes 0644 and 0755), or -1. 0; -ENOENT: no spec.yaml; -EINVAL, -EFBIG, -Exxx with a
 * message. kit_tree_done() on success. */
int kit_tree_take(int src, int to, struct kit_tree *ret, struct err *e) _must_check_;
void kit_tree_done(struct kit_tree *t);

/* One file below an open kit, of at most max bytes, on the heap with a NUL behind. */
int kit_tree_read(int kit, const char *path, size_t max, char **ret, size_t *ret_n, struct err *e)
	_must_check_;
