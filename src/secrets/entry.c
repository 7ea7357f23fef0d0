/* An entry as JSON: in the file, and in the value of an item of the Secret Service. */
#include <malloc.h>
#include <stdio.h>
#include <time.h>

#include "base/base64.h"
#include "base/text.h"
#include "secrets/priv.h"

enum { NAME_MAX_LEN = 190, MASKED_MAX = 16 };

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static const char *const hows[] = {
	[STORE_VALUE] = "value", [STORE_COMMAND] = "command", [STORE_REF] = "ref"
};

/* ---- memory ---- */
static void free_wiped(void *p)
{
	if (p)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

void entry_wipe_json(void)
{
	/* what was made before is of malloc() too */
	json_set_alloc_funcs(malloc, free_wiped);
}

void entry_text_free(char *text)
{
	free_wiped(text);
}

char *store_value_free(char *value, size_t n)
{
	if (value)
		explicit_bzero(value, n);
	free(value);
	return NULL;
}

void store_entry_done(struct store_entry *e)
{
	free(e->key);
	free(e->source);
	free(e->meta);
	free(e->masked);
	*e = (struct store_entry) { 0 };
}

void store_list_done(struct store_entry *v, size_t n)
{
	while (n)
		store_entry_done(&v[--n]);
	free(v);
}

/* ---- keys ---- */
static bool is_part(const char *s, size_t n, size_t max)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!memchr(digits, s[i], 62) && !strchr("._:-", s[i]))
			return false;
	return n && n <= max;
}

bool store_key_is(const char *key)
{
	static const char *const kinds[] = { "service", "custom", "oauth", "registry" };
	const char *kind = strchr(key, '/'), *name = kind ? strchr(kind + 1, '/') : NULL;
	size_t i;

	if (!name || !is_part(key, (size_t)(kind - key), 32) ||
	    !is_part(name + 1, strlen(name + 1), NAME_MAX_LEN))
		return false;
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i]) == (size_t)(name - kind - 1) &&
		    starts_with(kind + 1, kinds[i]))
			return true;
	return false;
}

/* ---- base64 (RFC 4648 4) ---- */
static char *encode(const void *p, size_t n)
{
	char *text = malloc(BASE64_SIZE(n) + 1);

	if (text)
		*base64_put(text, p, n, BASE64) = '\0';
	return text;
}

/* Strictly as encode() writes it. NULL if it is not, or on lack of memory. */
static char *decode(const char *text, size_t *ret_n)
{
	const size_t len = strlen(text);
	char *p = malloc(len + 1), *again = NULL;
	size_t n = 0;

	if (!p)
		return NULL;
	if (base64_get((uint8_t *)p, text, len, BASE64, &n) == 0)
		again = encode(p, n);
	p[n] = '\0';
	if (!again || !streq(again, text))
		p = store_value_free(p, len + 1);
	entry_text_free(again);
	*ret_n = n;
	return p;
}

/* ---- masks ---- */
/* "sk-a...9f2c": an eighth of it at each end. */
static void mask(const char *value, size_t n, char ret[MASKED_MAX])
{
	size_t show = n < 16 ? 0 : MIN(n / 8, (size_t)4), i;
	char *to = ret;

	for (i = 0; i < show; i++)
		*to++ = (char)(value[i] > ' ' && value[i] <= '~' ? value[i] : '?');
	for (i = 0; i < 3; i++)
		*to++ = '.';
	for (i = n - show; i < n; i++)
		*to++ = (char)(value[i] > ' ' && value[i] <= '~' ? value[i] : '?');
	*to = '\0';
}

/* ---- JSON ---- */
static json_t *value_json(const char *value, size_t n)
{
	char masked[MASKED_MAX], *text = encode(value, n);
	json_t *j;

	mask(value, n, masked);
	j = text ? json_pack("{s:s, s:s}", "value", text, "masked", masked) : NULL;
	entry_text_free(text);
	return j;
}

static json_t *entry_json(const struct store_entry *entry, const char *value, size_t n)
{
	json_t *meta = json_loads(entry->meta ? entry->meta : "{}", 0, NULL);
	json_t *j = value ? value_json(value, n)
			  : json_pack("{s:s, s:I}", "source", entry->source, "refresh",
				      (json_int_t)entry->refresh_s);

	if (!j || !meta || json_object_set_new(j, "how", json_string(hows[entry->how])) < 0 ||
	    json_object_set_new(j, "created", json_integer(entry->created)) < 0 ||
	    json_object_set(j, "meta", meta) < 0) {
		json_decref(j);
		j = NULL;
	}
	json_decref(meta);
	return j;
}

