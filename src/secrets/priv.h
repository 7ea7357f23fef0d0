#pragma once
/* What the files of this room share: an entry as JSON, and the two places where entries are kept. */
#include <jansson.h>

#include "secrets/store.h"

/* ---- entry.c ---- */
/* jansson gives its memory back wiped from here on: what it frees may have been a value. */
void entry_wipe_json(void);

/* From what is kept: {"how", "value" (base64) or "source" and "refresh", "created", "meta", and for a value "masked"}. ret_value NULL: the value is not wanted. 0, -EINVAL (no message: the caller knows what is damaged), -ENOMEM. */
int entry_read(const char *key, const json_t *j, struct store_entry *ret, char **ret_value,
	       size_t *ret_n) _must_check_;
/* All of an object, sorted by key. */
int entry_read_all(const json_t *entries, struct store_entry **ret, size_t *ret_n) _must_check_;
/* An entry as it is kept. What it does not say (meta, created) it takes over from the one that it replaces; before NULL: there was none. NULL on lack of memory. */
json_t *entry_merge(const struct store_entry *entry, const char *value, size_t n,
		    const json_t *before);
/* Frees a text that jansson made, wiped. */
void entry_text_free(char *text);

/* ---- the places ---- */
struct store_kind {
	int (*list)(struct store *s, struct store_entry **ret, size_t *ret_n, struct err *e);
	int (*get)(struct store *s, const char *key, struct store_entry *ret, char **ret_value,
		   size_t *ret_n, struct err *e);
	int (*put)(struct store *s, const struct store_entry *entry, const char *value, size_t n,
		   struct err *e);
	/* A key, or all that begin so. How many there were. */
	int (*remove)(struct store *s, const char *key, bool prefix, struct err *e);
};

struct store {
	const struct store_kind *kind;
	char *dir, *path; /* of the configuration; of the file */
	char *vault;      /* the program that speaks with the Secret Service */
};

extern const struct store_kind store_file, store_service;

/* Which of the two the file names: "file", "service", or "" where nothing was ever stored; *ret_n: entries in the file. */
int file_where(struct store *s, char ret[16], size_t *ret_n, struct err *e) _must_check_;
/* Note it. */
int file_note_where(struct store *s, const char *where, struct err *e) _must_check_;

/* Does the Secret Service answer, with a collection that is open? 0; -ENOENT: there is none; -EBUSY: locked; -ETIMEDOUT; with a message. */
int service_probe(struct store *s, struct err *e) _must_check_;
