#pragma once
/* From the initramfs to the running root: mounts, names, devices. */
#include <sys/types.h>

#include "base/err.h"

struct boot {
	int old_root; /* root of the initramfs: below it, lower/ and disk/ stay mounted */
	int base;     /* root of our own template, beside an image; -1: none */
	int dev_fd, proc_fd, pts_fd, null_fd;
	char disk_dev[32]; /* "vdb", the writable disk */
	char workdir[4096];
};

/* dev, proc and sys of the initramfs, and stdio on the console. */
void boot_first_mounts(void);

/* True if the kernel's command line has this word. */
bool boot_has_word(const char *word);

/* Find the disks and mount the sandbox's root at /new. 0 or -errno with a message. */
int boot_disks(struct boot *b, struct err *e) _must_check_;

/* Make /new the root, with everything that belongs there. */
int boot_switch(struct boot *b, struct err *e) _must_check_;

/* mkdir -p, of root's. 0 or -errno. */
int boot_make_dirs(const char *path, mode_t mode) _must_check_;

/* Host name and /etc/hosts; the network devices and /etc/resolv.conf; the default directory. Failures are only noted. */
void boot_identity(struct boot *b, const char *hostname, const char *workdir);
