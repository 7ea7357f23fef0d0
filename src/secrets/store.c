#include "secrets/priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "sys/dirs.h"

static const char file_notice[] =
	"no Secret Service answers here: secrets are kept in %s, which only you can read, and "
	"which is not encrypted";

/* Is there a bus to ask at all? GLib would start one where there is a display. */
static bool has_bus(void)
{
	const char *address = getenv("DBUS_SESSION_BUS_ADDRESS"), *run = getenv("XDG_RUNTIME_DIR");
	_free_ char *path = run ? dirs_join(run, "bus") : NULL;

	return (address && *address) || (path && access(path, F_OK) == 0);
}

static int tell_file(const struct store *s, char **ret_notice, struct err *e)
{
	return asprintf(ret_notice, file_notice, s->path) < 0
		       ? err_errno(e, -ENOMEM, "cannot open the store")
		       : 0;
}

/* Nothing is stored yet: the Secret Service if it answers. One that is locked is not passed by. */
static int choose_first(struct store *s, char **ret_notice, struct err *e)
{
	int r = has_bus() ? service_probe(s, e) : -ENOENT;

	s->kind = r == 0 ? &store_service : &store_file;
	if (r == -ENOENT || r == -ETIMEDOUT)
		return tell_file(s, ret_notice, e);
	return r;
}

static int choose(struct store *s, const char *choice, char **ret_notice, struct err *e)
{
	size_t in_file = 0;
	char where[16];
	int r;

	if (!streq(choice, "auto") && !streq(choice, "service") && !streq(choice, "file"))
		return err_set(e, -EINVAL, "secrets.store: '%.40s' is none of auto, service, file",
			       choice);
	r = file_where(s, where, &in_file, e);
	if (r < 0)
		return r;
	if (streq(choice, "auto") && !where[0])
		return choose_first(s, ret_notice, e);
	s->kind = streq(streq(choice, "auto") ? where : choice, "service") ? &store_service
									   : &store_file;
	/* for those who open it without knowing the setting */
	if (!streq(choice, "auto") && where[0] && !streq(where, choice))
		r = file_note_where(s, choice, e);
	if (r == 0 && s->kind == &store_service && in_file &&
	    asprintf(ret_notice, "%zu secrets in %s are not used: the Secret Service is", in_file,
		     s->path) < 0)
		r = err_errno(e, -ENOMEM, "cannot open the store");
	return r;
}

int store_open(const char *config_dir, const char *choice, struct store **ret, char **ret_notice,
	       struct err *e)
{
	_cleanup_(store_closep) struct store *s = calloc(1, sizeof(*s));
	char *notice = NULL;
	int r;

	entry_wipe_json();
	if (s) {
		s->dir = strdup(config_dir);
		s->path = dirs_join(config_dir, "secrets.json");
		s->vault = dirs_program("bac-vault");
	}
	if (!s || !s->dir || !s->path || !s->vault)
		return err_errno(e, -ENOMEM, "cannot open the store");
	r = choose(s, choice, &notice, e);
	if (r < 0) {
		free(notice);
		return r;
	}
	*ret = take_ptr(s);
	*ret_notice = notice;
	return 0;
}

struct store *store_close(struct store *s)
{
	if (!s)
		return NULL;
	free(s->dir);
	free(s->path);
	free(s->vault);
	free(s);
	return NULL;
}

bool store_is_used(const char *config_dir)
{
	_free_ char *path = dirs_join(config_dir, "secrets.json");

	/* whatever is there, and be it a link: the store says what is wrong with it */
	return !path || faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

const char *store_where(const struct store *s)
{
	return s->kind == &store_service ? "Secret Service" : s->path;
}

int store_list(struct store *s, struct store_entry **ret, size_t *ret_n, struct err *e)
{
	return s->kind->list(s, ret, ret_n, e);
}

static int check_key(const char *key, struct err *e)
{
	return store_key_is(key) ? 0
				 : err_set(e, -EINVAL, "'%.100s' is not the key of a secret", key);
}

int store_get(struct store *s, const char *key, struct store_entry *ret, char **ret_value,
	      size_t *ret_n, struct err *e)
{
	int r = check_key(key, e);

	*ret_value = NULL;
	*ret_n = 0;
	return r < 0 ? r : s->kind->get(s, key, ret, ret_value, ret_n, e);
}

/* What is kept must be read again. */
static int check_entry(const struct store_entry *entry, const char *value, size_t n, struct err *e)
{
	json_t *meta;
	bool fine;

	if (entry->how < STORE_VALUE || entry->how > STORE_REF ||
	    (entry->how == STORE_VALUE) != !!value)
		return err_set(e, -EINVAL, "a secret is a value, a command or a reference");
	if (value && !n)
		return err_set(e, -EINVAL, "the secret is empty");
	if (value && n > STORE_VALUE_MAX)
		return err_set(e, -EINVAL, "a secret has %d bytes at most", STORE_VALUE_MAX);
	if (value && memchr(value, '\0', n))
		return err_set(e, -EINVAL, "a secret has no NUL byte");
	if (!value && (!entry->source || !*entry->source ||
		       strlen(entry->source) > STORE_SOURCE_MAX || entry->refresh_s < 0))
		return err_set(e, -EINVAL, "a command or reference has 1 to %d bytes",
			       STORE_SOURCE_MAX);
	if (!entry->meta)
		return 0;
	meta = json_loads(entry->meta, 0, NULL);
	fine = json_is_object(meta) && strlen(entry->meta) <= STORE_META_MAX;
	json_decref(meta);
	return fine ? 0 : err_set(e, -EINVAL, "too much is noted about the secret");
}

int store_put(struct store *s, const struct store_entry *entry, const char *value, size_t n,
	      struct err *e)
{
	int r = check_key(entry->key, e);

	if (r == 0)
		r = check_entry(entry, value, n, e);
	return r < 0 ? r : s->kind->put(s, entry, value, n, e);
}

int store_remove(struct store *s, const char *key, struct err *e)
{
	int r = check_key(key, e);

	if (r == 0)
		r = s->kind->remove(s, key, false, e);
	if (r == 0)
		r = err_set(e, -ENOENT, "no secret is stored as %s", key);
	return MIN(r, 0);
}

int store_remove_scope(struct store *s, const char *scope, struct err *e)
{
	char prefix[STORE_KEY_MAX + 1];

	(void)snprintf(prefix, sizeof(prefix), "%.200s/", scope);
	return s->kind->remove(s, prefix, true, e);
}
