#pragma once
/* The Docker Engine of the image, as a service of sockets.h. */
#include "guest/init/boot.h"

/* True if the root has one. */
bool engine_there(void);

/* For a child: make ready what it needs, and become it with the listening socket on descriptor 3 (sd_listen_fds(3)). notify: a name in the
 * abstract namespace, to which it says when it is ready (sd_notify(3)). Returns only on failure: -errno, with a message. */
int engine_run(const struct boot *b, const char *notify, struct err *e);

/* For a child: the last thing that it wrote into its log; "" if there is none. */
void engine_last_words(char *dst, size_t max);
