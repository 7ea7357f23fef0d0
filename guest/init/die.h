#pragma once
/* What PID 1 says to the kernel's log, and how it ends when it cannot go on. */
#include "base/err.h"

struct port;

/* The port on which die() says FAIL, and the directory of the initramfs' root, below which disk/ is
 * the writable file system; either may not be there yet (NULL, -1). */
void die_know(struct port *p, int old_root);

/* One line into the kernel's log, from where it also reaches the host. */
void die_note(const char *fmt, ...) _printf_(1, 2);

/* Say why, on the console and to the host, write the disk's data out and turn the machine off. */
void die(const char *fmt, ...) _printf_(1, 2) _noreturn_;

/* For what fails only when memory is out. */
static inline void die_check(int r)
{
	if (r < 0)
		die("init cannot go on: %s", err_text(r));
}

/* If PID 1 crashes the kernel panics; say so first. */
void die_catch_crashes(void);

/* Turn the machine off, now. */
void die_power_off(void) _noreturn_;
