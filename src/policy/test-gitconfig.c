/* Git's configuration: the grammar, the keys, what was there before, and the links to repositories. */
#include "policy/gitconfig.h"

#include <stdio.h>

#include "base/check.h"
#include "policy/gitconfig-read.h"

static const struct {
	const char *rel;
	enum gitconfig_kind kind;
} kinds[] = {
	{ ".git/config", GITCONFIG_CONFIG },
	{ ".GIT/Config", GITCONFIG_CONFIG },
	{ "a/b/.git/config", GITCONFIG_CONFIG },
	{ ".git/config.worktree", GITCONFIG_CONFIG },
	{ ".git/modules/a/b/config", GITCONFIG_CONFIG },
	{ ".git/worktrees/w/config.worktree", GITCONFIG_CONFIG },
	{ ".git/refs/heads/config", GITCONFIG_MAYBE },
	{ ".git/modules/refs/config", GITCONFIG_MAYBE },
	{ "config", GITCONFIG_MAYBE },
	{ "a/config", GITCONFIG_MAYBE },
	{ ".git", GITCONFIG_LINK },
	{ "sub/.Git", GITCONFIG_LINK },
	{ ".git/commondir", GITCONFIG_LINK },
	{ ".git/worktrees/w/commondir", GITCONFIG_LINK },
	{ "commondir", GITCONFIG_OTHER },
	{ ".git/config.lock", GITCONFIG_OTHER },
	{ ".git/index", GITCONFIG_OTHER },
	{ "a.git", GITCONFIG_OTHER },
	{ "", GITCONFIG_OTHER },
};

static struct gitconfig_answer ask(const char *rel, const char *old, const char *new)
{
	return gitconfig_adds(rel, strlen(rel), old, strlen(old), new, strlen(new));
}

