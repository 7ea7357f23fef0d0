#include "kit/yaml.h"

#include <libfyaml.h>
#include <stdarg.h>

#include "base/text.h"
#include "kit/report.h"

/* A node that has a name: what its aliases are copies of. */
struct anchor {
	char *name;
	struct yaml y;
};

struct reader {
	struct fy_parser *parser;
	struct fy_diag *diag;
	size_t nodes, copied;
	struct anchor anchors[YAML_ANCHORS_MAX];
	size_t n_anchors;
	const char *file;
	struct kit_report *rep; /* NULL: the first fault ends it, and there are no anchors */
	struct err *e;
};

static unsigned line_of(struct fy_event *event)
{
	const struct fy_mark *m = fy_event_start_mark(event);

	return m && m->line >= 0 ? (unsigned)m->line + 1 : 0;
}

static unsigned column_of(struct fy_event *event)
{
	const struct fy_mark *m = fy_event_start_mark(event);

	return m && m->column >= 0 ? (unsigned)m->column + 1 : 0;
}

/* Whichever way faults go. */
static int fault_at(struct reader *r, unsigned line, unsigned column, const char *text)
{
	struct err none;

	if (r->rep)
		report_fault_at(r->rep, r->file, line, column, "%s", text);
	(void)err_set(r->rep ? &none : r->e, -EINVAL, "%s", text);
	return err_ctx(r->rep ? &none : r->e, "line %u", line);
}

static int fault(struct reader *r, struct fy_event *event, const char *fmt, ...) _printf_(3, 4);
static int fault(struct reader *r, struct fy_event *event, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return fault_at(r, line_of(event), column_of(event), text);
}

static int no_memory(struct reader *r)
{
	return err_set(r->e, -ENOMEM, "out of memory");
}

/* NOLINTNEXTLINE(misc-no-recursion): at most YAML_DEPTH_MAX deep */
void yaml_done(struct yaml *y)
{
	while (y->n)
		yaml_done(&y->v[--y->n]);
	free(y->v);
	free(y->key);
	free(y->path);
	free(y->text);
	*y = (struct yaml) { 0 };
}

bool yaml_is_null(const struct yaml *y)
{
	static const char *const words[] = { "", "~", "null", "Null", "NULL" };
	size_t i;

	for (i = 0; y->kind == YAML_TEXT && y->plain && i < ARRAY_SIZE(words); i++)
		if (streq(y->text, words[i]))
			return true;
	return y->kind == YAML_NONE;
}

/* What the parser has against the text. */
static int parser_fault(struct reader *r)
{
	struct fy_diag_error *e;
	void *at = NULL;

	e = fy_diag_errors_iterate(r->diag, &at);
	if (!e)
		return fault_at(r, 1, 1, "not YAML");
	return fault_at(r, (unsigned)MAX(e->line, 1), (unsigned)MAX(e->column, 1), e->msg);
}

/* The next event; the caller frees it. */
static int next(struct reader *r, struct fy_event **ret)
{
	*ret = fy_parser_parse(r->parser);
	return *ret ? 0 : parser_fault(r);
}

static int text_of(struct reader *r, struct fy_event *event, char **ret)
{
	size_t n = 0;
	const char *s = fy_token_get_text(event->scalar.value, &n);

	if (s && memchr(s, '\0', n))
		return fault(r, event, "found a NUL");
	*ret = text_dup(s, s ? n : 0);
	return *ret ? 0 : no_memory(r);
}

/* Another node in a list or map; NULL on lack of memory. */
static struct yaml *grow(struct yaml *y)
{
	struct yaml *v = reallocarray(y->v, y->n + 1, sizeof(*v));

	if (!v)
		return NULL;
	y->v = v;
	v[y->n] = (struct yaml) { 0 };
	return &v[y->n++];
}

static void drop_last(struct yaml *y)
{
	yaml_done(&y->v[--y->n]);
}

