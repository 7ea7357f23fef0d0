#pragma once
/* Secrets in what leaves the guest by a stream (output of commands, copies): told once for each stream; or, with `leak_refuse` in the orders, the stream
 * ends there. The workspace server does the same for files (wire/share.h). Marks come from the keeper; without them nothing is looked at. */
#include "supervisor/sup.h"

/* Bytes of a leak_set, in the place of the earlier ones: ours, and the workspace server's. 0, -EPROTO, -ENOMEM: then those before stay. */
int sup_marks_set(struct sup *s, const uint8_t *p, size_t n);
void sup_marks_free(struct sup *s);
/* To the workspace server, if it could not take them before. */
void sup_marks_again(struct sup *s);

/* Stars in a text for the log where a secret is, or has begun at its end. */
void sup_marks_blank(const struct sup *s, char *text);

/* Data of the guest on channel 1 or 2. What may go on is given to pass(), in pieces of at most WIRE_FRAME_MAX; with leak_refuse bytes that have begun like a secret wait until it is clear. NULL: fine; else the name of a secret in it,
 * for which the stream is to end: nothing more of it goes on. */
const char *sup_marks_data(struct sup *s, struct stream *st, uint8_t chan, const uint8_t *p,
			   size_t n,
			   void (*pass)(struct sup *s, struct stream *st, uint8_t chan,
					const uint8_t *p, size_t n));
/* No more comes on that channel: what waits goes on. */
void sup_marks_end(struct sup *s, struct stream *st, uint8_t chan,
		   void (*pass)(struct sup *s, struct stream *st, uint8_t chan, const uint8_t *p,
				size_t n));
void sup_marks_stream_free(struct stream *st);
