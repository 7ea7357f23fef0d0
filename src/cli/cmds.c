/* The list of commands, and the names that users of sbx may try and bac does not have. */
#include "cli/cmds.h"

const struct cmd *cmds_all(void)
{
	static const struct cmd *const list[] = {
		&run_cmd,        &create_cmd,  &exec_cmd,     &ls_cmd,       &inspect_cmd,
		&stop_cmd,       &rm_cmd,      &prune_cmd,    &cp_cmd,       &logs_cmd,
		&template_cmd,   &kernel_cmd,  &settings_cmd, &diagnose_cmd, &reset_cmd,
		&completion_cmd, &version_cmd, &manual_cmd,   &mount_cmd,    &umount_cmd,
		&policy_cmd,     &audit_cmd,   &secret_cmd,   &kit_cmd,      &env_cmd,
		&batch_cmd,
	};
	static struct cmd all[ARRAY_SIZE(list) + 1];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(list); i++)
		all[i] = *list[i];
	return all;
}

/* What bac will not have, and why. */
static const struct {
	const char *name, *why;
} never[] = {
	{ "login", "no account is needed" },
	{ "logout", "there is no account" },
	{ "daemon", "each sandbox has a supervisor of its own" },
	{ "attach", "'bac run' comes back to an agent" },
	{ "move", "sandboxes run on this machine" },
	{ "ttl", "sandboxes run on this machine" },
	{ "volume", "sandboxes run on this machine" },
	{ "--cloud", "sandboxes run on this machine" },
	{ "--debug", "see 'bac logs SANDBOX' and 'bac diagnose'" },
	{ "--privileged", "the user agent has sudo" },
	{ "--upload", "there is nowhere to send it; see 'bac diagnose --format github-issue'" },
};

static const char *const not_built[] = {
	/* commands */
	"mcp",
	"ports",
	"setup",
	"skills",
	"tui",
	"kit builder",
	"kit delete",
	"kit provenance",
	"kit push",
	"kit sign",
	"kit verify",
	"guard",
	/* options */
	"--branch",
	"--clone",
	"--gpu",
	"--model",
	"--no-share-skills",
	"--overflow-model",
	"--overflow-provider",
	"--profile",
	"--provider",
	"--publish",
	"--skills",
	"--static-mcp",
	"--filter",
};

int cmds_not_built(const char *name, struct err *e)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(never); i++)
		if (streq(never[i].name, name))
			return err_set(e, -ENOTSUP, "there is no '%s' in bac: %s", name,
				       never[i].why);
	for (i = 0; i < ARRAY_SIZE(not_built); i++)
		if (streq(not_built[i], name))
			return err_set(e, -ENOTSUP, "'%s' is not built yet in this bac", name);
	return 0;
}