/* ---- anchors and what refers to them ---- */
/* Everything but the key. */
/* NOLINTNEXTLINE(misc-no-recursion): as above */
static int copy(struct reader *r, const struct yaml *from, struct yaml *to, unsigned depth)
{
	size_t i, n = from->text ? strlen(from->text) : 0;
	int k = 0;

	if (depth > YAML_DEPTH_MAX || ++r->nodes > YAML_NODES_MAX)
		return -E2BIG;
	if (n > YAML_COPIES_MAX - r->copied)
		return -E2BIG;
	r->copied += n;
	to->kind = from->kind;
	to->plain = from->plain;
	to->at_line = from->at_line;
	to->at_column = from->at_column;
	if (!to->key) {
		to->line = from->line;
		to->column = from->column;
	}
	if (from->text) {
		to->text = text_dup(from->text, n);
		if (!to->text)
			return -ENOMEM;
	}
	for (i = 0; i < from->n && k == 0; i++) {
		struct yaml *one = grow(to);

		if (one && from->v[i].key) {
			one->key = strdup(from->v[i].key);
			one->line = from->v[i].line;
			one->column = from->v[i].column;
		}
		if (!one || (from->v[i].key && !one->key))
			return -ENOMEM;
		k = copy(r, &from->v[i], one, depth + 1);
	}
	return k;
}

static int copied(struct reader *r, struct fy_event *event, int k)
{
	if (k == -E2BIG)
		return fault(r, event, "found too much that aliases stand for");
	return k < 0 ? no_memory(r) : 0;
}

static int keep_anchor(struct reader *r, struct fy_event *event, struct fy_token *name,
		       const struct yaml *y)
{
	struct anchor *a = &r->anchors[r->n_anchors];
	size_t n = 0;
	const char *s = fy_token_get_text(name, &n);

	if (r->n_anchors == YAML_ANCHORS_MAX)
		return fault(r, event, "found more than %d anchors", YAML_ANCHORS_MAX);
	a->name = text_dup(s, s ? n : 0);
	if (!a->name)
		return no_memory(r);
	r->n_anchors++;
	return copied(r, event, copy(r, y, &a->y, 1));
}

static int read_alias(struct reader *r, struct fy_event *event, struct yaml *ret, unsigned depth)
{
	size_t n = 0, i = r->n_anchors;
	const char *s = fy_token_get_text(event->alias.anchor, &n);

	while (i-- > 0)
		if (s && strlen(r->anchors[i].name) == n && !memcmp(r->anchors[i].name, s, n))
			return copied(r, event, copy(r, &r->anchors[i].y, ret, depth));
	return fault(r, event, "found the alias '%.*s', expected one of an anchor before it",
		     (int)MIN(n, 60U), s ? s : "");
}

/* Of one map into another: what is there already stays. */
static int merge_map(struct reader *r, struct fy_event *event, const struct yaml *from,
		     struct yaml *into)
{
	size_t i;

	for (i = 0; i < from->n; i++) {
		struct yaml *one;
		int k;

		if (yaml_get(into, from->v[i].key))
			continue;
		one = grow(into);
		if (!one)
			return no_memory(r);
		one->key = strdup(from->v[i].key);
		one->line = from->v[i].line;
		one->column = from->v[i].column;
		k = one->key ? copied(r, event, copy(r, &from->v[i], one, 2)) : no_memory(r);
		if (k < 0)
			return k;
	}
	return 0;
}

/* What "<<" stood for, in order: a key of the map itself wins, and then the first. */
static int merge(struct reader *r, struct fy_event *event, const struct yaml *from,
		 struct yaml *map)
{
	size_t i;
	int k = 0;

	if (from->kind == YAML_MAP)
		return merge_map(r, event, from, map);
	for (i = 0; i < from->n && k == 0 && from->kind == YAML_LIST; i++)
		k = from->v[i].kind == YAML_MAP ? merge_map(r, event, &from->v[i], map) : -EINVAL;
	if (k == -EINVAL || from->kind != YAML_LIST)
		return fault_at(
			r, from->line, from->column,
			"found something else behind '<<', expected a map, or a list of maps");
	return k;
}

