#pragma once
/* The hypervisor: QEMU started in a cage, and the few things said to it.
 *
 * Life: vm_spawn() makes the namespaces and starts QEMU in them; the caller owns the process (a
 * direct child: its SIGCHLD, stop and continue are the caller's to see) and the other ends of the
 * descriptors. QEMU dies with the caller (PDEATHSIG) and with its pid namespace. */
#include <sys/types.h>

#include "base/err.h"

enum { VM_BLOBS_MAX = 128 };

struct vm_spec {
	const char *qemu;              /* program, absolute path */
	const char *const *qemu_files; /* absolute paths that its root must hold; NULL-terminated */
	const char *machine;           /* "microvm" or "q35" */
	bool kvm;
	bool tcg_multi; /* emulate each CPU on a thread of its own: see vm_probe.tcg_safe */
	uint32_t cpus;
	uint64_t memory;    /* bytes */
	uint64_t disk_size; /* bytes; no file may be written beyond */
	uint64_t tsc_khz;   /* for emulation; 0: leave it out */
	const char *kernel; /* ELF */
	const char *initrd;
	const char *cmdline;    /* added to ours; may be "" */
	const char *root_image; /* read-only disk, flock()ed shared while QEMU runs; NULL: none */
	/* Files that the root disk goes on with, one behind the other, each a multiple of 4096 bytes and
	 * flock()ed likewise; NULL-terminated, at most VM_BLOBS_MAX; NULL: none. */
	const char *const *root_blobs;
	const char *base_image; /* one more read-only disk, as root_image; NULL: none */
	const char *disk_image; /* writable raw disk, locked while QEMU runs; NULL: none */
	int ctl_fd;             /* socket: becomes the virtio-serial port "ctl" */
	int qmp_fd;             /* socket: QMP */
	int console_fd;         /* writable: kernel console, QEMU's stderr */
	int share_fd;           /* socket: vhost-user, to a file server that answers; 0: none */
	int tap_fd; /* tap device with a header in front of each packet (IFF_VNET_HDR); 0: no network */
	const char *mac; /* of the guest's end of it */
};

/* Start QEMU. On success the caller should close its copies of the descriptors (they are
 * borrowed). 0, -EBUSY (another machine has the disk) or -Exxx, with a message. *ret_pidfd is
 * close-on-exec and owned by the caller. The calling thread must live as long as QEMU shall, and the
 * program must be dumpable (prctl(2)), as it is by default. */
int vm_spawn(const struct vm_spec *s, pid_t *ret_pid, int *ret_pidfd, struct err *e);

/* What QEMU of this path needs to run: itself, its libraries, its firmware and modules. A
 * NULL-terminated heap array of heap texts: vm_files_free(). */
int vm_files(const char *qemu, char ***ret, size_t *ret_n, struct err *e);
char **vm_files_free(char **files);

/* The host's time stamp counter in kHz, measured over ms milliseconds; 0 if it is not constant. */
uint64_t vm_tsc_khz(unsigned ms);

/* Find QEMU: the setting if not NULL or empty, else qemu-system-x86_64 in PATH. The heap path. */
int vm_find_qemu(const char *setting, char **ret, struct err *e);

/* Which accelerator works here. Really starts a guest with KVM, with a deadline; the answer is kept
 * in cache_dir/probe.json, by boot id, kernel, QEMU (path, size, time) and kernel image. */
struct vm_probe {
	bool kvm;
	char why[256]; /* why KVM is not used, for people: "/dev/kvm: Permission denied" */
	uint64_t tsc_khz;
	/* This QEMU emulates several CPUs on several threads without fault. Before 8.1 a CPU may go on with
	 * code that another has just rewritten: Debian's kernels, which patch themselves, die of it now and
	 * then ("int3"), and so do programs that compile while they run (8 of 100 starts of a JVM). */
	bool tcg_safe;
	char **qemu_files; /* vm_files(); owned */
	size_t n_qemu_files;
};
int vm_probe(const char *cache_dir, const char *qemu, const char *kernel, const char *initrd,
	     bool fresh, struct vm_probe *ret, struct err *e);
void vm_probe_done(struct vm_probe *p);
