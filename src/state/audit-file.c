/* The directory of a log: names of files, and the way to them. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "state/audit-priv.h"

static const char suffix[] = ".jsonl";

const char *audit_file_name(char dst[static AUDIT_FILE_MAX], uint64_t number)
{
	(void)snprintf(dst, AUDIT_FILE_MAX, "%06llu%s", (unsigned long long)number, suffix);
	return dst;
}

int audit_open(int dir, const char *name, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY),
		.mode = flags & O_CREAT ? 0600 : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, dir, name, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/* 0 if the name is not that of a file of ours. */
static uint64_t number_of(const char *name)
{
	char digits[24], again[AUDIT_FILE_MAX];
	const size_t n = strlen(name), k = sizeof(suffix) - 1;
	uint64_t v = 0;

	if (n <= k || n - k >= sizeof(digits) || !streq(name + n - k, suffix))
		return 0;
	memcpy(digits, name, n - k);
	digits[n - k] = '\0';
	if (text_u64(digits, UINT32_MAX, &v) < 0 || !streq(audit_file_name(again, v), name))
		return 0;
	return v;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void closedirp(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

int audit_files(int dir, uint64_t **ret, size_t *ret_n)
{
	_close_ int fd = audit_open(dir, ".", O_RDONLY | O_DIRECTORY);
	_cleanup_(closedirp) DIR *d = fd < 0 ? NULL : fdopendir(fd);
	_free_ uint64_t *v = NULL;
	size_t n = 0, cap = 0;
	struct dirent *e;

	if (!d)
		return fd < 0 ? fd : -errno;
	(void)take_fd(&fd);
	while ((e = readdir(d))) {
		uint64_t number = number_of(e->d_name), *more;

		if (!number)
			continue;
		if (n == cap) {
			cap = cap ? cap * 2 : 16;
			more = reallocarray(v, cap, sizeof(*v));
			if (!more)
				return -ENOMEM;
			v = more;
		}
		v[n++] = number;
	}
	if (n)
		qsort(v, n, sizeof(*v), compare);
	*ret = take_ptr(v);
	*ret_n = n;
	return 0;
}

int audit_head_read(int dir, uint64_t *ret_seq, char ret_hash[static AUDIT_HASH + 1])
{
	_close_ int fd = audit_open(dir, AUDIT_HEAD, O_RDONLY | O_NONBLOCK);
	char text[128], *space;
	uint64_t seq;
	ssize_t n;

	if (fd < 0)
		return fd;
	n = fd_read_all(fd, text, sizeof(text) - 1);
	if (n < 0)
		return (int)n;
	if (n < AUDIT_HASH + 2 || text[n - 1] != '\n')
		return -EBADMSG;
	text[n - 1] = '\0';
	space = strchr(text, ' ');
	if (!space || strspn(space + 1, "0123456789abcdef") != AUDIT_HASH || space[1 + AUDIT_HASH])
		return -EBADMSG;
	*space = '\0';
	if (text_u64(text, UINT64_MAX - 1, &seq) < 0)
		return -EBADMSG;
	*ret_seq = seq;
	memcpy(ret_hash, space + 1, AUDIT_HASH + 1);
	return 0;
}
