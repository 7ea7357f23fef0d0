#pragma once
/* Typed reading of YAML into a kit: what a field must look like is in tables, what does not is told and left out, and reading goes on. Nothing that is null is read at all: it
 * counts as not there. */
#include "kit/pool.h"
#include "kit/report.h"

struct kit;
struct kit_texts;

struct take {
	const char *file; /* for messages; NULL: none */
	struct kit_report *rep;
	struct pool *pool;
	struct kit *kit;
};

struct take_field {
	const char *key;
	void (*read)(struct take *t, const struct yaml *y,
		     void *into); /* NULL: taken note of elsewhere */
	size_t off;               /* where in what take_map() fills */
};

#define TAKE_FAULT(t, y, ...) report_fault((t)->rep, (t)->file, y, __VA_ARGS__)
#define TAKE_WARN(t, y, ...)  report_warn((t)->rep, (t)->file, y, __VA_ARGS__)

/* "found X, expected Y" about this node; a reference to an argument that is not replaced is said to be one. */
void take_wrong(struct take *t, const struct yaml *y, const char *expected);
/* Is it a map (list)? Else it is told. */
bool take_is(struct take *t, const struct yaml *y, enum yaml_kind kind);
/* The fields of a map into a struct; an unknown one is told with its nearest, or with where it has gone (take_moved). */
void take_map(struct take *t, const struct yaml *y, const struct take_field *f, size_t n,
	      void *into);
/* The node as it is told about when its name is what is wrong. */
struct yaml take_key(const struct yaml *y);
/* What stands at a key, unless it is null; NULL: nothing. */
const struct yaml *take_get(const struct yaml *map, const char *key);
/* The items of a list, each read into an element of the array (of zeros) that is returned; NULL: none. */
void *take_list(struct take *t, const struct yaml *y, size_t size,
		void (*one)(struct take *t, const struct yaml *y, void *into), size_t *ret_n);
/* That a key is missing in this map. */
void take_missing(struct take *t, const struct yaml *map, const char *key, const char *expected);
/* Which name it has in schema 2 (or 1), by the path of a field that this one does not have: "'setup.install'". NULL: unknown. */
const char *take_moved(const char *path);
/* The same of the nearest such name, for one that was mistyped. */
const char *take_moved_near(const char *path);

/* ---- readers of one value ---- */
void take_text(struct take *t, const struct yaml *y, void *into); /* char *; not empty */
void take_any(struct take *t, const struct yaml *y, void *into);  /* char *; may be empty */
void take_bool(struct take *t, const struct yaml *y, void *into); /* bool */
void take_size(struct take *t, const struct yaml *y, void *into); /* uint64_t, bytes, above 0 */
void take_mode(struct take *t, const struct yaml *y, void *into); /* unsigned, up to 07777 */
void take_words(struct take *t, const struct yaml *y,
		void *into); /* struct kit_texts; none empty */
void take_argv(struct take *t, const struct yaml *y,
	       void *into); /* struct kit_texts; may be empty ones */
