/* The loader of all lists. */
#include "seal/seal.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "config.h"

int seal_begin(void)
{
	const struct rlimit none = { 0, 0 };

	if (setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	(void)mallopt(M_ARENA_MAX, 1);
	return 0;
}

/* Only what is a page of the file and no more: what was written (relocated data) stays. */
static int give_back(struct dl_phdr_info *info, size_t size, void *unused)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;

	(void)size;
	(void)unused;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t from = (info->dlpi_addr + h->p_vaddr + page) & ~page;
		uintptr_t to = (info->dlpi_addr + h->p_vaddr + h->p_memsz) & ~page;

		if (h->p_type == PT_LOAD && !(h->p_flags & PF_W) && from < to)
			/* NOLINTNEXTLINE(performance-no-int-to-ptr): an address is a number there */
			(void)madvise((void *)from, to - from, MADV_DONTNEED);
	}
	return 1; /* the first is the program */
}

void seal_settle(void)
{
	(void)malloc_trim(0);
	if (!BAC_SANITIZED)
		(void)dl_iterate_phdr(give_back, NULL);
}

static int permit(scmp_filter_ctx ctx, const struct seal_permit *p)
{
	if (!p->mask)
		return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, p->call, 0);
	return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, p->call, 1,
				SCMP_CMP64(p->arg, SCMP_CMP_MASKED_EQ, p->mask, p->value));
}

static int refuse(scmp_filter_ctx ctx, const int *calls, size_t n, int error)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(error), calls[i], 0);
	return r;
}

/* A tree instead of a list of comparisons, for threads that there are already, too; then the context is no more, whatever r. */
static int load(scmp_filter_ctx ctx, int r)
{
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	seal_settle();
	return r;
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* qsort(3) of glibc asks once how much memory there is, sysinfo(2), when it first needs more than 1024 bytes of its own. */
static void libc_prepare(void)
{
	int v[1024] = { 1 };

	qsort(v, ARRAY_SIZE(v), sizeof(v[0]), by_value);
}

int seal_load(const struct seal_list *l)
{
	scmp_filter_ctx ctx = seccomp_init(BAC_SANITIZED ? SCMP_ACT_LOG : SCMP_ACT_KILL_PROCESS);
	int r = 0;

	if (!ctx)
		return -ENOMEM;
	libc_prepare();
	for (size_t i = 0; i < l->n_permits && r == 0; i++)
		r = permit(ctx, &l->permits[i]);
	if (r == 0)
		r = refuse(ctx, l->refused, l->n_refused, l->error);
	return load(ctx, r);
}

int seal_refuse(const int *calls, size_t n, int error)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

	return ctx ? load(ctx, refuse(ctx, calls, n, error)) : -ENOMEM;
}
