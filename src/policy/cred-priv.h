#pragma once
/* What cred.c and cred-text.c share: the fields of a use, and a set. */
#include "policy/cred.h"
#include "policy/net-priv.h"

/* In the order of the text. */
enum cred_field {
	CRED_F_ID,
	CRED_F_KIND,
	CRED_F_STATE,
	CRED_F_ORIGIN,
	CRED_F_SERVICE,
	CRED_F_KEY,
	CRED_F_RESOURCE,
	CRED_F_HEADER,
	CRED_F_FORMAT,
	CRED_F_USERNAME,
	CRED_F_PLACEHOLDER,
	CRED_F_PLACEHOLDER2,
	CRED_F_WHERE,
	CRED_F_PATH,
	CRED_F_FIELDS,
	CRED_FIELDS
};

extern const char *const cred_kind_words[CRED_KIND_N], *const cred_state_words[CRED_STATE_N];

/* A use whole: each field for itself, and those that its kind needs and has not. 0, or -EINVAL with a message; *ret_at is the field that it is about. */
int cred_use_check(const struct cred_use *u, struct net_pattern *ret, enum cred_field *ret_at,
		   struct err *e) _must_check_;

/* A field's place in a use; only of those that are texts. */
const char **cred_use_text(struct cred_use *u, enum cred_field f);

struct cred_item {
	struct cred_use use; /* its texts are in line */
	struct net_pattern pattern;
	char *line;
};

struct cred_set {
	struct cred_item *v;
	size_t n, cap;
};
