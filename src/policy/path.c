/* Patterns into parts. Here they get their one form: a name without '/' becomes "**" and the name,
 * "**" next to "**" is one, and a final "**" becomes '*', which is the same because a rule covers
 * everything below what it matches. */
#include "policy/path.h"

#include <stdio.h>

#include "policy/path-priv.h"

int path_builder_new(struct path_builder **ret)
{
	struct path_builder *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	*ret = b;
	return 0;
}

struct path_builder *path_builder_free(struct path_builder *b)
{
	if (!b)
		return NULL;
	while (b->n)
		free(b->rules[--b->n]);
	free(b->rules);
	free(b);
	return NULL;
}

/* What is wrong with a pattern as a whole, at which column; NULL if nothing is. */
static const char *whole_fault(const char *p, size_t n, size_t *column)
{
	*column = 1;
	if (!n)
		return "the pattern is empty";
	if (*p == '/')
		return "a pattern is relative to the workspace: leave the leading '/' out ('./x' "
		       "is "
		       "'x' at the top)";
	if (*p == '~' && (n == 1 || p[1] == '/'))
		return "a pattern is relative to the workspace: '~' means nothing here";
	if (*p == '!')
		return "'!' does not make an exception: add an 'allow' rule (or write './!x' for a "
		       "name that begins so)";
	*column = n;
	if (p[n - 1] == '/')
		return "a final '/' says nothing: 'x' covers what is below it, 'x/**' only that";
	return NULL;
}

/* The same for one component. */
static const char *part_fault(const char *s, size_t n, size_t *column)
{
	const char *stars;

	if (!n)
		return "an empty component: one '/' is enough";
	if (n <= 2 && s[0] == '.' && s[n - 1] == '.')
		return "'.' and '..' are no names of files";
	stars = n == 2 ? NULL : memmem(s, n, "**", 2);
	if (stars) {
		*column += (size_t)(stars - s);
		return "'**' stands alone between two '/': write 'a/**/b', or a single '*'";
	}
	if (n > PATH_PART_MAX)
		return "longer than any name of a file";
	return NULL;
}

static struct path_part part_of(const char *text, size_t at, size_t n)
{
	struct path_part part = { .at = (uint16_t)at, .len = (uint8_t)n };

	if (n == 2 && !memcmp(text + at, "**", 2))
		part.kind = PART_MANY;
	else if (memchr(text + at, '*', n) || memchr(text + at, '?', n))
		part.kind = PART_GLOB;
	return part;
}

static void put_part(struct path_rule *rule, struct path_part part)
{
	if (part.kind == PART_MANY && rule->n_parts &&
	    rule->parts[rule->n_parts - 1].kind == PART_MANY)
		return;
	rule->parts[rule->n_parts++] = part;
}

static int refuse(struct err *e, const char *pattern, size_t column, const char *fault)
{
	return err_set(e, -EINVAL, "pattern '%.80s', column %zu: %s", pattern, column, fault);
}

/* rule->text into parts. */
static int parse(struct path_rule *rule, struct err *e)
{
	const char *text = rule->text;
	const size_t n = strlen(text);
	size_t column, at, end;
	const char *fault = whole_fault(text, n, &column);

	if (fault)
		return refuse(e, text, column, fault);
	if (!strchr(text, '/'))
		put_part(rule, (struct path_part) { .kind = PART_MANY });
	for (at = starts_with(text, "./") ? 2 : 0; at < n; at = end + 1) {
		for (end = at; end < n && text[end] != '/'; end++)
			;
		column = at + 1;
		fault = part_fault(text + at, end - at, &column);
		if (fault)
			return refuse(e, text, column, fault);
		put_part(rule, part_of(text, at, end - at));
	}
	if (rule->parts[rule->n_parts - 1].kind == PART_MANY) {
		rule->text[n + 1] = '*';
		rule->parts[rule->n_parts - 1] =
			(struct path_part) { .at = (uint16_t)(n + 1), .len = 1, .kind = PART_GLOB };
	}
	return 0;
}

static int grow(struct path_builder *b)
{
	size_t cap = b->cap ? 2 * b->cap : 64;
	struct path_rule **rules;

	if (b->n < b->cap)
		return 0;
	rules = reallocarray(b->rules, cap, sizeof(struct path_rule *));
	if (!rules)
		return -ENOMEM;
	b->rules = rules;
	b->cap = cap;
	return 0;
}

/* A rule with room for the parts of n bytes of pattern: every second byte may be a name, and one
 * "**" may be put in front. */
static struct path_rule *rule_new(const char *pattern, size_t n)
{
	const size_t parts = sizeof(struct path_part) * (n / 2 + 2);
	const size_t size = sizeof(struct path_rule) + parts + n + 2;
	struct path_rule *rule = calloc(1, size);

	if (!rule)
		return NULL;
	rule->size = size;
	rule->text = (char *)rule->parts + parts;
	memcpy(rule->text, pattern, n);
	return rule;
}

struct path_rule *path_rule_copy(const struct path_rule *old)
{
	struct path_rule *rule = malloc(old->size);

	if (!rule)
		return NULL;
	memcpy(rule, old, old->size);
	rule->text = (char *)rule + (old->text - (const char *)old);
	return rule;
}

int path_builder_add(struct path_builder *b, enum path_rule_kind kind, const char *pattern,
		     const char *origin, struct err *e)
{
	const size_t n = strnlen(pattern, PATH_PATTERN_MAX + 1);
	_free_ struct path_rule *rule = NULL;
	int r;

	if (kind != PATH_PROTECT && kind != PATH_HIDE && kind != PATH_ALLOW)
		return err_set(e, -EINVAL, "not a kind of rule: %d", (int)kind);
	if (n > PATH_PATTERN_MAX)
		return refuse(e, pattern, PATH_PATTERN_MAX + 1, "too long: 1024 bytes at most");
	if (b->n == PATH_RULES_MAX || PATH_TEXT_MAX - b->bytes < n)
		return err_set(e, -E2BIG,
			       "too many path rules: at most %d, and %d bytes of patterns",
			       PATH_RULES_MAX, PATH_TEXT_MAX);
	rule = rule_new(pattern, n);
	if (!rule || grow(b) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	rule->kind = kind;
	(void)snprintf(rule->origin, sizeof(rule->origin), "%s", origin);
	r = parse(rule, e);
	if (r < 0)
		return r;
	b->bytes += n;
	b->rules[b->n++] = take_ptr(rule);
	return 0;
}
