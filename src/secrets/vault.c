/* bac-vault: one request to the Secret Service (org.freedesktop.secrets), through libsecret; vault.h says how it is asked.
 *
 * It is a program of its own since GLib and its threads, and the copies that they keep of what passes, should not stay in those who ask; and since
 * a service that waits for somebody to type a password can be given up on by killing who asked. Nothing here unlocks anything: that would open a window on
 * a desktop where perhaps nobody sits.
 *
 * An item has the attributes application=bac and key=KEY, and as its secret the entry in JSON: what is known about a secret is as little
 * visible as the secret. */
#include <jansson.h>
#include <libsecret/secret.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "io/fd.h"
#include "secrets/vault.h"

static const SecretSchema schema = {
	.name = "bac.Secret",
	.flags = SECRET_SCHEMA_NONE,
	.attributes = { { "application", SECRET_SCHEMA_ATTRIBUTE_STRING },
			{ "key", SECRET_SCHEMA_ATTRIBUTE_STRING },
			{ NULL, 0 } },
};

struct vault {
	SecretService *service;
	const char *key; /* "" for all */
	bool prefix;
	json_t *entry;
};

static int fail(const GError *why)
{
	if (why && why->domain == G_DBUS_ERROR &&
	    (why->code == G_DBUS_ERROR_SERVICE_UNKNOWN ||
	     why->code == G_DBUS_ERROR_NAME_HAS_NO_OWNER ||
	     why->code == G_DBUS_ERROR_SPAWN_CHILD_EXITED ||
	     why->code == G_DBUS_ERROR_SPAWN_FAILED))
		return VAULT_NONE;
	if (why && why->domain == G_IO_ERROR)
		return VAULT_NONE;
	if (why && why->domain == SECRET_ERROR && why->code == SECRET_ERROR_IS_LOCKED)
		return VAULT_LOCKED;
	(void)fprintf(stderr, "%s\n", why ? why->message : "it gave no reason");
	return VAULT_FAILED;
}

static int check_open(const struct vault *v)
{
	g_autoptr(GError) why = NULL;
	g_autoptr(SecretCollection) c = secret_collection_for_alias_sync(
		v->service, SECRET_COLLECTION_DEFAULT, SECRET_COLLECTION_NONE, NULL, &why);

	if (why)
		return fail(why);
	if (!c) {
		(void)fprintf(stderr,
			      "it has no default keyring; make one with a keyring manager\n");
		return VAULT_FAILED;
	}
	return secret_collection_get_locked(c) ? VAULT_LOCKED : VAULT_OK;
}

/* ---- items ---- */
/* All of bac's, or those of one key. The caller owns the list. */
static int search(const struct vault *v, bool secrets, GList **ret)
{
	g_autoptr(GError) why = NULL;
	g_autoptr(GHashTable) want = g_hash_table_new(g_str_hash, g_str_equal);

	(void)g_hash_table_insert(want, (char *)"application", (char *)"bac");
	if (*v->key && !v->prefix)
		(void)g_hash_table_insert(want, (char *)"key", (char *)v->key);
	*ret = secret_service_search_sync(
		v->service, &schema, want,
		SECRET_SEARCH_ALL | (secrets ? SECRET_SEARCH_LOAD_SECRETS : 0), NULL, &why);
	return why ? fail(why) : VAULT_OK;
}

static void free_list(GList *list)
{
	g_list_free_full(list, g_object_unref);
}

/* The key of an item; the caller frees it. */
static char *key_of(SecretItem *item)
{
	g_autoptr(GHashTable) has = secret_item_get_attributes(item);
	const char *key = has ? g_hash_table_lookup(has, "key") : NULL;

	return key ? strdup(key) : NULL;
}

static int entry_of(SecretItem *item, json_t **ret)
{
	SecretValue *value;
	const char *text;
	gsize n = 0;

	if (secret_item_get_locked(item))
		return VAULT_LOCKED;
	value = secret_item_get_secret(item);
	text = value ? secret_value_get(value, &n) : NULL;
	*ret = text ? json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
	if (value)
		secret_value_unref(value);
	return json_is_object(*ret) ? VAULT_OK : VAULT_DAMAGED;
}

static int answer(json_t *j)
{
	char *text = j ? json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	int r = text ? fd_write_all(1, text, strlen(text)) : -ENOMEM;

	json_decref(j);
	return r < 0 ? VAULT_FAILED : VAULT_OK;
}

/* ---- requests ---- */
static int probe(struct vault *v)
{
	return check_open(v);
}

