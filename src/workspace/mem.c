/* Guest memory. The front-end's files are memory files that are sealed against shrinking (QEMU's
 * memory-backend-memfd does so by itself): without that seal it could take a page away while we read it, which ends a
 * process. */
#include "workspace/mem.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* More than any guest of ours has; keeps the sum of all regions far from the end of the address space. */
static const uint64_t region_max = 1ULL << 40;

static bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b ? b - a < a_size : a - b < b_size;
}

static bool overlaps_earlier(const struct vhost_msg *m, uint32_t i)
{
	const struct vhost_region *g = &m->regions[i];

	for (uint32_t k = 0; k < i; k++) {
		const struct vhost_region *h = &m->regions[k];

		if (overlap(g->guest, g->size, h->guest, h->size) ||
		    overlap(g->user, g->size, h->user, h->size))
			return true;
	}
	return false;
}

static int file_check(int fd, const struct vhost_region *g)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return -EPROTO;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || g->size > region_max ||
	    g->offset + g->size > (uint64_t)st.st_size)
		return -EPROTO;
	return 0;
}

static int region_map(struct mem_region *ret, const struct vhost_region *g, int fd)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t before = g->offset % page;
	const size_t len = (size_t)(g->size + before);
	int r = file_check(fd, g);
	void *p;

	if (r < 0)
		return r;
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
		 (off_t)(g->offset - before));
	if (p == MAP_FAILED)
		return -errno;
	*ret = (struct mem_region) { .guest = g->guest,
				     .user = g->user,
				     .size = g->size,
				     .host = (uint8_t *)p + before,
				     .map = p,
				     .map_len = len };
	return 0;
}

int mem_map(const struct vhost_msg *m, const int *fds, struct mem **ret)
{
	struct mem *t = calloc(1, sizeof(*t));
	int r = 0;

	if (!t)
		return -ENOMEM;
	t->refs = 1;
	for (uint32_t i = 0; i < m->n_regions && r == 0; i++) {
		r = overlaps_earlier(m, i) ? -EPROTO : region_map(&t->r[i], &m->regions[i], fds[i]);
		if (r == 0)
			t->n++;
	}
	if (r < 0) {
		(void)mem_unref(t);
		return r;
	}
	*ret = t;
	return 0;
}

struct mem *mem_ref(struct mem *m)
{
	m->refs++;
	return m;
}

struct mem *mem_unref(struct mem *m)
{
	if (!m || --m->refs)
		return NULL;
	for (uint32_t i = 0; i < m->n; i++)
		if (m->r[i].map)
			(void)munmap(m->r[i].map, m->r[i].map_len);
	free(m);
	return NULL;
}

/* addr may be anything; regions do not wrap. */
static void *at(const struct mem_region *r, uint64_t start, uint64_t addr, uint64_t len)
{
	uint64_t off = addr - start;

	if (!len || addr < start || off >= r->size || len > r->size - off)
		return NULL;
	return r->host + off;
}

void *mem_at_guest(const struct mem *m, uint64_t addr, uint64_t len)
{
	void *p = NULL;

	for (uint32_t i = 0; i < m->n && !p; i++)
		p = at(&m->r[i], m->r[i].guest, addr, len);
	return p;
}

void *mem_at_user(const struct mem *m, uint64_t addr, uint64_t len)
{
	void *p = NULL;

	for (uint32_t i = 0; i < m->n && !p; i++)
		p = at(&m->r[i], m->r[i].user, addr, len);
	return p;
}
