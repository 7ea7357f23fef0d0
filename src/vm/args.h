#pragma once
/* QEMU's command line. Pure: no system calls.
 *
 * No text of the user's is in it except the added kernel command line (which QEMU does not parse): files
 * are descriptors with fixed numbers or fixed paths in the cage, so that no comma in a name can become
 * an option. */
#include "base/buf.h"
#include "vm/vm.h"

/* The descriptors of the caged QEMU. */
enum {
	VM_FD_NULL,
	VM_FD_OUT,
	VM_FD_ERR,
	VM_FD_CTL,
	VM_FD_QMP,
	VM_FD_ROOT,
	VM_FD_DISK,
	VM_FD_SHARE,
	VM_FD_TAP,
	VM_FD_BASE,
	VM_FD_EXTENTS, /* how root and its blobs make one disk */
	VM_FD_BLOBS,   /* the first of them */
	VM_FD_N = VM_FD_BLOBS + VM_BLOBS_MAX
};

#define VM_KERNEL "/vm/kernel"
#define VM_INITRD "/vm/initrd"

enum { VM_ARGS_MAX = 90 + 2 * VM_BLOBS_MAX, VM_ARG_TEXT_MAX = 8192 + 32 * VM_BLOBS_MAX };

struct vm_args {
	const char *v[VM_ARGS_MAX + 1]; /* NULL-terminated, into text or constant */
	size_t n;
	char text[VM_ARG_TEXT_MAX];
	size_t used;
	bool bad;
};

/* 0, -EINVAL (machine) or -E2BIG (the kernel command line is too long). *ret must stay where it is:
 * its words point into it. */
int vm_args_make(const struct vm_spec *s, struct vm_args *ret) _must_check_;

/* The description of a disk of n files of these sizes, the first on VM_FD_ROOT, the others from VM_FD_BLOBS on, for
 * VM_FD_EXTENTS. An empty one adds nothing. 0, -EINVAL (a size that is no multiple of 4096, or an empty first) or of
 * buf_printf(). */
int vm_args_extents(struct buf *out, const uint64_t *sizes, size_t n) _must_check_;
