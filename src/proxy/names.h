#pragma once
/* Names and the addresses that stand for them inside one sandbox: so the name of every connection is known exactly.
 *
 * A table of at most NAMES_MAX names. An address that was given out stands for its name until the table is full and the name
 * has neither been asked for nor had a connection for NAMES_KEEP_S seconds; then it may be given to another. If none is old enough, names_get()
 * refuses. Each generation of the proxy takes its addresses from another slice, so that an address that a guest remembers
 * from before stands for nothing rather than for another name. A name that never got an allowed address is kept for
 * NAMES_KEEP_REFUSED_S only: what is refused either way may not crowd out what is not. Pure but for its clock, which is handed in. */
#include "policy/host.h"

enum { NAMES_MAX = 3072, NAMES_KEEP_S = 3600, NAMES_KEEP_REFUSED_S = 300, NAMES_TTL_S = 30 };
struct names;
int names_new(uint32_t generation, struct names **ret) _must_check_;
struct names *names_free(struct names *t);
DEFINE_FREEP(struct names, names_free)
/* The address (network order, 4 bytes) for a name; refused picks the range. 0; -EINVAL (not a HOST_NAME); -ENOSPC. */
int names_get(struct names *t, const struct host *name, bool refused, uint64_t now_s,
	      uint8_t ret[static 4]) _must_check_;
/* The name of an address of our ranges, or NULL: it stands for nothing. Marks it used. Borrowed until names_free(). */
const struct host *names_find(struct names *t, const uint8_t addr[static 4], uint64_t now_s);
/* A connection holds its name; for each hold one release. */
void names_hold(struct names *t, const uint8_t addr[static 4]);
void names_release(struct names *t, const uint8_t addr[static 4], uint64_t now_s);
bool names_ours(const uint8_t addr[static 4]); /* within 198.18.0.0/15 */
