#pragma once
/* The sandbox's log: what the kernel, QEMU and the supervisor said, bounded.
 *
 * Two files, log.0 and log.1, are opened once and written in turn: when one has LOG_FILE_MAX bytes the
 * other is emptied and goes on. So the log needs no right to open files. The first line of each names
 * its number in the sequence: "#bac-log N". */
#include "base/err.h"

struct slog;

/* dir is the sandbox's directory. */
int slog_open(int dir, struct slog **ret, struct err *e) _must_check_;
struct slog *slog_free(struct slog *l);

/* One line of our own. Control characters are made harmless, here as below. A full disk loses lines
 * and nothing else. */
void slog_say(struct slog *l, const char *fmt, ...) _printf_(2, 3);

/* Bytes from a source ("kernel", "console"), of any shape: whole lines are written, the rest is kept (up to 1 KiB) until
 * its end comes. carry is the caller's, one for each source. */
struct slog_carry {
	char p[1024];
	size_t n;
};
void slog_bytes(struct slog *l, struct slog_carry *carry, const char *source, const void *p,
		size_t len);
