#pragma once
/* QMP, the part that a supervisor needs. QEMU may have been taken by its guest: each line is
 * bounded and parsed as hostile input. Source: QEMU docs/interop/qmp-spec. Pure: no I/O. */
#include "base/buf.h"
#include "base/err.h"

enum { QMP_LINE_MAX = 64 * 1024 };

enum qmp_event {
	QMP_NOTHING,  /* an answer or an event that does not matter here */
	QMP_GREETING, /* answer it with qmp_capabilities */
	QMP_SHUTDOWN, /* the guest or the host ended the machine */
	QMP_RESET,
	QMP_PANICKED,
	QMP_STOPPED, /* the machine is paused */
	QMP_RESUMED,
	QMP_ERROR, /* a command was refused; text in *ret_text of qmp_next() */
};

/* Take one line out of in (raw bytes from QEMU). 1: *ret is set; 0: no whole line there yet;
 * -EPROTO: not QMP, or a line that is too long. text (at least 128 bytes) gets an error's text. */
int qmp_next(struct buf *in, enum qmp_event *ret, char *text, size_t max) _must_check_;

/* Append a command without arguments, as in "quit", "stop", "cont", "qmp_capabilities". */
int qmp_command(struct buf *out, const char *name) _must_check_;
