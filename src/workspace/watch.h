#pragma once
/* What the host changes in folders that the guest has listed, so that the guest's kernel can be told.
 *
 * inotify(7) on the host: at most WATCH_MAX folders, the least recently listed go first; less where the
 * user's limit is lower. No polling: nothing happens while nobody changes anything. */
#include "workspace/fs-priv.h"

#define WATCH_MAX 8192u

struct watches;

/* NULL where the host has no inotify instance left: the guest is then told of nothing. */
struct watches *watch_new(void);
struct watches *watch_free(struct watches *w);
int watch_fd(const struct watches *w); /* -1 for NULL */

/* The guest lists this directory; fd is open on it. */
void watch_dir(struct fs *f, const struct node *n, int fd);

/* The guest's own kernel knows of what it did by this call, which went well: no news. */
void watch_own(struct fs *f, const struct call *c);

/* Read what has come and pass it on to the hook of fs_config. */
void watch_read(struct fs *f);
