#pragma once
/* The key store: values that never enter a sandbox.
 *
 * Where: the Secret Service (org.freedesktop.secrets, through libsecret) where a session bus answers for it within STORE_BUS_MS; else the file
 * $XDG_CONFIG_HOME/bac/secrets.json, 0600 in a 0700 folder of the same owner (anything else is refused), written beside and
 * renamed, under a lock. Setting secrets.store: auto, service, file. Who finds none that may be used says so; nothing falls back silently from a service that
 * held secrets before.
 *
 * A key is SCOPE "/" KIND "/" NAME. SCOPE: "global" or the id of a sandbox; KIND: service, custom, oauth, registry; NAME: at most 190
 * bytes of [A-Za-z0-9._:-]. OAuth has two: SERVICE.access and SERVICE.refresh. An entry is a value (bytes, 1 to STORE_VALUE_MAX, no NUL; memory is wiped when freed) or how to
 * get one: a command line for sh -c, or a reference ("op://...": `op read`, "arn:aws:secretsmanager:...": aws secretsmanager, "env:NAME", "file:/path").
 * The half that speaks with the Secret Service is a program of its own, bac-vault: it is started for a request and ends with it, so that neither GLib nor
 * what it keeps of values stays in whoever asks. Which of the two holds the secrets is noted in the file when something is stored ("auto" goes by that note).
 * Metadata of an entry is not secret: created, hosts, variable, placeholder, username, where. */
#include "base/buf.h"
#include "base/err.h"

enum {
	STORE_VALUE_MAX = 16 * 1024,
	STORE_ENTRIES_MAX = 512,
	STORE_KEY_MAX = 255,
	STORE_META_MAX = 8 * 1024,
	STORE_SOURCE_MAX = 4 * 1024,
	STORE_BUS_MS = 2000
};

enum store_how { STORE_VALUE = 1, STORE_COMMAND, STORE_REF };

struct store_entry {
	char *key;
	uint8_t how;
	char *source;      /* COMMAND, REF: the text; VALUE: NULL */
	int64_t refresh_s; /* COMMAND, REF: how long a value is good for; 0: on demand, each time */
	int64_t created;   /* seconds since 1970 */
	char *meta;        /* a JSON object, checked, at most 8 KiB */
	char *masked; /* VALUE: "sk-a...9f2c": at most 4 bytes at each end, and none of a value shorter than 16; else "" */
};

struct store;

/* SCOPE/KIND/NAME, each as above? */
bool store_key_is(const char *key);

/* Was anything ever stored? False: there is no need to open it. */
bool store_is_used(const char *config_dir);

/* Choose and open. What runs for others (bac-fetch) says "auto". choice: the setting's. *ret_notice: a line for people if it is the file and was not said before, or NULL; on the heap. */
int store_open(const char *config_dir, const char *choice, struct store **ret, char **ret_notice,
	       struct err *e) _must_check_;
struct store *store_close(struct store *s);
DEFINE_FREEP(struct store, store_close)
/* "Secret Service" or the file's path. */
const char *store_where(const struct store *s);

/* Without values. Sorted by key. The receiver frees with store_list_done(). */
int store_list(struct store *s, struct store_entry **ret, size_t *ret_n, struct err *e)
	_must_check_;
void store_list_done(struct store_entry *v, size_t n);

/* As it is kept: for VALUE the value in *ret_value (NUL-terminated for convenience; wiped and freed with store_value_free()), else NULL. -ENOENT with a message. */
int store_get(struct store *s, const char *key, struct store_entry *ret, char **ret_value,
	      size_t *ret_n, struct err *e) _must_check_;
/* Replace or make. value NULL for COMMAND and REF. meta NULL: as it was, else "{}"; created 0: as it was, else now. */
int store_put(struct store *s, const struct store_entry *entry, const char *value, size_t n,
	      struct err *e) _must_check_;
/* -ENOENT with a message. */
int store_remove(struct store *s, const char *key, struct err *e) _must_check_;
/* All of one scope. How many, or -Exxx. */
int store_remove_scope(struct store *s, const char *scope, struct err *e) _must_check_;

char *store_value_free(char *value, size_t n);
void store_entry_done(struct store_entry *e);

/* The value of an entry, whatever it is; *ret_refresh_s: how long it is good for, -1: until it is changed. Runs commands (timeout_ms, its stderr's last line is in the message), asks `op` or `aws`. What a command prints loses one
 * trailing newline. */
int store_resolve(struct store *s, const char *key, unsigned timeout_ms, char **ret_value,
		  size_t *ret_n, int64_t *ret_refresh_s, struct err *e) _must_check_;

/* Is it a reference that store_resolve() knows? Which, or -EINVAL with a message that lists them. */
int store_ref_check(const char *ref, struct err *e) _must_check_;
