/* Any two contents of any kind of file, parted by the first NUL NUL: what is added is found, what was
 * there is not, and adding something harmless changes nothing. */
#include "base/check.h"
#include "policy/gitconfig-read.h"
#include "policy/gitconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static int count(void *user, const struct gitconfig_entry *entry)
{
	check(entry->line && strlen(entry->key) < GITCONFIG_KEY_MAX);
	++*(size_t *)user;
	return 0;
}

static void both(const char *rel, const uint8_t *old, size_t old_n, const uint8_t *new,
		 size_t new_n)
{
	const size_t len = strlen(rel);
	struct gitconfig_answer a = gitconfig_adds(rel, len, old, old_n, new, new_n);

	check(a.adds == (a.why != NULL) && strlen(a.key) < sizeof(a.key));
	check(!gitconfig_adds(rel, len, new, new_n, new, new_n).adds);
	check(!gitconfig_adds(rel, len, old, old_n, NULL, 0).adds);
	check(!gitconfig_adds("a/b", 3, old, old_n, new, new_n).adds);
}

/* The same, with a key at the end that is wanted never; behind two newlines, since the first may be
 * escaped. */
static void one_more(const uint8_t *old, size_t old_n)
{
	static const char more[] = "\n\n[core]\nsshCommand = \"eve 77\"\n";
	uint8_t *new = malloc(old_n + sizeof(more));
	size_t entries = 0;
	unsigned line;

	check(new);
	if (old_n)
		memcpy(new, old, old_n);
	memcpy(new + old_n, more, sizeof(more) - 1);
	if (gitconfig_read(old, old_n, count, &entries, &line) == GITCONFIG_READ &&
	    !memmem(old, old_n, "eve 77", 6))
		check(gitconfig_adds("config", 6, old, old_n, new, old_n + sizeof(more) - 1).adds);
	free(new);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	const uint8_t *cut = n ? memmem(p, n, "\0\0", 2) : NULL;
	size_t old_n = cut ? (size_t)(cut - p) : n;
	const uint8_t *new = cut ? cut + 2 : p + n;
	size_t new_n = n - (size_t)(new - p);

	both(".git/config", p, old_n, new, new_n);
	both("x/config", p, old_n, new, new_n);
	both(".git", p, old_n, new, new_n);
	both(".git/modules/a/commondir", p, old_n, new, new_n);
	one_more(p, old_n);
	return 0;
}
