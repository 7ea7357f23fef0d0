#pragma once
/* Between the two queues and the file system: takes requests out of the rings, hands them over, puts the
 * answers back, at once or later. */
#include "workspace/fs.h"
#include "workspace/vhost.h"

struct request;

struct queues {
	struct vhost *vhost; /* borrowed, as is fs */
	struct fs *fs;
	bool more[VHOST_QUEUES];   /* something may be in the ring: to be drained without waiting */
	bool pushed[VHOST_QUEUES]; /* answers that the guest was not told of */
	unsigned said;             /* broken rings that were told of */
	struct request *spare;     /* not in use, for the next ones */
	size_t n_spare;
	struct request *held;  /* answered while their queue was stopped */
	struct request *later; /* with the file system */
};

void queues_init(struct queues *q, struct vhost *vhost, struct fs *fs);

/* Frees what is with the file system too: only after fs_free(). */
void queues_done(struct queues *q);

/* Serve up to a fixed number of requests of one queue; q->more[queue] says whether to come again at once. A
 * ring that is broken is left alone until a driver starts it anew; the first few are told on stderr. */
void queues_drain(struct queues *q, size_t queue);

/* The file system has answers: into the rings with them. */
void queues_completed(struct queues *q);

/* The front-end changed something: queues may have started. */
void queues_changed(struct queues *q);
