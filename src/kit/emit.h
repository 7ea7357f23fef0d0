#pragma once
/* One tree, written as YAML or as JSON: whoever writes says map, list and text, and nothing of either. */
#include "base/buf.h"
#include "kit/yaml.h"

enum { EMIT_DEPTH_MAX = 24 };

struct emit {
	struct buf *out; /* borrowed */
	bool json;
	unsigned depth;
	bool list[EMIT_DEPTH_MAX],
		some[EMIT_DEPTH_MAX]; /* of each level: is it a list; is something in it */
	bool started;
	int r; /* 0, or the first failure */
};

/* key: NULL in a list and at the top. */
void emit_map(struct emit *m, const char *key);
void emit_list(struct emit *m, const char *key);
void emit_end(struct emit *m);
void emit_text(struct emit *m, const char *key, const char *text);
/* A number, true, false: as it is. */
void emit_word(struct emit *m, const char *key, const char *word);
/* Unless it is NULL or empty. */
void emit_some(struct emit *m, const char *key, const char *text);
/* A tree as it was read. */
void emit_tree(struct emit *m, const char *key, const struct yaml *y);
