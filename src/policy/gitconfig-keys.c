#include "policy/gitconfig-keys.h"

#include "policy/path-part.h"

static bool is_one_of(const char *value, const char *const *list)
{
	for (; *list; list++)
		if (strcasecmp(value, *list) == 0)
			return true;
	return false;
}

static bool is_bool(const char *key, const char *value)
{
	static const char *const list[] = { "true", "false", "yes", "no", "on",
					    "off",  "1",     "0",   "",   NULL };

	(void)key;
	return is_one_of(value, list);
}

static bool is_plain_tool(const char *key, const char *value)
{
	static const char *const list[] = { "", "cat", "less", "more", "true", "false", ":", NULL };

	(void)key;
	return is_one_of(value, list);
}

static bool is_plain_pager(const char *key, const char *value)
{
	return is_bool(key, value) || is_plain_tool(key, value);
}

static bool is_usual_hooks(const char *key, const char *value)
{
	static const char *const list[] = { "/dev/null", ".git/hooks", NULL };

	(void)key;
	return is_one_of(value, list);
}

static bool is_empty(const char *key, const char *value)
{
	(void)key;
	return !*value;
}

static bool is_never(const char *key, const char *value)
{
	(void)key;
	return strcasecmp(value, "never") == 0;
}

static bool is_no_command(const char *key, const char *value)
{
	(void)key;
	return *value != '!';
}

/* "ext::" and "fd::" name a program, or a descriptor of whoever calls. */
static bool is_no_helper(const char *key, const char *value)
{
	(void)key;
	return strncasecmp(value, "ext::", 5) != 0 && strncasecmp(value, "fd::", 4) != 0;
}

static bool rewrites_to_no_helper(const char *key, const char *value)
{
	(void)value;
	return is_no_helper(key, key + strlen("url."));
}

static bool is_no_path(const char *key, const char *value)
{
	(void)key;
	return !strchr(value, '/');
}

/* What "git lfs install --local" writes. */
static bool is_lfs(const char *key, const char *value)
{
	static const char *const list[] = {
		"git-lfs clean -- %f",           "git-lfs smudge -- %f",
		"git-lfs smudge --skip -- %f",   "git-lfs filter-process",
		"git-lfs filter-process --skip", NULL
	};

	return starts_with(key, "filter.lfs.") && is_one_of(value, list);
}

