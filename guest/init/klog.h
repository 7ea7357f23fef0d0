#pragma once
/* The kernel's log, on its way to the host. */
#include "guest/init/loop.h"
#include "guest/init/port.h"

enum {
	KLOG_BURST = 64 * 1024, /* bytes at once; then */
	KLOG_RATE = 4 * 1024,   /* bytes a second */
	KLOG_FRAME = 4 * 1024,
};

struct klog {
	struct watch w;
	struct timer refill;
	struct loop *loop;
	struct port *port;
	uint64_t tokens;   /* bytes that may be sent */
	uint64_t filled;   /* when tokens were counted last */
	uint64_t next_seq; /* of the record that should come next */
	uint64_t lost;     /* records that were overwritten before we read them */
	bool paused;
};

/* Forward all records from the beginning. Failure is only noted. */
void klog_start(struct klog *k, struct loop *l, struct port *p);

/* One record of /dev/kmsg ("6,339,5140900,-;text", then lines of properties) as "[    5.140900] text\n"
 * into dst. The length; 0 if it is not a record. *ret_seq is set if it is. */
size_t klog_format(char *dst, size_t max, const char *record, size_t n, uint64_t *ret_seq);
