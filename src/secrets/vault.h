#pragma once
/* What bac-vault is asked, and how it ends. On its stdin: a JSON object {"op": list|get|put|remove|probe, "key": text, "prefix": bool, "entry": object}; on its
 * stdout, for list {KEY: entry without value}, for get the entry, for remove how many. */
enum vault_status {
	VAULT_OK = 0,
	VAULT_FAILED = 1, /* the reason is on stderr */
	VAULT_NONE = 10,  /* nobody owns the name, or there is no bus */
	VAULT_LOCKED = 11,
	VAULT_MISSING = 12, /* no such entry */
	VAULT_DAMAGED = 13, /* an item that bac did not write so */
};

enum { VAULT_IN_MAX = 64 * 1024, VAULT_OUT_MAX = 8 * 1024 * 1024 };
