#pragma once
/* How all sandboxes are, asked at once: one deadline for the lot, whatever is sick. */
#include "cli/ctx.h"
#include "wire/msg.h"

struct probe {
	const char
		*status; /* "running", "starting", "stopping", "stopped", "unresponsive", "lost" */
	bool known;      /* the supervisor answered: m is set (its remark is the one below) */
	struct wire_status m;
	char remark[WIRE_TEXT_MAX + 1]; /* "", or what went wrong meanwhile and is worth a line */
};

/* Ask each of the n sandboxes' supervisors. ret has n entries. Takes at most about ms. */
void probe_all(const struct ctx *c, const struct sandbox *v, size_t n, uint32_t ms,
	       struct probe *ret);

/* "running (emulated)" into dst. */
const char *probe_text(char *dst, size_t max, const struct probe *p);