static int list(struct vault *v)
{
	json_t *all = json_object(), *entry;
	GList *items = NULL, *i;
	int r = search(v, true, &items);

	for (i = items; i && r == VAULT_OK; i = i->next) {
		_free_ char *key = key_of(i->data);

		entry = NULL;
		r = entry_of(i->data, &entry);
		if (r == VAULT_OK && !key)
			r = VAULT_DAMAGED;
		if (r == VAULT_OK) {
			(void)json_object_del(entry, "value");
			(void)json_object_set(all, key, entry);
		}
		json_decref(entry);
	}
	free_list(items);
	if (r == VAULT_OK && !items)
		r = check_open(v); /* of a locked keyring some services show nothing */
	if (r == VAULT_OK)
		return answer(all);
	json_decref(all);
	return r;
}

static int get(struct vault *v)
{
	json_t *entry = NULL;
	GList *items = NULL;
	int r = search(v, true, &items);

	if (r == VAULT_OK && !items) {
		r = check_open(v);
		r = r == VAULT_OK ? VAULT_MISSING : r;
	}
	if (r == VAULT_OK)
		r = entry_of(items->data, &entry);
	free_list(items);
	if (r == VAULT_OK)
		return answer(entry);
	json_decref(entry);
	return r;
}

static int put(struct vault *v)
{
	g_autoptr(GError) why = NULL;
	g_autoptr(GHashTable) has = g_hash_table_new(g_str_hash, g_str_equal);
	char *text = json_dumps(v->entry, JSON_COMPACT);
	_free_ char *label = NULL;
	SecretValue *value;
	int r = check_open(v);

	if (r == VAULT_OK && (!text || asprintf(&label, "bac: %s", v->key) < 0))
		r = VAULT_FAILED;
	if (r != VAULT_OK)
		return r;
	(void)g_hash_table_insert(has, (char *)"application", (char *)"bac");
	(void)g_hash_table_insert(has, (char *)"key", (char *)v->key);
	value = secret_value_new(text, (gssize)strlen(text), "application/json");
	(void)secret_service_store_sync(v->service, &schema, has, SECRET_COLLECTION_DEFAULT, label,
					value, NULL, &why);
	secret_value_unref(value);
	return why ? fail(why) : VAULT_OK;
}

static int remove_some(struct vault *v)
{
	GList *items = NULL, *i;
	int r = search(v, false, &items), n = 0;

	for (i = items; i && r == VAULT_OK; i = i->next) {
		_free_ char *key = key_of(i->data);
		g_autoptr(GError) why = NULL;

		if (!key || (v->prefix && !starts_with(key, v->key)))
			continue;
		if (secret_item_get_locked(i->data))
			r = VAULT_LOCKED;
		else if (secret_item_delete_sync(i->data, NULL, &why))
			n++;
		else
			r = fail(why);
	}
	free_list(items);
	return r == VAULT_OK ? answer(json_integer(n)) : r;
}

static const struct {
	const char *op;
	int (*run)(struct vault *v);
} ops[] = {
	{ "probe", probe }, { "list", list },          { "get", get },
	{ "put", put },     { "remove", remove_some },
};

static int serve(struct vault *v, const char *op)
{
	g_autoptr(GError) why = NULL;
	size_t i;

	v->service = secret_service_get_sync(SECRET_SERVICE_OPEN_SESSION, NULL, &why);
	if (!v->service)
		return fail(why);
	for (i = 0; i < ARRAY_SIZE(ops); i++)
		if (streq(ops[i].op, op))
			return ops[i].run(v);
	(void)fprintf(stderr, "an unknown request\n");
	return VAULT_FAILED;
}

int main(void)
{
	const struct rlimit none = { 0, 0 };
	static char text[VAULT_IN_MAX];
	struct vault v = { 0 };
	const char *op = "", *key = "";
	int prefix = 0;
	ssize_t n;
	json_t *j;

	/* a core of it would hold values */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return VAULT_FAILED;
	n = fd_read_all(0, text, sizeof(text));
	j = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
	if (!j || json_unpack(j, "{s:s, s?s, s?b, s?o}", "op", &op, "key", &key, "prefix", &prefix,
			      "entry", &v.entry) < 0) {
		(void)fprintf(stderr, "the request is not understood\n");
		return VAULT_FAILED;
	}
	v.key = key;
	v.prefix = prefix;
	/* at once: GLib's threads, and what looks for leaks at the end (which may not look into us), have nothing to do any more */
	_exit(serve(&v, op));
}
