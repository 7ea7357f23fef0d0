#pragma once
/* The commands. Each file of this room defines one or a few; cmds.c lists them. */
#include "base/opt.h"

extern const struct cmd create_cmd, run_cmd, exec_cmd, ls_cmd, inspect_cmd, stop_cmd, rm_cmd,
	prune_cmd, cp_cmd, logs_cmd, settings_cmd, diagnose_cmd, reset_cmd, version_cmd,
	completion_cmd, manual_cmd, template_cmd, kernel_cmd, mount_cmd, umount_cmd, policy_cmd,
	audit_cmd, secret_cmd, kit_cmd, env_cmd, batch_cmd;

/* All of them, ended by a NULL name. */
const struct cmd *cmds_all(void);

/* Exit statuses. */
enum { STATUS_FAILED = 1, STATUS_USAGE = 2, STATUS_BAC = 125 };

/* A name of sbx that bac does not have: -ENOTSUP with a message, else 0. */
int cmds_not_built(const char *name, struct err *e);
