#pragma once
/* Making sure that a sandbox runs. */
#include "cli/ctx.h"
#include "cli/door.h"

/* Set by --accel: NULL, "kvm" or "tcg". */
struct start_opts {
	const char *accel;
	bool quiet; /* no word about emulation */
	bool maker; /* of an installation (cli/kit-install.h): no name, no logins, nothing of its kits */
	bool first;     /* it is being created: its kits are applied */
	bool installed; /* with first: their installation is on the disk already */
};

/* Start it unless it runs, wait until its guest is ready, and connect. One supervisor however many
 * commands try at once. 0, or -Exxx with a message. */
int start_sandbox(struct ctx *c, const struct sandbox *b, const struct start_opts *o,
		  struct door *ret, struct err *e) _must_check_;

/* The same for a caller that holds the sandbox's lock: lock_fd is consumed. */
int start_locked(struct ctx *c, const struct sandbox *b, const struct start_opts *o, int lock_fd,
		 struct door *ret, struct err *e) _must_check_;

/* Would a sandbox of this template (b's name and tmpl are read) be emulated, by a QEMU that runs all of its processors
 * on one thread (vm_probe.tcg_safe)? accel as in start_opts. 1, 0, or -Exxx with a message. */
int start_one_thread(struct ctx *c, const struct sandbox *b, const char *accel, struct err *e)
	_must_check_;

/* Send one share to whoever holds the other end of sock: its description and, unless it is taken away, the
 * folder itself. Fails if the folder is not there. */
int start_share(int sock, const struct box_share *p, bool umount, struct err *e) _must_check_;

/* Connect if it runs; 1 if it does not. */
int start_connect(struct ctx *c, const struct sandbox *b, uint64_t deadline, struct door *ret,
		  struct err *e) _must_check_;
