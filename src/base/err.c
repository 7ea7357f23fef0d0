/* Errors for people: set once where the cause is known, given context on the way up. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

static void make_printable(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	make_printable(e->msg);
	e->code = code;
	return code;
}

const char *err_text(int code)
{
	const char *s = strerrordesc_np(code < 0 ? -code : code);

	return s ? s : "unknown error";
}

int err_errno(struct err *e, int code, const char *fmt, ...)
{
	size_t len;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	len = strlen(e->msg);
	(void)snprintf(e->msg + len, sizeof(e->msg) - len, ": %s", err_text(code));
	make_printable(e->msg);
	e->code = code;
	return code;
}

int err_ctx(struct err *e, const char *fmt, ...)
{
	size_t have = strlen(e->msg);
	char ctx[sizeof(e->msg)];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(ctx, sizeof(ctx), fmt, ap);
	va_end(ap);
	if (n <= 0 || (size_t)n + 2 + have >= sizeof(e->msg))
		return e->code;

	make_printable(ctx);
	memmove(e->msg + n + 2, e->msg, have + 1);
	memcpy(e->msg, ctx, (size_t)n);
	memcpy(e->msg + n, ": ", 2);
	return e->code;
}