/* The new content of .git/config, and the key that is found; NULL: nothing, "": what it is */
static const struct {
	const char *text, *key;
	unsigned line;
} added[] = {
	{ "[core]\n\trepositoryformatversion = 0\n\tbare = false\n", NULL, 0 },
	{ "[remote \"origin\"]\n\turl = https://x/y.git\n\tfetch = "
	  "+refs/heads/*:refs/remotes/origin/*\n"
	  "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = A\n",
	  NULL, 0 },
	{ "# [core]\n;fsmonitor = x\n[core] # fsmonitor = y\n", NULL, 0 },
	{ "[core]\nfsmonitor = x\n", "core.fsmonitor", 2 },
	{ "[CORE]\n\tFsMonitor=x", "core.fsmonitor", 2 },
	{ "[core] fsmonitor = x", "core.fsmonitor", 1 },
	{ "\xef\xbb\xbf[core]\r\n  fsmonitor  =  x  \r\n", "core.fsmonitor", 2 },
	{ "[core]fsmonitor=\\\nx\n", "core.fsmonitor", 2 },
	{ "[core]\nfsmonitor = true\n[core]\nfsmonitor = \"no\" ; comment\n", NULL, 0 },
	{ "[core]\nfsmonitor\n", NULL, 0 },
	{ "[core]\nfsmonitor = t\"ru\"e\n", NULL, 0 },
	{ "[core]\nfsmonitor = true x\n", "core.fsmonitor", 2 },
	{ "[core]\nfsmonitor = \"# x\"\n", "core.fsmonitor", 2 },
	{ "[core]\nfsmonitor = # x\n", NULL, 0 },
	{ "[core]\nx = \"a\\\nb\"\nfsmonitor = x\n", "core.fsmonitor", 4 },
	{ "[core]\nx = a\\\n[core]\\\nfsmonitor = x\ny = 1\n", NULL, 0 },
	{ "[core \"x\"]\nfsmonitor = x\n", NULL, 0 },
	{ "[core]\nhooksPath = hooks\n", "core.hookspath", 2 },
	{ "[core]\nhooksPath = /dev/null\n", NULL, 0 },
	{ "[core]\neditor = vi\n", "core.editor", 2 },
	{ "[core]\npager = cat\n", NULL, 0 },
	{ "[pager]\nlog = false\ndiff = eve\n", "pager.diff", 3 },
	{ "[alias]\nst = status\n", "alias.st", 2 },
	{ "[alias]\nx = !eve\n", "alias.x", 2 },
	{ "[alias \"X y\"]\ncommand = !eve\n", "alias.X y.command", 2 },
	{ "[filter \"a]\\\"b\"]\nclean = eve\n", "filter.a]\"b.clean", 2 },
	{ "[filter.A]\nsmudge = eve\n", "filter.a.smudge", 2 },
	{ "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tprocess = git-lfs "
	  "filter-process\n\trequired = true\n",
	  NULL, 0 },
	{ "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f; eve\n", NULL, 0 }, /* a comment */
	{ "[filter \"lfs\"]\n\tclean = \"git-lfs clean -- %f; eve\"\n", "filter.lfs.clean", 2 },
	{ "[diff \"x\"]\ntextconv = eve\n", "diff.x.textconv", 2 },
	{ "[diff]\ntool = vimdiff\nguitool = ../../eve\n", "diff.guitool", 3 },
	{ "[merge \"x\"]\ndriver = eve %A\n", "merge.x.driver", 2 },
	{ "[credential]\nhelper =\n[credential \"https://x\"]\nhelper = store\n",
	  "credential.https://x.helper", 4 },
	{ "[include]\npath = ../x\n", "include.path", 2 },
	{ "[includeIf \"gitdir:/\"]\npath = ../x\n", "includeif.gitdir:/.path", 2 },
	{ "[gpg \"ssh\"]\ndefaultKeyCommand = eve\n", "gpg.ssh.defaultkeycommand", 2 },
	{ "[remote \"o\"]\nurl = ext::sh -c eve\n", "remote.o.url", 2 },
	{ "[remote \"o\"]\nuploadpack = eve\n", "remote.o.uploadpack", 2 },
	{ "[url \"ext::eve \"]\ninsteadOf = https://\n", "url.ext::eve .insteadof", 2 },
	{ "[url \"git@x:\"]\ninsteadOf = https://x/\n", NULL, 0 },
	{ "[protocol \"ext\"]\nallow = always\n", "protocol.ext.allow", 2 },
	{ "[protocol \"ext\"]\nallow = never\n[protocol \"file\"]\nallow = always\n", NULL, 0 },
	{ "[submodule \"a\"]\nurl = https://x\nactive = true\nupdate = rebase\n", NULL, 0 },
	{ "[submodule \"a\"]\nupdate = !eve\n", "submodule.a.update", 2 },
	{ "[future \"x\"]\nfancyCommand = eve\n", "future.x.fancycommand", 2 },
	{ "[advice]\nignoredHook = false\n", NULL, 0 },
	{ "[core]\nworktree = ..\n", NULL, 0 },
	{ "[core]\nworktree = ../link\n", "core.worktree", 2 },
	{ "[core]\nworktree = /home/u\n", "core.worktree", 2 },
	{ "[core]\nworktree = ../..\n", "core.worktree", 2 },
	{ "[core]\nworktree = hooks\n", "core.worktree", 2 },
	/* before a section there are no keys that count */
	{ "fsmonitor = x\n", NULL, 0 },
	/* what git refuses */
	{ "[core\nfsmonitor = 1\n", "", 1 },
	{ "[]\n", "", 1 },
	{ "[core]\nx = \"open\n", "", 2 },
	{ "[core]\nx = \\q\n", "", 2 },
	{ "[core]\nx y\n", "", 2 },
	{ "[core]\n1 = 2\n", "", 2 },
	{ "[core \"x]\n", "", 1 },
	{ "[core \"x\" ]\n", "", 1 },
	{ "[core x]\n", "", 1 },
	{ "\xef\xbb[core]\n", "", 1 },
	{ "\\\n", "", 1 },
	{ "[a \"b\\\n\"]\n", "", 1 },
};

static void keys(void)
{
	struct gitconfig_answer a;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(added); i++) {
		a = ask(".git/config", "", added[i].text);
		if (a.adds != !!added[i].key || (a.adds && !streq(a.key, added[i].key)) ||
		    a.line != added[i].line)
			(void)fprintf(stderr, "%s: '%s' line %u, %s\n", added[i].text, a.key,
				      a.line, a.why ? a.why : "fine");
		check(a.adds == !!added[i].key && a.line == added[i].line);
		check(!a.adds || (streq(a.key, added[i].key) && a.why));
		/* elsewhere what git refuses runs nothing */
		a = ask("x/config", "", added[i].text);
		if (added[i].key && !added[i].key[0])
			check(!a.adds);
		else if (!strstr(added[i].text, "worktree"))
			check(a.adds == !!added[i].key);
	}
}

static void before(void)
{
	static const char old[] = "[core]\npager = eve\n[alias]\na = !x\na = !y\n";

	check(!ask(".git/config", old, "[alias]a=\"!y\"\n[Core]\n PAGER = eve\n").adds);
	check(!ask(".git/config", old, "").adds);
	check(streq(ask(".git/config", old, "[core]\npager = eve2\n").key, "core.pager"));
	check(streq(ask(".git/config", old, "[alias]\nb = !x\n").key, "alias.b"));
	check(ask(".git/config", old, "[alias]\na = !x\n!").adds);
	/* what could not be read may be made so, not extended */
	check(!ask(".git/config", "[core]\npager = eve\n[", "[core]\npager = eve\n").adds);
	check(ask(".git/config", "[", "[a").adds && !ask(".git/config", "[", "[").adds);
	check(!ask("config", old, "[alias]\na = !x\n!").adds);
	check(!ask("README", "", "[core]\npager = eve\n").adds);
}

