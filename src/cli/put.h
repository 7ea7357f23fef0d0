#pragma once
/* Printing many pieces and asking once: the first failure is kept, what follows is nothing. */
#include "base/buf.h"

struct put {
	struct buf *out; /* borrowed */
	int r;           /* 0, -ENOBUFS or -ENOMEM */
};

#define PUT(p, ...) \
	do { \
		if ((p)->r == 0) \
			(p)->r = buf_printf((p)->out, __VA_ARGS__); \
	} while (0)
