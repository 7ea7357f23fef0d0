/* Decompression by bac-archive. */
#include "image/unpack.h"

#include <inttypes.h>
#include <stdio.h>

#include "sys/dirs.h"
#include "sys/spawn.h"

enum { UNPACK_MS = 300000, STATUS_TOO_LARGE = 3 };

int image_unpack(const void *p, size_t n, struct buf *out, struct err *e)
{
	_free_ char *prog = dirs_program("bac-archive");
	char max[32];
	const char *const argv[] = { prog, "unpack", max, NULL };
	struct sys_cmd c = {
		.argv = argv, .in = p, .n_in = n, .out = out, .deadline_ms = UNPACK_MS
	};
	int r;

	if (!prog)
		return err_errno(e, -ENOMEM, "cannot unpack");
	(void)snprintf(max, sizeof(max), "%zu", buf_space(out));
	r = sys_run(&c, e);
	if (r == STATUS_TOO_LARGE)
		return err_set(e, -EFBIG, "unpacks to more than %zu bytes", out->max);
	return r > 0 ? -EINVAL : r;
}
