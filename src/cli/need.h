#pragma once
/* What a kit or a file of --credentials says it cannot do without (required: true), and has not: said before anything is started, rather than met at a
 * request hours later. */
#include "base/buf.h"
#include "cli/approve.h"
#include "kit/declare.h"

enum need_kind { NEED_NONE, NEED_KEY, NEED_LOGIN };

struct need {
	const struct approvals *have; /* NULL: they are not asked about */
	/* What is stored for a service. NULL: it is not asked about, and a key is assumed. */
	enum need_kind (*stored)(void *arg, const char *service);
	void *arg;
};

/* Append one line that names all of it, each with what is to be typed; nothing if nothing is missing. 0, -ENOBUFS or -ENOMEM. */
int need_line(const struct need *n, const struct declarations *v, size_t n_v, struct buf *out)
	_must_check_;
