#pragma once
/* Copies of file trees into and out of the guest, by a child of ours. */
#include <sys/types.h>

#include "wire/msg.h"

/* Start the child for COPY_IN (it reads the copy stream from data) or COPY_OUT (it writes it to data). It
 * exits with 0, or with 1 after a report (see spawn.h). The pid, or -errno. */
pid_t copy_start(bool in, const struct wire_copy *m, int data, int *ret_report) _must_check_;
