#pragma once
/* The guest's memory, as the front-end shared it: a table of regions that never changes once it is made. A
 * new table replaces the old one; requests that are still worked on hold a reference to the one in
 * which their buffers lie, so that it stays mapped until they are answered. */
#include "base/base.h"
#include "workspace/vhost-msg.h"

struct mem_region {
	uint64_t guest; /* physical address */
	uint64_t user;  /* address in the front-end */
	uint64_t size;
	uint8_t *host; /* our address of the first byte */
	void *map;     /* what was mapped, from a page's start */
	size_t map_len;
};

struct mem {
	unsigned refs;
	uint32_t n;
	struct mem_region r[VHOST_REGIONS_MAX];
};

/* Map the regions of a checked SET_MEM_TABLE message; fds has one descriptor for each, which stays the
 * caller's. 0; -EPROTO: regions that overlap, or reach beyond the end of their file, or a file that could
 * shrink under us; -ENOMEM or another errno of mmap(). The table has one reference. */
int mem_map(const struct vhost_msg *m, const int *fds, struct mem **ret) _must_check_;

struct mem *mem_ref(struct mem *m);
struct mem *mem_unref(
	struct mem *m); /* NULL is fine; returns NULL; unmaps with the last reference */

/* Our address of len bytes from a guest's (physical) or the front-end's (user) address, or NULL unless all of
 * them lie in one region. len 0 is NULL. What is there may change at any time. */
void *mem_at_guest(const struct mem *m, uint64_t addr, uint64_t len);
void *mem_at_user(const struct mem *m, uint64_t addr, uint64_t len);
