#pragma once
/* The sandbox's network as the supervisor sees it: a minder (minder.h), a proxy and bac-audit. With `network 0` in the orders there is
 * none of it, and every function does nothing. */
#include "supervisor/sup.h"
#include "wire/share.h"

struct netdoor; /* all of it */

/* Fork the minder, which starts the rest meanwhile. Before the seal. 0, or -Exxx with a message. */
int sup_net_start(struct sup *s, struct err *e) _must_check_;

/* Wait for QEMU's end of the wire: *ret_tap is borrowed until sup_net_watch(); 0 where there is no network. */
int sup_net_tap(struct sup *s, int *ret_tap, struct err *e) _must_check_;

/* Wait until proxy and audit have been started, and hear what they say from here on. The last step before the seal. */
int sup_net_watch(struct sup *s, struct err *e) _must_check_;

/* POLICY of a client. False: it broke the protocol. */
bool sup_net_policy(struct client *c, const struct wire_frame *f);
/* CREDENTIALS of a client, likewise. */
bool sup_net_credentials(struct client *c, const struct wire_frame *f);
/* With the answer to HELLO: what the guest is to trust, and its environment. 0, -ENOBUFS, -ENOMEM. */
int sup_net_config(struct sup *s) _must_check_;
void sup_net_client_gone(struct client *c);

/* Onto the chain of receipts: what the workspace server refused (path: absolute). What cannot be
 * written now is lost: nothing waits for it. */
void sup_net_refused(struct sup *s, const struct share_refused *m, const char *path);

/* What a stream carried out of the guest: a secret of that name. copy: what is a path, else a command. refused: it was cut there. */
void sup_net_leaked(struct sup *s, bool copy, const char *what, const char *name, bool refused);

/* The last thing that went wrong and was mended, for people; "" if there was none. */
const char *sup_net_remark(const struct sup *s);

/* True if it was the minder that ended. */
bool sup_net_reap(struct sup *s);
/* End it all, what is on its way to the log included; waits for that, a moment. */
void sup_net_end(struct sup *s);
void sup_net_free(struct sup *s);
