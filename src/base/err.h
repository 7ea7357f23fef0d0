#pragma once
/* An error that a person will read: one line, complete, in the user's words.
 *
 * Appears where a person is near (cli, image, vm, state, supervisor start). Everywhere else an
 * int is enough: negative errno is fatal and forwarded, positive is an answer. */
#include "base/base.h"

#define ERR_MSG_MAX 512

struct err {
	int code;              /* -Exxx, for the exit status and for callers */
	char msg[ERR_MSG_MAX]; /* without the final newline */
};

/* Start an error. Returns code, so that it can be returned at once. A message that is too
 * long is cut at the end. Control characters and what is no UTF-8 become '?', so that hostile
 * text cannot reach the user's terminal. Never allocates. */
int err_set(struct err *e, int code, const char *fmt, ...) _printf_(3, 4);

/* As err_set(), with ": " and the text of the errno in code (negative) put behind, which is never
 * cut. */
int err_errno(struct err *e, int code, const char *fmt, ...) _printf_(3, 4);

/* Say what we were doing when it happened; goes in front. Returns e->code. If there is no
 * room the context is dropped, never the cause. */
int err_ctx(struct err *e, const char *fmt, ...) _printf_(2, 3);

#if defined(__clang_analyzer__) && !defined(ERR_ITSELF)
/* The analyser sees one file at a time: this tells it that these return what is negative. */
static inline int err_told(int code)
{
	if (code >= 0)
		__builtin_unreachable();
	return code;
}
#define err_set(...)   err_told(err_set(__VA_ARGS__))
#define err_errno(...) err_told(err_errno(__VA_ARGS__))
#define err_ctx(...)   err_told(err_ctx(__VA_ARGS__))
#endif

/* The kernel's text for an errno, of either sign. Never allocates. */
const char *err_text(int code);