/* ---- nodes ---- */
static bool is_twice(const struct yaml *map)
{
	size_t i;

	for (i = 0; i + 1 < map->n; i++)
		if (streq(map->v[i].key, map->v[map->n - 1].key))
			return true;
	return false;
}

static int read_node(struct reader *r, struct fy_event *event, struct yaml *ret, unsigned depth);

/* 0; 1: it is a merge; 2: it is there already, and its value is read for nothing. */
static int read_key(struct reader *r, struct fy_event *event, struct yaml *map, struct yaml *one)
{
	int k;

	if (event->type != FYET_SCALAR || event->scalar.anchor || event->scalar.tag)
		return fault(r, event, "found something else as a key, expected a plain text");
	one->line = line_of(event);
	one->column = column_of(event);
	k = text_of(r, event, &one->key);
	if (k < 0)
		return k;
	if (r->rep && streq(one->key, "<<") &&
	    fy_token_scalar_style(event->scalar.value) == FYSS_PLAIN)
		return 1;
	if (!is_twice(map))
		return 0;
	k = fault(r, event, "found the key '%.60s' a second time", one->key);
	return r->rep ? 2 : k;
}

/* A key and its value; that of "<<" into merges. */
/* NOLINTNEXTLINE(misc-no-recursion): as above */
static int read_pair(struct reader *r, struct fy_event *event, struct yaml *map,
		     struct yaml *merges, unsigned depth)
{
	struct fy_event *value = NULL;
	int k, what;

	what = read_key(r, event, map, &map->v[map->n - 1]);
	k = what < 0 ? what : next(r, &value);
	if (k < 0)
		return k;
	k = read_node(r, value, &map->v[map->n - 1], depth + 1);
	fy_parser_event_free(r->parser, value);
	if (k == 0 && what == 1) {
		struct yaml *one = grow(merges);

		if (!one)
			return no_memory(r);
		*one = map->v[--map->n];
	} else if (k == 0 && what == 2) {
		drop_last(map);
	}
	return k;
}

static int end_map(struct reader *r, struct fy_event *event, struct yaml *map,
		   const struct yaml *merges)
{
	size_t i;
	int k = 0;

	for (i = 0; k == 0 && i < merges->n; i++)
		k = merge(r, event, &merges->v[i], map);
	return k;
}

/* NOLINTNEXTLINE(misc-no-recursion): as above */
static int read_items(struct reader *r, struct yaml *y, enum fy_event_type end, unsigned depth)
{
	struct yaml merges = { 0 };
	bool more = true;
	int k = 0;

	while (k == 0 && more) {
		struct fy_event *event;
		struct yaml *one;

		k = next(r, &event);
		if (k < 0)
			break;
		more = event->type != end;
		one = more ? grow(y) : NULL;
		if (!more)
			k = end_map(r, event, y, &merges);
		else if (!one)
			k = no_memory(r);
		else if (y->kind == YAML_MAP)
			k = read_pair(r, event, y, &merges, depth);
		else
			k = read_node(r, event, one, depth + 1);
		fy_parser_event_free(r->parser, event);
	}
	yaml_done(&merges);
	return k;
}

/* NOLINTNEXTLINE(misc-no-recursion): as above */
static int read_value(struct reader *r, struct fy_event *event, struct yaml *ret, unsigned depth)
{
	switch (event->type) {
	case FYET_SCALAR:
		ret->kind = YAML_TEXT;
		ret->plain = !event->scalar.value ||
			     fy_token_scalar_style(event->scalar.value) == FYSS_PLAIN;
		return text_of(r, event, &ret->text);
	case FYET_SEQUENCE_START:
		ret->kind = YAML_LIST;
		return read_items(r, ret, FYET_SEQUENCE_END, depth);
	case FYET_MAPPING_START:
		ret->kind = YAML_MAP;
		return read_items(r, ret, FYET_MAPPING_END, depth);
	default:
		return fault(r, event, "found the wrong thing, expected a value");
	}
}

