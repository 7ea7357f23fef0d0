/* Errors for people: set once where the cause is known, given context on the way up. */
#define ERR_ITSELF
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

/* Bytes of the character at s if it may be shown, else 0: controls (C0, DEL, and C1, which some
 * terminals obey in UTF-8, too) and what is no UTF-8. */
static size_t printable(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t len = u[0] < 0x80 ? 1 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;

	if (len == 1)
		return u[0] >= 0x20 && u[0] != 0x7f;
	if (strnlen(s, len) < len || !text_is_utf8(s, len))
		return 0;
	return u[0] == 0xc2 && u[1] < 0xa0 ? 0 : len;
}

static void make_printable(char *s)
{
	while (*s) {
		size_t len = printable(s);

		if (!len)
			*s = '?';
		s += len ? len : 1;
	}
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
#ifdef __GLIBC__
	const char *s = strerrordesc_np(code < 0 ? -code : code);
#else
	const char *s = strerror(code < 0 ? -code : code); /* musl: of the same lasting kind */
#endif

	return s ? s : "unknown error";
}

int err_errno(struct err *e, int code, const char *fmt, ...)
{
	size_t room = sizeof(e->msg) - strlen(err_text(code)) - 2, len;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(e->msg, room, fmt, ap);
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
