/* Shares and path rules of a sandbox, as text: JSON, in the row and in the copy. Read back as if it were foreign. */
#include <jansson.h>

#include "state/priv.h"

static void free_shares(struct box_share *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].path);
		free(v[i].alias);
	}
	free(v);
}

void shares_done(struct box_shares *s)
{
	free_shares(s->v, s->n);
	for (size_t i = 0; i < s->n_rules; i++)
		free(s->rules[i]);
	free(s->rules);
	*s = (struct box_shares) { 0 };
}

int shares_add(struct box_shares *s, const struct box_share *one)
{
	struct box_share *more = realloc(s->v, (s->n + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	s->v = more;
	more[s->n] = *one;
	more[s->n].path = strdup(one->path);
	more[s->n].alias = strdup(one->alias ? one->alias : "");
	s->n++; /* freed with the others, even if one is NULL */
	return more[s->n - 1].path && more[s->n - 1].alias ? 0 : -ENOMEM;
}

void shares_take_out(struct box_shares *s, size_t i)
{
	free(s->v[i].path);
	free(s->v[i].alias);
	memmove(s->v + i, s->v + i + 1, (s->n - i - 1) * sizeof(*s->v));
	s->n--;
}

int shares_rule(struct box_shares *s, const char *rule)
{
	char **more = realloc(s->rules, (s->n_rules + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	s->rules = more;
	more[s->n_rules] = strdup(rule);
	if (!more[s->n_rules])
		return -ENOMEM;
	s->n_rules++;
	return 0;
}

char *shares_text(const struct box_shares *s)
{
	json_t *j = json_object(), *list = json_array(), *rules = json_array();
	char *text;

	for (size_t i = 0; i < s->n; i++)
		(void)json_array_append_new(
			list, json_pack("{s:s, s:s, s:b, s:b, s:b}", "path", s->v[i].path, "alias",
					s->v[i].alias, "read_only", s->v[i].read_only, "file",
					s->v[i].file, "primary", s->v[i].primary));
	for (size_t i = 0; i < s->n_rules; i++)
		(void)json_array_append_new(rules, json_string(s->rules[i]));
	(void)json_object_set_new(j, "shares", list);
	(void)json_object_set_new(j, "rules", rules);
	text = json_array_size(list) == s->n && json_array_size(rules) == s->n_rules
		       ? json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS)
		       : NULL;
	json_decref(j);
	return text;
}

static int take_share(json_t *j, struct box_shares *s)
{
	int read_only, file, primary;
	const char *path, *alias;

	if (json_unpack(j, "{s:s, s:s, s:b, s:b, s:b}", "path", &path, "alias", &alias, "read_only",
			&read_only, "file", &file, "primary", &primary) < 0 ||
	    path[0] != '/' || (alias[0] && alias[0] != '/'))
		return -EINVAL;
	return shares_add(s, &(struct box_share) { .path = (char *)path,
						   .alias = (char *)alias,
						   .read_only = read_only,
						   .file = file,
						   .primary = primary });
}

static int take_all(json_t *j, struct box_shares *s)
{
	json_t *list = json_object_get(j, "shares"), *rules = json_object_get(j, "rules"), *one;
	size_t i;
	int r = json_is_array(list) && json_is_array(rules) ? 0 : -EINVAL;

	if (r == 0 && (json_array_size(list) > SHARES_MAX || json_array_size(rules) > SHARES_MAX))
		r = -EINVAL;
	for (i = 0; r == 0 && i < json_array_size(list); i++)
		r = take_share(json_array_get(list, i), s);
	for (i = 0; r == 0 && i < json_array_size(rules); i++) {
		one = json_array_get(rules, i);
		r = json_is_string(one) ? shares_rule(s, json_string_value(one)) : -EINVAL;
	}
	return r;
}

int shares_parse(const char *text, struct box_shares *ret)
{
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	struct box_shares s = { 0 };
	int r = j ? take_all(j, &s) : -EINVAL;

	json_decref(j);
	if (r < 0) {
		shares_done(&s);
		return r;
	}
	*ret = s;
	return 0;
}
