#pragma once
/* The Docker Engine's own file system: what lies on the sandbox's disk behind the sandbox's own (cli/disk.c). */
#include "base/err.h"

#define VOLUME_DIR "/var/lib/docker"

/* Where it begins on this disk, by what the first file system says of itself: bytes; 0: there is none; -errno. */
int64_t volume_find(int disk) _must_check_;

/* Have it at VOLUME_DIR, where it is not there yet. 0, also for a disk that has none; 1: this kernel lets nobody write to a disk that is
 * mounted, so it is not to be had (Linux since 6.8 without CONFIG_BLK_DEV_WRITE_MOUNTED); -errno with a message. Waits for the disk and for
 * modprobe: for a child. */
int volume_mount(const char *disk_dev, struct err *e) _must_check_;
