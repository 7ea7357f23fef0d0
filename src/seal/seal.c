/* The loader of all lists. */
#include "seal/seal.h"

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>

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
	(void)malloc_trim(0); /* the compiler of filters had more than the process will need */
	return r;
}

int seal_load(const struct seal_list *l)
{
	scmp_filter_ctx ctx = seccomp_init(BAC_SANITIZED ? SCMP_ACT_LOG : SCMP_ACT_KILL_PROCESS);
	int r = 0;

	if (!ctx)
		return -ENOMEM;
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
