#pragma once
/* What a sandbox promises, made in a root that bac did not build: docs/templates.md, "What an image gets". */
#include "base/err.h"

enum { CONTRACT_NOTE_MAX = 256 };

/* Make it in the root (a directory), once: at a disk's first start. base is the root of our own template, of which the root gets
 * what it lacks and a file can give, or -1. Waits for nothing but disks, whatever stands in the root. note: what is missing, for the user, with the sandbox's
 * name in what to do about it; "" if nothing is. 0, or -ENOEXEC with a message: nothing can be run in it. What cannot be written is noted in
 * the kernel's log. */
int contract_make(int root, int base, const char *name, char note[CONTRACT_NOTE_MAX], struct err *e)
	_must_check_;