/* The first row that matches and whose value is not harmless counts. */
static const struct gitconfig_key keys[] = {
	{ "core.fsmonitor", "runs a command at each 'git status'", is_bool },
	{ "core.hookspath", "runs hooks from another folder", is_usual_hooks },
	{ "core.sshcommand", "runs a command to reach a remote" },
	{ "core.gitproxy", "runs a command to reach a remote" },
	{ "core.askpass", "runs a command to ask for a password" },
	{ "core.editor", "runs a command as the editor", is_plain_tool },
	{ "sequence.editor", "runs a command as the editor", is_plain_tool },
	{ "core.pager", "runs a command as the pager", is_plain_pager },
	{ "pager.*", "runs a command as the pager", is_plain_pager },
	{ "core.alternaterefscommand", "runs a command at a fetch" },
	{ "core.virtualfilesystem", "runs a command when the index is read" },
	{ "include.path", "reads more configuration from a file that nobody checks" },
	{ "includeif.*", "reads more configuration from a file that nobody checks" },
	{ "alias.*", "runs a command under another name", is_empty },
	{ "hook.*.command", "runs a command as a hook" },
	{ "filter.*.clean", "runs a command at 'git add'", is_lfs },
	{ "filter.*.smudge", "runs a command at a checkout", is_lfs },
	{ "filter.*.process", "runs a command at 'git add' and at a checkout", is_lfs },
	{ "diff.external", "runs a command to compare" },
	{ "diff.*.command", "runs a command to compare" },
	{ "diff.*.textconv", "runs a command to compare" },
	{ "merge.*.driver", "runs a command to merge" },
	{ "mergetool.*.cmd", "runs a command to merge" },
	{ "mergetool.*.path", "runs a command to merge" },
	{ "difftool.*.cmd", "runs a command to compare" },
	{ "difftool.*.path", "runs a command to compare" },
	{ "merge.*tool", "runs a script as the tool to merge", is_no_path },
	{ "diff.*tool", "runs a script as the tool to compare", is_no_path },
	{ "guitool.*.cmd", "runs a command from a menu" },
	{ "interactive.difffilter", "runs a command at 'git add -p'" },
	{ "credential.helper", "runs a command that is told passwords", is_empty },
	{ "credential.*.helper", "runs a command that is told passwords", is_empty },
	{ "gpg.program", "runs a command to sign" },
	{ "gpg.*.program", "runs a command to sign" },
	{ "gpg.ssh.defaultkeycommand", "runs a command to find a key" },
	{ "gc.recentobjectshook", "runs a command at 'git gc'" },
	{ "uploadpack.packobjectshook", "runs a command at a fetch" },
	{ "remote.*.uploadpack", "runs a command at a fetch" },
	{ "remote.*.receivepack", "runs a command at a push" },
	{ "remote.*.vcs", "runs a helper to reach a remote" },
	{ "remote.*.url", "names a program instead of a remote", is_no_helper },
	{ "remote.*.pushurl", "names a program instead of a remote", is_no_helper },
	{ "submodule.*.url", "names a program instead of a remote", is_no_helper },
	{ "submodule.*.update", "runs a command at 'git submodule update'", is_no_command },
	{ "url.*.insteadof", "names a program instead of a remote", rewrites_to_no_helper },
	{ "url.*.pushinsteadof", "names a program instead of a remote", rewrites_to_no_helper },
	{ "protocol.allow", "lets a remote be a program", is_never },
	{ "protocol.ext.allow", "lets a remote be a program", is_never },
	{ "protocol.fd.allow", "lets a remote be a descriptor", is_never },
	{ "rebase.instructionformat", "can put 'exec' lines into a rebase" },
	{ "trailer.*.command", "runs a command for commit messages" },
	{ "trailer.*.cmd", "runs a command for commit messages" },
	{ "tar.*.command", "runs a command at 'git archive'" },
	{ "init.templatedir", "copies hooks into new repositories" },
	{ "help.browser", "runs a command to show help" },
	{ "web.browser", "runs a command to show pages" },
	{ "browser.*.cmd", "runs a command to show pages" },
	{ "browser.*.path", "runs a command to show pages" },
	{ "instaweb.*", "runs a web server" },
	{ "man.viewer", "runs a command to show help" },
	{ "man.*.cmd", "runs a command to show help" },
	{ "man.*.path", "runs a command to show help" },
	{ "imap.tunnel", "runs a command to send mail" },
	{ "sendemail*.smtpserver", "runs a command to send mail", is_no_path },
	{ "svn.authorsprog", "runs a command at 'git svn'" },
	{ "gitflow.path.hooks", "runs hooks from another folder" },
	{ "secrets.providers", "runs a command at 'git secrets'" },
	{ "lfs.customtransfer.*", "runs a command at a transfer of large files" },
	{ "lfs.extension.*", "runs a command on large files" },
	{ "tig.*", "can run commands in tig" },
	{ "annex.*hook", "runs a command at 'git annex'" },
	/* whatever comes to be called so, in git and in tools that keep their settings there */
	{ "*command", "by its name runs a command", is_bool },
	{ "*cmd", "by its name runs a command", is_bool },
	{ "*.program", "by its name runs a command", is_bool },
	{ "*.*editor", "by its name runs a command", is_plain_tool },
	{ "*.*pager", "by its name runs a command", is_plain_pager },
	{ "*.*browser", "by its name runs a command", is_empty },
	{ "*.*askpass", "by its name runs a command", is_empty },
	{ "*.*helper", "by its name runs a command", is_empty },
	{ "*.*hook", "by its name runs a command", is_bool },
	{ "*.textconv", "by its name runs a command", is_bool },
};

const struct gitconfig_key *gitconfig_key_find(const char *key, const char *value)
{
	size_t i, n = strlen(key);

	if (!value)
		return NULL; /* true, which is no command; git complains */
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		const struct gitconfig_key *k = &keys[i];

		if (path_part_matches(k->pattern, strlen(k->pattern), key, n, true) &&
		    !(k->harmless && k->harmless(key, value)))
			return k;
	}
	return NULL;
}
