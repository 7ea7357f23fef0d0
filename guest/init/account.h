#pragma once
/* The agent's lines in /etc/passwd, /etc/group and /etc/shadow of a root that bac did not build. Pure: texts in, texts out.
 *
 * The user is agent, 1000, /home/agent. Where an image gave 1000 to somebody (ubuntu, node), agent becomes a second name of the
 * same user, in front of the first: so both names work, and nobody's files change their owner. */
#include "base/buf.h"

enum { ACCOUNT_ID = 1000, ACCOUNT_FILE_MAX = 128 * 1024 };

#define ACCOUNT_HOME "/home/agent"

/* Into out the file with agent in it, 0; or 1: it is there already, and nothing is written; or of buf_add(). gid is what
 * account_group() found. hidden: passwords are kept in a file of their own. */
int account_passwd(struct buf *out, const char *text, size_t n, uint32_t gid, const char *shell,
		   bool hidden) _must_check_;

/* Likewise; the groups that are there of those whose members may do more (sudo, wheel, docker) get agent as well. *ret_gid is set for 0 and 1. */
int account_group(struct buf *out, const char *text, size_t n, uint32_t *ret_gid) _must_check_;

int account_shadow(struct buf *out, const char *text, size_t n) _must_check_;
