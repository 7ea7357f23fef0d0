/* A word to the user. */
#include "cli/say.h"

#include <stdarg.h>
#include <stdio.h>

void say(const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, "bac: %s\n", line);
}

int flush_out(struct err *e)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		return err_errno(e, errno ? -errno : -EIO, "cannot write the output");
	return 0;
}
