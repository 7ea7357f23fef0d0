#pragma once
/* The loop: supervisor, front-end, queues, late answers. Sleeps whenever there is nothing to do. */
#include "workspace/control.h"

struct server;

/* All that has to be made; not a byte of the front-end is read. vhost_sock and c, which has its file system,
 * stay the caller's and outlive the server. 0, -ENOMEM or -errno. */
int serve_new(struct control *c, int vhost_sock, struct server **ret) _must_check_;

/* Serve until one side goes. 0: the front-end or the supervisor has gone; negative: a conversation broke, and a
 * line on stderr says how. */
int serve_run(struct server *s) _must_check_;

/* Ends c's file system too, whose threads work in the guest's memory. NULL is fine; returns NULL. */
struct server *serve_free(struct server *s);