static void modules(void)
{
	static const char rel[] = ".git/modules/a/b/config";

	check(!ask(rel, "", "[core]\nworktree = ../../../../a/b\n").adds);
	check(ask(rel, "", "[core]\nworktree = ../../../../../a\n").adds);
	check(ask(rel, "", "[core]\nworktree = ../../../hooks\n").adds);
	check(ask(rel, "", "[core]\nworktree = /a/b\n").adds);
	check(!ask("x/.git/modules/a/config", "", "[core]\nworktree = ../../../../y\n").adds);
	check(ask("config", "", "[core]\nworktree = ..\n").adds);
	check(ask("a/config", "", "[core]\nworktree = ../b\n").adds);
}

static const struct {
	const char *rel, *text;
	bool adds;
} links[] = {
	{ ".git", "gitdir: ../.git/worktrees/w\n", false },
	{ "sub/.git", "gitdir: ../.git/modules/sub\n", false },
	{ ".git", "gitdir: /home/u/p/.git/worktrees/w\r\n", false },
	{ ".git", "gitdir: .git/modules/a/modules/b", false },
	{ ".git", "gitdir: evil\n", true },
	{ ".git", "gitdir: ../x/.git\n", true },
	{ ".git", "gitdir: .git/modules\n", true },
	{ ".git", "gitdir: .git/modules/../../evil\n", true },
	{ ".git", "gitdir: .git/evil/modules/x\n", true },
	{ ".git", "gitdir: \n", true },
	{ ".git", "gitdir:evil\n", false }, /* git wants the blank */
	{ ".git", "whatever\n", false },
	{ ".git/worktrees/w/commondir", "../..\n", false },
	{ ".git/worktrees/w/commondir", "../../evil\n", true },
	{ ".git/commondir", "evil\n", true },
};

static void redirections(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(links); i++)
		check(ask(links[i].rel, "", links[i].text).adds == links[i].adds);
	check(!ask(".git", "gitdir: evil\n", "gitdir: evil\n").adds);
	check(gitconfig_adds(".git", 4, NULL, 0, "gitdir: .git/modules/x\0", 23).adds);
}

/* Git cuts names and values at a NUL. */
static void nuls(void)
{
	static const char name[] = "[core \"FsMonitor\0\"]\nx = eve\n";
	static const char value[] = "[core]\npager = cat\0x\n";
	struct gitconfig_answer a =
		gitconfig_adds(".git/config", 11, NULL, 0, name, sizeof(name) - 1);

	check(a.adds && streq(a.key, "core.fsmonitor"));
	check(!gitconfig_adds(".git/config", 11, NULL, 0, value, sizeof(value) - 1).adds);
}

static void limits(void)
{
	char *text = malloc(GITCONFIG_MAX + 1);
	unsigned i;

	check(text);
	memset(text, '\n', GITCONFIG_MAX + 1);
	check(!gitconfig_adds("config", 6, NULL, 0, text, GITCONFIG_MAX).adds);
	check(gitconfig_adds("config", 6, NULL, 0, text, GITCONFIG_MAX + 1).adds);
	check(gitconfig_adds("config", 6, text, GITCONFIG_MAX + 1, text, 1).adds);
	/* "a.KEY" of the longest size, and one more */
	memcpy(text, "[a]\n", 4);
	memset(text + 4, 'k', GITCONFIG_KEY_MAX);
	check(!gitconfig_adds("config", 6, NULL, 0, text, 4 + GITCONFIG_KEY_MAX - 3).adds);
	check(gitconfig_adds("config", 6, NULL, 0, text, 4 + GITCONFIG_KEY_MAX - 2).adds);
	/* many entries, all there before */
	memcpy(text, "[alias]\n", 8);
	for (i = 0; i <= GITCONFIG_ENTRIES_MAX; i++)
		memcpy(text + 8 + 4 * (size_t)i, "a=b\n", 4);
	check(!gitconfig_adds("config", 6, "[alias]a=b", 10, text,
			      8 + 4 * (size_t)GITCONFIG_ENTRIES_MAX)
		       .adds);
	check(gitconfig_adds("config", 6, "[alias]a=b", 10, text,
			     12 + 4 * (size_t)GITCONFIG_ENTRIES_MAX)
		      .adds);
	free(text);
}

int main(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		check(gitconfig_kind(kinds[i].rel, strlen(kinds[i].rel)) == kinds[i].kind);
	keys();
	before();
	modules();
	redirections();
	nuls();
	limits();
	return 0;
}
