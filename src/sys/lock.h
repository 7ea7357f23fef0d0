#pragma once
/* Locks that cannot outlive their owner: flock() on a file. The lock belongs to the open file, so a
 * descriptor that is handed to a child hands the lock over without a gap. */
#include "base/base.h"

/* Open (make) dir/name and lock it. Exclusive unless shared. 0 and *ret_fd, -EBUSY if somebody holds
 * it and wait is false, else -errno. */
int lock_take(int dir, const char *name, bool shared, bool wait, int *ret_fd) _must_check_;

/* As lock_take(), waiting at most ms milliseconds; -EBUSY then. */
int lock_take_within(int dir, const char *name, unsigned ms, int *ret_fd) _must_check_;

/* 1 if somebody holds the lock exclusively, 0 if not (or the file is missing), else -errno. */
int lock_is_held(int dir, const char *name) _must_check_;
