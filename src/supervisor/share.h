#pragma once
/* The file server beside QEMU, and the shares that it serves. */
#include "supervisor/sup.h"

/* Start bac-workspace in its cage and give it the shares that come on descriptor 6, the path rules of the
 * orders and START. Before the seal; waits for its answers. *ret_vhost is QEMU's end, the caller's; log_fd
 * (borrowed) takes its dying words. 0, or -Exxx with a message. */
int sup_share_start(struct sup *s, int log_fd, int *ret_vhost, struct err *e) _must_check_;

/* From here on its words are heard. */
int sup_share_watch(struct sup *s, struct err *e) _must_check_;

/* True if it was the server that ended. */
bool sup_share_reap(struct sup *s);
/* End it and wait for that; nothing else may use it any more. */
void sup_share_end(struct sup *s);
void sup_shares_free(struct sup *s);

/* The MOUNT of each share, and START, behind CONFIG. 0, -ENOBUFS, -ENOMEM. */
int sup_share_config(struct sup *s) _must_check_;
/* Marks of secrets (bytes of a leak_set) for the server. 0, -EAGAIN: not now; or another errno. */
int sup_share_marks(struct sup *s, const uint8_t *p, size_t n, bool refuse) _must_check_;

/* MOUNTED. False: it broke the protocol. */
bool sup_share_mounted(struct sup *s, const struct wire_frame *f);

/* MOUNT and UMOUNT of a client. False: it broke the protocol. */
bool sup_share_mount(struct client *c, const struct wire_frame *f);
bool sup_share_umount(struct client *c, const struct wire_frame *f);
void sup_share_client_gone(struct client *c);
