/* One line, one write, no stream that would have to be opened or flushed. */
#include "workspace/say.h"

#include <stdarg.h>
#include <unistd.h>

#include "base/err.h"

void say(const char *fmt, ...)
{
	char text[ERR_MSG_MAX + 32];
	struct err e;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(e.msg, sizeof(e.msg), fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	n = snprintf(text, sizeof(text), "bac-workspace: %s\n", e.msg);
	if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
		return;
}
