#pragma once
/* What kits add to a sandbox that is being made, before it starts. */
#include "cli/credfiles.h"
#include "cli/kit-box.h"
#include "state/rules.h"

/* What can be said without a sandbox: values that cannot be given to it are refused; ports and other things that have no effect are named. */
int kit_create_check(const struct sandbox *b, const struct kit_box *k, struct err *e) _must_check_;

/* Their declarations, beside those of --credentials. Those of built-in kits are left out: their services are known without them, and need no approval. */
int kit_create_credentials(const struct kit_box *k, struct cred_files *f, struct err *e)
	_must_check_;

/* Their network rules, as rules of one sandbox ("": only to check them), and those that approved credentials need: a domain that a credential is used at and no rule allows. */
int kit_create_rules(struct ctx *c, const struct kit_box *k, const char *sandbox,
		     struct box_rules *ret, struct err *e) _must_check_;

/* Approvals have come for the credentials of a sandbox that is there: the hosts that these open are opened, if they were not. */
int kit_create_approved(struct ctx *c, const struct sandbox *b, struct err *e) _must_check_;

/* Say what their rules open, since no rule of the user does. */
void kit_create_tell(const struct kit_box *k);

/* Warn where a kit sets a variable that the project's own files set as well. */
void kit_create_project(const struct sandbox *b, const struct kit_box *k);
