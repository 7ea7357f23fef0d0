#pragma once
/* The host's own resolver configuration, as a sealed process cannot read it: /etc/resolv.conf and /etc/hosts, and the files
 * that they are links to. Changes are seen by inotify(7): no wake-up while nothing changes. */
#include "base/base.h"

enum { RESOLVER_WATCHES = 24 };

struct resolver {
	int notes; /* inotify: readable when something may have changed; -1: no news will come */
	unsigned n;
	struct {
		int wd;
		char name[256]; /* "": the watched file itself */
	} at[RESOLVER_WATCHES];
};
#define RESOLVER_INIT \
	{ \
		.notes = -1 \
	}

/* Watch both files where they are now; also again, after a change: links may lead elsewhere. */
void resolver_watch(struct resolver *v);

/* Take the news. True if some of it is about a file that is watched. */
bool resolver_news(struct resolver *v);

/* The text of both, on the heap, never NULL unless there is no memory; "" for what is not there or longer than max. */
char *resolver_conf(size_t max);
char *resolver_hosts(size_t max);
