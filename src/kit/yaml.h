#pragma once
/* YAML as far as bac's files need it: texts, lists and maps, each with line and column. Tags, several documents and keys that come twice are
 * refused, and so is what is too large or too deep. Anchors, aliases and merges ("<<") are refused by yaml_parse(), and bounded by yaml_read(), which copies what they stand for: a copy
 * counts as if it were written out. Values are texts: what they mean is up to who reads them. */
#include "base/err.h"

enum {
	YAML_MAX = 256 * 1024,
	YAML_DEPTH_MAX = 16,
	YAML_NODES_MAX = 8192,
	YAML_ANCHORS_MAX = 64,
	YAML_COPIES_MAX = 1024 * 1024, /* bytes of what aliases stand for */
	YAML_PATH_MAX = 160
};

enum yaml_kind { YAML_NONE = 0, YAML_TEXT, YAML_LIST, YAML_MAP };

struct yaml {
	uint8_t kind;
	bool plain;                  /* a text without quotes */
	unsigned line, column;       /* from 1; of its key, where it has one */
	unsigned at_line, at_column; /* of the value itself */
	char *key;                   /* of one in a map */
	char *path;     /* "credentials[0].service", cut at YAML_PATH_MAX; NULL: the whole */
	char *text;     /* YAML_TEXT; "" for nothing */
	struct yaml *v; /* what is in it, in order */
	size_t n;
};

struct kit_report;

/* 0; -EINVAL with line; -E2BIG; -ENOMEM. Hostile bytes are fine. An empty text is YAML_NONE. */
int yaml_parse(const char *text, size_t n, struct yaml *ret, struct err *e) _must_check_;
/* With anchors, aliases and merges. What is wrong is in the report, under the name of the file, keys that come twice all of them; then -EINVAL, and e is not set.
 * -ENOMEM. */
int yaml_read(const char *text, size_t n, const char *file, struct yaml *ret,
	      struct kit_report *rep, struct err *e) _must_check_;
void yaml_done(struct yaml *y);
/* Is it nothing, as YAML says it: no value, ~, null? */
bool yaml_is_null(const struct yaml *y);

/* Of a map; NULL if it is not there. */
const struct yaml *yaml_get(const struct yaml *map, const char *key);

/* Is it a map (list, text)? `what` is for the message: "line 3: 'domains' is a list". */
int yaml_want(const struct yaml *y, enum yaml_kind kind, const char *what, struct err *e)
	_must_check_;
/* A map, with no other keys than these (NULL-terminated). */
int yaml_keys(const struct yaml *y, const char *const *keys, const char *what, struct err *e)
	_must_check_;
/* The text of a map's key; NULL where it is not there. */
int yaml_text(const struct yaml *map, const char *key, const char **ret, struct err *e)
	_must_check_;
/* true or false; *ret stays where it is not there. */
int yaml_bool(const struct yaml *map, const char *key, bool *ret, struct err *e) _must_check_;
