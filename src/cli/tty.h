#pragma once
/* The user's terminal in raw mode, and its return to what it was, whatever becomes of us. */
#include "base/base.h"

struct tty;

/* Put the terminal on fd into raw mode. A small watcher process puts it back should this process be
 * killed. 0 or -errno. */
int tty_raw(int fd, struct tty **ret) _must_check_;

/* Back to what it was; ends the watcher. NULL is fine. */
struct tty *tty_restore(struct tty *t);

/* Rows and columns of the terminal on fd; 24 and 80 if it does not say. */
void tty_size(int fd, uint16_t *ret_rows, uint16_t *ret_cols);
