/* Modules are stored uncompressed, so that the kernel reads them as they are. */
#include "guest/init/modules.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "guest/init/boot.h"
#include "guest/init/die.h"
#include "io/fd.h"

enum { ORDER_FILE_MAX = 64 * 1024 };

static void load(const char *name)
{
	char path[320];
	_close_ int fd = -1;

	if ((size_t)snprintf(path, sizeof(path), "/modules/%s", name) >= sizeof(path))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST))
		die_note("module %s: %s", name, err_text(errno));
}

void modules_load(void)
{
	_free_ char *list = NULL;
	char *name, *rest = NULL;

	if (fd_read_file(AT_FDCWD, "/modules/order", ORDER_FILE_MAX, &list, NULL) < 0)
		return; /* a kernel without modules */
	for (name = strtok_r(list, " \t\r\n", &rest); name; name = strtok_r(NULL, " \t\r\n", &rest))
		load(name);
}

/* The two are one directory where /lib is a link to usr/lib. */
void modules_show(int base)
{
	static const char *const dirs[] = { "/usr/lib/modules", "/lib/modules" };
	char from[160], to[128], list[160];
	struct utsname u;
	size_t i;

	if (uname(&u) < 0)
		return;
	(void)snprintf(from, sizeof(from), "/proc/self/fd/%d/usr/lib/modules/%s", base, u.release);
	if (access(from, F_OK) < 0)
		return; /* of another kernel, or this one has all built in */
	for (i = 0; i < ARRAY_SIZE(dirs); i++) {
		(void)snprintf(to, sizeof(to), "%s/%s", dirs[i], u.release);
		(void)snprintf(list, sizeof(list), "%s/modules.dep", to);
		if (access(list, F_OK) == 0)
			continue;
		(void)!boot_make_dirs(to, 0755);
		if (mount(from, to, NULL, MS_BIND, NULL) < 0)
			die_note("the kernel's modules are not at %s: %s", to, err_text(errno));
	}
}
