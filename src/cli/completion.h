#pragma once
/* Completion scripts for three shells, printed from the option tables.
 *
 * They complete commands, options, and words whose kind the tables name: SANDBOX (the names that
 * "bac ls -q" prints), FILE and PATH, SRC and DST of a copy (files, or a sandbox with a
 * colon), and choices in small letters ("kvm|tcg"). */
#include "base/opt.h"

/* Each prints a whole script. cmds ends with a NULL name. 0, -ENOBUFS or -ENOMEM. */
int completion_bash(struct buf *out, const struct cmd *cmds) _must_check_;
int completion_zsh(struct buf *out, const struct cmd *cmds) _must_check_;
int completion_fish(struct buf *out, const struct cmd *cmds) _must_check_;