/* event stays the caller's. */
/* NOLINTNEXTLINE(misc-no-recursion): as above */
static int read_node(struct reader *r, struct fy_event *event, struct yaml *ret, unsigned depth)
{
	struct fy_token *anchor = NULL, *tag = NULL;
	int k;

	ret->at_line = line_of(event);
	ret->at_column = column_of(event);
	if (!ret->key) {
		ret->line = ret->at_line;
		ret->column = ret->at_column;
	}
	if (depth > YAML_DEPTH_MAX)
		return fault(r, event, "found more than %d levels", YAML_DEPTH_MAX);
	if (++r->nodes > YAML_NODES_MAX)
		return fault(r, event, "found more than %d values", YAML_NODES_MAX);
	if (event->type == FYET_SCALAR) {
		anchor = event->scalar.anchor;
		tag = event->scalar.tag;
	} else if (event->type == FYET_SEQUENCE_START) {
		anchor = event->sequence_start.anchor;
		tag = event->sequence_start.tag;
	} else if (event->type == FYET_MAPPING_START) {
		anchor = event->mapping_start.anchor;
		tag = event->mapping_start.tag;
	}
	if (!r->rep && (anchor || tag || event->type == FYET_ALIAS))
		return fault(r, event, "anchors, aliases and tags are not taken here");
	if (tag)
		return fault(r, event, "found a tag ('!'), expected a value: tags are not taken");
	if (event->type == FYET_ALIAS)
		return read_alias(r, event, ret, depth);
	k = read_value(r, event, ret, depth);
	return k == 0 && anchor ? keep_anchor(r, event, anchor, ret) : k;
}

static int read_document(struct reader *r, struct yaml *ret)
{
	unsigned documents = 0;
	struct fy_event *event;
	bool more = true;
	int k;

	while (more) {
		k = next(r, &event);
		if (k < 0)
			return k;
		switch (event->type) {
		case FYET_STREAM_START:
		case FYET_DOCUMENT_END:
			break;
		case FYET_DOCUMENT_START:
			if (++documents > 1)
				k = fault(r, event, "found another document, expected one");
			break;
		case FYET_STREAM_END:
			more = false;
			break;
		default:
			k = read_node(r, event, ret, 1);
		}
		fy_parser_event_free(r->parser, event);
		if (k < 0)
			return k;
	}
	return 0;
}

static int parse(struct reader *r, const char *text, size_t n, struct yaml *ret)
{
	const struct fy_parse_cfg cfg = {
		.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_JSON_NONE, .diag = r->diag
	};

	r->parser = fy_parser_create(&cfg);
	if (!r->parser)
		return no_memory(r);
	if (fy_parser_set_string(r->parser, text, n) < 0)
		return parser_fault(r);
	return read_document(r, ret);
}

