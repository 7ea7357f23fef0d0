/* Names and ids, for a minute. */
#include "state/known.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/dirs.h"

#define NAMES "names"

enum { LINK_MAX_LEN = sizeof(NAMES) + 64 };

/* names/NAME. A name that is none could lead elsewhere. */
static int link_of(const char *name, char path[LINK_MAX_LEN])
{
	if (text_name_fault(name))
		return -EINVAL;
	(void)snprintf(path, LINK_MAX_LEN, NAMES "/%s", name);
	return 0;
}

void known_put(int state_fd, const char *name, const char *id)
{
	char path[LINK_MAX_LEN];

	if (link_of(name, path) < 0)
		return;
	/* Between the two, others do not find it and ask the database. */
	if (unlinkat(state_fd, path, 0) < 0 && errno == ENOENT)
		(void)mkdirat(state_fd, NAMES, 0700);
	(void)symlinkat(id, state_fd, path);
}

int known_find(const char *state_dir, const char *name, char ret_id[KNOWN_ID + 1])
{
	char path[LINK_MAX_LEN], id[KNOWN_ID + 2];
	_free_ char *whole = NULL;
	time_t now = time(NULL);
	struct stat st;
	ssize_t n;

	if (link_of(name, path) < 0)
		return -ENOENT;
	whole = dirs_join(state_dir, path);
	if (!whole || lstat(whole, &st) < 0 || st.st_uid != geteuid())
		return -ENOENT;
	if (st.st_mtime > now || now - st.st_mtime >= KNOWN_SECONDS)
		return -ENOENT;
	n = readlink(whole, id, sizeof(id));
	if (n != KNOWN_ID)
		return -ENOENT;
	id[n] = '\0';
	if (strspn(id, "0123456789abcdef") != KNOWN_ID)
		return -ENOENT;
	memcpy(ret_id, id, KNOWN_ID + 1);
	return 0;
}

void known_forget(int state_fd, const char *name)
{
	char path[LINK_MAX_LEN];

	if (link_of(name, path) == 0)
		(void)unlinkat(state_fd, path, 0);
}

void known_forget_all(int state_fd)
{
	(void)dirs_remove(state_fd, NAMES);
}