json_t *entry_merge(const struct store_entry *entry, const char *value, size_t n,
		    const json_t *before)
{
	struct store_entry with = *entry;
	json_t *meta = json_object_get(before, "meta");
	char *text = !entry->meta && meta ? json_dumps(meta, JSON_COMPACT) : NULL;
	json_t *j;

	if (text)
		with.meta = text;
	if (!with.created)
		with.created = json_integer_value(json_object_get(before, "created"));
	if (!with.created)
		with.created = time(NULL);
	j = entry_json(&with, value, n);
	entry_text_free(text);
	return j;
}

static uint8_t how_of(const json_t *j)
{
	const char *word = json_string_value(json_object_get(j, "how"));
	size_t i;

	for (i = STORE_VALUE; i < ARRAY_SIZE(hows); i++)
		if (streq(word, hows[i]))
			return (uint8_t)i;
	return 0;
}

static int read_value(const json_t *j, char **ret_value, size_t *ret_n)
{
	const char *text = json_string_value(json_object_get(j, "value"));
	size_t n = 0;
	char *value = text && strlen(text) <= 2UL * STORE_VALUE_MAX ? decode(text, &n) : NULL;

	if (!value)
		return -EINVAL;
	if (!n || n > STORE_VALUE_MAX || memchr(value, '\0', n)) {
		store_value_free(value, n);
		return -EINVAL;
	}
	*ret_value = value;
	*ret_n = n;
	return 0;
}

static int read_fields(const json_t *j, struct store_entry *entry)
{
	const json_t *meta = json_object_get(j, "meta"), *created = json_object_get(j, "created");
	const json_t *refresh = json_object_get(j, "refresh");
	const char *source = json_string_value(json_object_get(j, "source"));
	const char *masked = json_string_value(json_object_get(j, "masked"));
	char *text;

	entry->how = how_of(j);
	entry->created = json_integer_value(created);
	entry->refresh_s = json_integer_value(refresh);
	if (!entry->how || !json_is_object(meta) || !json_is_integer(created))
		return -EINVAL;
	if (entry->how == STORE_VALUE ? !masked || strlen(masked) >= MASKED_MAX
				      : !source || !*source || strlen(source) > STORE_SOURCE_MAX ||
						!json_is_integer(refresh) || entry->refresh_s < 0)
		return -EINVAL;
	text = json_dumps(meta, JSON_COMPACT);
	if (text && strlen(text) <= STORE_META_MAX)
		entry->meta = strdup(text);
	entry_text_free(text);
	entry->masked = strdup(entry->how == STORE_VALUE ? masked : "");
	entry->source = entry->how == STORE_VALUE ? NULL : strdup(source);
	return entry->meta && entry->masked && (entry->source || entry->how == STORE_VALUE)
		       ? 0
		       : -EINVAL;
}

int entry_read(const char *key, const json_t *j, struct store_entry *ret, char **ret_value,
	       size_t *ret_n)
{
	struct store_entry entry = { 0 };
	int r = store_key_is(key) ? read_fields(j, &entry) : -EINVAL;

	if (r == 0)
		entry.key = strdup(key);
	if (r == 0 && !entry.key)
		r = -ENOMEM;
	if (r == 0 && ret_value && entry.how == STORE_VALUE)
		r = read_value(j, ret_value, ret_n);
	if (r < 0)
		store_entry_done(&entry);
	else
		*ret = entry;
	return r;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct store_entry *)a)->key, ((const struct store_entry *)b)->key);
}

int entry_read_all(const json_t *entries, struct store_entry **ret, size_t *ret_n)
{
	size_t most = json_object_size(entries), n = 0;
	struct store_entry *v;
	const char *key;
	json_t *j;
	int r = 0;

	if (!json_is_object(entries) || most > STORE_ENTRIES_MAX)
		return -EINVAL;
	v = calloc(most + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	json_object_foreach((json_t *)entries, key, j)
	{
		r = entry_read(key, j, &v[n], NULL, NULL);
		if (r < 0)
			break;
		n++;
	}
	if (r < 0) {
		store_list_done(v, n);
		return r;
	}
	qsort(v, n, sizeof(*v), by_key);
	*ret = v;
	*ret_n = n;
	return 0;
}
