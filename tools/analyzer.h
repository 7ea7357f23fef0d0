/* Read first by clang-tidy only (tools/tidy.py). Its analyser takes errno for any number, zero too, and
 * so believes that "return -errno" may mean success with nothing set. After a failure it is positive. */
#include <errno.h>
#undef errno
static inline int *analyzer_errno(void)
{
	int *e = __errno_location();

	if (*e <= 0)
		__builtin_unreachable();
	return e;
}
#define errno (*analyzer_errno())