/* ---- where a node is ---- */
/* NOLINTNEXTLINE(misc-no-recursion): as above */
static int name_nodes(struct yaml *y)
{
	char path[YAML_PATH_MAX];
	const char *here = y->path ? y->path : "";
	size_t i;

	for (i = 0; i < y->n; i++) {
		struct yaml *one = &y->v[i];
		int n = one->key ? snprintf(path, sizeof(path), "%s%s%s", here, *here ? "." : "",
					    one->key)
				 : snprintf(path, sizeof(path), "%s[%zu]", here, i);

		one->path = n < (int)sizeof(path) ? strdup(path) : text_dup(here, strlen(here));
		if (!one->path || name_nodes(one) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int too_long(struct reader *r, size_t n)
{
	if (!r->rep)
		return err_set(r->e, -E2BIG, "it has more than %d bytes", YAML_MAX);
	report_fault_at(r->rep, r->file, 0, 0, "found %zu bytes, expected %d at most", n, YAML_MAX);
	return -EINVAL;
}

static int not_text(struct reader *r, const char *found, const char *plain)
{
	if (!r->rep)
		return err_set(r->e, -EINVAL, "%s", plain);
	report_fault_at(r->rep, r->file, 0, 0, "found %s", found);
	return -EINVAL;
}

/* An invisible mark that some editors put in front. */
static void skip_mark(const char **text, size_t *n)
{
	if (*n >= 3 && !memcmp(*text, "\xef\xbb\xbf", 3)) {
		*text += 3;
		*n -= 3;
	}
}

static int read_text(struct reader *r, const char *text, size_t n, struct yaml *ret)
{
	struct fy_diag_cfg diag;
	struct yaml y = { 0 };
	int k;

	if (n > YAML_MAX)
		return too_long(r, n);
	skip_mark(&text, &n);
	if (!text_is_utf8(text, n))
		return not_text(r, "bytes that are not UTF-8", "it is not UTF-8");
	if (memchr(text, '\0', n)) /* the parser would take it for the end */
		return not_text(r, "a NUL", "it has a NUL");
	fy_diag_cfg_default(&diag);
	diag.fp = NULL;
	r->diag = fy_diag_create(&diag);
	if (!r->diag)
		return no_memory(r);
	fy_diag_set_collect_errors(r->diag, true);
	k = n ? parse(r, text, n, &y) : 0;
	if (r->parser)
		fy_parser_destroy(r->parser);
	fy_diag_destroy(r->diag);
	if (k == 0 && name_nodes(&y) < 0)
		k = no_memory(r);
	if (k < 0)
		yaml_done(&y);
	else
		*ret = y;
	return k;
}

int yaml_parse(const char *text, size_t n, struct yaml *ret, struct err *e)
{
	struct reader r = { .e = e };

	return read_text(&r, text, n, ret);
}

int yaml_read(const char *text, size_t n, const char *file, struct yaml *ret,
	      struct kit_report *rep, struct err *e)
{
	struct reader r = { .e = e, .file = file, .rep = rep };
	int k = read_text(&r, text, n, ret);

	while (r.n_anchors) {
		free(r.anchors[--r.n_anchors].name);
		yaml_done(&r.anchors[r.n_anchors].y);
	}
	return k;
}

/* ---- what is in it ---- */
const struct yaml *yaml_get(const struct yaml *map, const char *key)
{
	size_t i;

	for (i = 0; map && map->kind == YAML_MAP && i < map->n; i++)
		if (streq(map->v[i].key, key))
			return &map->v[i];
	return NULL;
}

int yaml_want(const struct yaml *y, enum yaml_kind kind, const char *what, struct err *e)
{
	static const char *const words[] = { [YAML_NONE] = "nothing",
					     [YAML_TEXT] = "a text",
					     [YAML_LIST] = "a list",
					     [YAML_MAP] = "a map" };

	if (y->kind == kind)
		return 0;
	return err_set(e, -EINVAL, "line %u: %s is %s, not %s", MAX(y->line, 1U), what, words[kind],
		       words[y->kind]);
}

int yaml_keys(const struct yaml *y, const char *const *keys, const char *what, struct err *e)
{
	int r = yaml_want(y, YAML_MAP, what, e);
	const char *near;
	size_t i, k, n = 0;

	while (keys[n])
		n++;
	for (i = 0; r == 0 && i < y->n; i++) {
		for (k = 0; k < n && !streq(keys[k], y->v[i].key); k++)
			;
		if (k < n)
			continue;
		near = text_nearest(y->v[i].key, keys, n, sizeof(*keys));
		r = err_set(e, -EINVAL, "line %u: unknown key '%.60s' in %s%s%s%s", y->v[i].line,
			    y->v[i].key, what, near ? " (did you mean '" : "", near ? near : "",
			    near ? "'?)" : "");
	}
	return r;
}

int yaml_text(const struct yaml *map, const char *key, const char **ret, struct err *e)
{
	const struct yaml *y = yaml_get(map, key);
	int r = y ? yaml_want(y, YAML_TEXT, key, e) : 0;

	if (r == 0)
		*ret = y ? y->text : NULL;
	return r;
}

int yaml_bool(const struct yaml *map, const char *key, bool *ret, struct err *e)
{
	const struct yaml *y = yaml_get(map, key);

	if (!y)
		return 0;
	if (!streq(y->text, "true") && !streq(y->text, "false"))
		return err_set(e, -EINVAL, "line %u: %s is true or false", y->line, key);
	*ret = streq(y->text, "true");
	return 0;
}
