/* Input: what the user is called, then passwd, then group, each but the last ended by a NUL. */
#include "base/check.h"
#include "guest/init/user.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next part, in memory of its own size, so that a read behind it is noticed. */
static char *part(const uint8_t **p, size_t *n, size_t *ret_len)
{
	const uint8_t *end = memchr(*p, '\0', *n);
	size_t len = end ? (size_t)(end - *p) : *n;
	char *s = malloc(len + 1);

	check(s);
	if (len)
		memcpy(s, *p, len);
	s[len] = '\0';
	*n -= len + (end ? 1 : 0);
	*p += len + (end ? 1 : 0);
	*ret_len = len;
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len, passwd_len, group_len;
	_free_ char *spec = part(&data, &size, &len);
	_free_ char *passwd = part(&data, &size, &passwd_len);
	_free_ char *group = malloc(size ? size : 1);
	struct user_files f = { .passwd = passwd, .passwd_len = passwd_len, .group = group };
	struct user u;
	struct err e;

	check(group);
	group_len = size;
	if (size)
		memcpy(group, data, size);
	f.group_len = group_len;
	if (user_find(&u, &f, spec, &e) < 0)
		return 0;
	check(u.n_groups <= USER_GROUPS_MAX && u.uid != UINT32_MAX && u.gid != UINT32_MAX);
	check(memchr(u.name, '\0', sizeof(u.name)) && *u.name);
	check(memchr(u.home, '\0', sizeof(u.home)) && memchr(u.shell, '\0', sizeof(u.shell)));
	return 0;
}
