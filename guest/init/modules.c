/* Modules are stored uncompressed, so that the kernel reads them as they are. */
#include "guest/init/modules.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

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
