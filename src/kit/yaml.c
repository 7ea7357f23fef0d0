#include "kit/yaml.h"

#include <libfyaml.h>

#include "base/text.h"

struct reader {
	struct fy_parser *parser;
	struct fy_diag *diag;
	size_t nodes;
	struct err *e;
};

#define FAULT(r, event, ...) \
	(err_set((r)->e, -EINVAL, __VA_ARGS__), err_ctx((r)->e, "line %u", line_of(event)))

static unsigned line_of(struct fy_event *event)
{
	const struct fy_mark *m = fy_event_start_mark(event);

	return m && m->line >= 0 ? (unsigned)m->line + 1 : 0;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most YAML_DEPTH_MAX deep */
void yaml_done(struct yaml *y)
{
	while (y->n)
		yaml_done(&y->v[--y->n]);
	free(y->v);
	free(y->key);
	free(y->text);
	*y = (struct yaml) { 0 };
}

/* What the parser has against the text. */
static int parser_fault(struct reader *r)
{
	struct fy_diag_error *fault;
	void *at = NULL;

	fault = fy_diag_errors_iterate(r->diag, &at);
	if (!fault)
		return err_set(r->e, -EINVAL, "not YAML");
	(void)err_set(r->e, -EINVAL, "%s", fault->msg);
	return err_ctx(r->e, "line %d", fault->line);
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
		return FAULT(r, event, "a NUL");
	*ret = text_dup(s, s ? n : 0);
	return *ret ? 0 : err_set(r->e, -ENOMEM, "out of memory");
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

static bool is_twice(const struct yaml *map)
{
	size_t i;

	for (i = 0; i + 1 < map->n; i++)
		if (streq(map->v[i].key, map->v[map->n - 1].key))
			return true;
	return false;
}

static int read_node(struct reader *r, struct fy_event *event, struct yaml *ret, unsigned depth);

static int read_key(struct reader *r, struct fy_event *event, struct yaml *map, struct yaml *one)
{
	int k;

	if (event->type != FYET_SCALAR || event->scalar.anchor || event->scalar.tag)
		return FAULT(r, event, "a key is a plain text");
	one->line = line_of(event);
	k = text_of(r, event, &one->key);
	if (k == 0 && is_twice(map))
		k = FAULT(r, event, "the key '%.60s' is there twice", one->key);
	return k;
}

/* NOLINTNEXTLINE(misc-no-recursion): as above */
static int read_items(struct reader *r, struct yaml *y, enum fy_event_type end, unsigned depth)
{
	for (;;) {
		struct fy_event *event;
		struct yaml *one;
		int k = next(r, &event);

		if (k < 0)
			return k;
		if (event->type == end) {
			fy_parser_event_free(r->parser, event);
			return 0;
		}
		one = grow(y);
		k = one ? 0 : err_set(r->e, -ENOMEM, "out of memory");
		if (k == 0 && y->kind == YAML_MAP) {
			k = read_key(r, event, y, one);
			fy_parser_event_free(r->parser, event);
			if (k == 0)
				k = next(r, &event);
			if (k < 0)
				return k;
		}
		if (k == 0)
			k = read_node(r, event, one, depth + 1);
		fy_parser_event_free(r->parser, event);
		if (k < 0)
			return k;
	}
}

/* event stays the caller's. */
/* NOLINTNEXTLINE(misc-no-recursion): as above */
static int read_node(struct reader *r, struct fy_event *event, struct yaml *ret, unsigned depth)
{
	if (!ret->key)
		ret->line = line_of(event);
	if (depth > YAML_DEPTH_MAX)
		return FAULT(r, event, "more than %d levels", YAML_DEPTH_MAX);
	if (++r->nodes > YAML_NODES_MAX)
		return FAULT(r, event, "more than %d values", YAML_NODES_MAX);
	switch (event->type) {
	case FYET_SCALAR:
		ret->kind = YAML_TEXT;
		if (event->scalar.anchor || event->scalar.tag)
			break;
		return text_of(r, event, &ret->text);
	case FYET_SEQUENCE_START:
		ret->kind = YAML_LIST;
		if (event->sequence_start.anchor || event->sequence_start.tag)
			break;
		return read_items(r, ret, FYET_SEQUENCE_END, depth);
	case FYET_MAPPING_START:
		ret->kind = YAML_MAP;
		if (event->mapping_start.anchor || event->mapping_start.tag)
			break;
		return read_items(r, ret, FYET_MAPPING_END, depth);
	default:
		break;
	}
	return FAULT(r, event, "anchors, aliases and tags are not taken here");
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
				k = FAULT(r, event, "one document is enough");
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
		return err_set(r->e, -ENOMEM, "out of memory");
	if (fy_parser_set_string(r->parser, text, n) < 0)
		return parser_fault(r);
	return read_document(r, ret);
}

int yaml_parse(const char *text, size_t n, struct yaml *ret, struct err *e)
{
	struct fy_diag_cfg diag;
	struct reader r = { .e = e };
	struct yaml y = { 0 };
	int k;

	if (n > YAML_MAX)
		return err_set(e, -E2BIG, "it has more than %d bytes", YAML_MAX);
	if (!text_is_utf8(text, n))
		return err_set(e, -EINVAL, "it is not UTF-8");
	fy_diag_cfg_default(&diag);
	diag.fp = NULL;
	r.diag = fy_diag_create(&diag);
	if (!r.diag)
		return err_set(e, -ENOMEM, "out of memory");
	fy_diag_set_collect_errors(r.diag, true);
	k = n ? parse(&r, text, n, &y) : 0;
	if (r.parser)
		fy_parser_destroy(r.parser);
	fy_diag_destroy(r.diag);
	if (k < 0)
		yaml_done(&y);
	else
		*ret = y;
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
