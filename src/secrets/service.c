/* The store in the Secret Service: asked through bac-vault, a program for one request. */
#include <stdio.h>

#include "secrets/priv.h"
#include "secrets/vault.h"
#include "sys/spawn.h"

enum { REQUEST_MS = 20000, OUT_FIRST = 64 * 1024 };

#define CHOOSE "or keep secrets in a file from now on: bac settings set secrets.store file"

static int explain(int status, struct err *e)
{
	struct err why = *e;

	switch (status) {
	case VAULT_NONE:
		return err_set(
			e, -ENOENT,
			"no Secret Service answers on the session bus; start one (gnome-keyring, "
			"KWallet, KeePassXC), " CHOOSE);
	case VAULT_LOCKED:
		return err_set(e, -EBUSY,
			       "the keyring is locked; unlock it (log in on the desktop, or: "
			       "gnome-keyring-daemon --unlock), " CHOOSE);
	case VAULT_MISSING:
		return err_set(e, -ENOENT, "no such secret in the Secret Service");
	case VAULT_DAMAGED:
		return err_set(e, -EINVAL,
			       "an item of bac's in the Secret Service is not as bac writes it; "
			       "look at it "
			       "with a keyring manager (seahorse)");
	case -ETIMEDOUT:
		return err_set(e, -ETIMEDOUT,
			       "the Secret Service does not answer; does it wait for a password "
			       "somewhere? Or: bac settings set secrets.store file");
	default:
		return err_set(e, -EIO, "the Secret Service: %s", why.msg);
	}
}

/* Takes the request over. The answer in *ret if it is not NULL. */
static int request(struct store *s, json_t *j, unsigned ms, json_t **ret, struct err *e)
{
	const char *argv[] = { s->vault, NULL };
	struct buf out = BUF_INIT(VAULT_OUT_MAX);
	struct sys_cmd cmd = { .argv = argv, .out = &out, .deadline_ms = ms };
	char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	int r;

	json_decref(j);
	/* room from the beginning: a value that is moved leaves a copy behind */
	if (!text || !buf_room(&out, OUT_FIRST)) {
		entry_text_free(text);
		return err_errno(e, -ENOMEM, "cannot ask the Secret Service");
	}
	cmd.in = text;
	cmd.n_in = strlen(text);
	r = sys_run(&cmd, e);
	entry_text_free(text);
	r = r == 0 ? 0 : explain(r, e);
	if (r == 0 && ret) {
		*ret = json_loadb((const char *)buf_data(&out), out.n, JSON_DECODE_ANY, NULL);
		if (!*ret)
			r = explain(VAULT_DAMAGED, e);
	}
	explicit_bzero(out.p, out.cap);
	buf_done(&out);
	return r;
}

int service_probe(struct store *s, struct err *e)
{
	return request(s, json_pack("{s:s}", "op", "probe"), STORE_BUS_MS, NULL, e);
}

static int list(struct store *s, struct store_entry **ret, size_t *ret_n, struct err *e)
{
	json_t *j;
	int r = request(s, json_pack("{s:s}", "op", "list"), REQUEST_MS, &j, e);

	if (r < 0)
		return r;
	r = entry_read_all(j, ret, ret_n);
	json_decref(j);
	return r < 0 ? explain(VAULT_DAMAGED, e) : 0;
}

static int get(struct store *s, const char *key, struct store_entry *ret, char **ret_value,
	       size_t *ret_n, struct err *e)
{
	json_t *j;
	int r = request(s, json_pack("{s:s, s:s}", "op", "get", "key", key), REQUEST_MS, &j, e);

	if (r == -ENOENT && starts_with(e->msg, "no such"))
		return err_set(e, r, "no secret is stored as %s", key);
	if (r < 0)
		return r;
	r = entry_read(key, j, ret, ret_value, ret_n);
	json_decref(j);
	return r < 0 ? explain(VAULT_DAMAGED, e) : 0;
}

static int put(struct store *s, const struct store_entry *entry, const char *value, size_t n,
	       struct err *e)
{
	json_t *before = NULL, *j;
	char where[16];
	size_t in_file;
	int r = request(s, json_pack("{s:s, s:s}", "op", "get", "key", entry->key), REQUEST_MS,
			&before, e);

	if (r < 0 && !(r == -ENOENT && starts_with(e->msg, "no such")))
		return r;
	j = entry_merge(entry, value, n, before);
	json_decref(before);
	if (!j)
		return err_errno(e, -ENOMEM, "cannot store the secret");
	r = request(s, json_pack("{s:s, s:s, s:o}", "op", "put", "key", entry->key, "entry", j),
		    REQUEST_MS, NULL, e);
	if (r == 0)
		r = file_where(s, where, &in_file, e);
	return r == 0 && !streq(where, "service") ? file_note_where(s, "service", e) : r;
}

static int remove_some(struct store *s, const char *key, bool prefix, struct err *e)
{
	json_t *j;
	int r = request(
		s, json_pack("{s:s, s:s, s:b}", "op", "remove", "key", key, "prefix", (int)prefix),
		REQUEST_MS, &j, e);

	if (r < 0)
		return r;
	r = (int)json_integer_value(j);
	json_decref(j);
	return r;
}

const struct store_kind store_service = {
	.list = list, .get = get, .put = put, .remove = remove_some
};
