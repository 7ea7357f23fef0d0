/* The kernel's log is a ring: what is not read in time is overwritten. That is how a guest that prints
 * without end is held back here: beyond its budget we stop reading, and later count what is missing. */
#include "guest/init/klog.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "guest/init/die.h"
#include "io/fd.h"

enum {
	RECORD_MAX = 8192,     /* the kernel's own limit */
	QUEUE_MAX = 16 * 1024, /* the log waits while more than this waits for the port */
	REFILL_MS = 1000,
	START_MS =
		400, /* what a boot has said waits for the first command: to send it takes as long */
};

size_t klog_format(char *dst, size_t max, const char *record, size_t n, uint64_t *ret_seq)
{
	const char *text = memchr(record, ';', n);
	unsigned long long seq, usec;
	char head[96];
	size_t len;
	int k;

	if (!text || (size_t)(text - record) >= sizeof(head))
		return 0;
	memcpy(head, record, (size_t)(text - record));
	head[text - record] = '\0';
	if (sscanf(head, "%*u,%20llu,%20llu", &seq, &usec) != 2)
		return 0;
	text++;
	len = n - (size_t)(text - record);
	if (memchr(text, '\n', len))
		len = (size_t)((const char *)memchr(text, '\n', len) - text);
	k = snprintf(dst, max, "[%5llu.%06llu] ", usec / 1000000, usec % 1000000);
	if (k < 0 || (size_t)k + 2 > max)
		return 0;
	len = MIN(len, max - (size_t)k - 1);
	memcpy(dst + k, text, len);
	dst[(size_t)k + len] = '\n';
	*ret_seq = seq;
	return (size_t)k + len + 1;
}

static void refill(struct klog *k)
{
	uint64_t now = loop_now();
	uint64_t more = (now - k->filled) / 1000000 * KLOG_RATE / 1000;

	if (!more)
		return;
	k->tokens = MIN(k->tokens + more, (uint64_t)KLOG_BURST);
	k->filled = now;
}

static void pause_reading(struct klog *k, bool on)
{
	if (on)
		loop_after(k->loop, &k->refill, REFILL_MS);
	if (on == k->paused)
		return;
	k->paused = on;
	if (loop_rewatch(k->loop, &k->w, on ? 0 : EPOLLIN) < 0)
		die_note("the kernel's log is not forwarded any more");
}

/* Put the note about lost records in front. */
static size_t note_lost(struct klog *k, char *dst, size_t max)
{
	int n;

	if (!k->lost)
		return 0;
	n = snprintf(dst, max, "... %llu lines lost\n", (unsigned long long)k->lost);
	k->lost = 0;
	return n > 0 && (size_t)n < max ? (size_t)n : 0;
}

/* One record, formatted, behind the first n bytes of frame. False: there is none. */
static bool add_record(struct klog *k, char *frame, size_t *n)
{
	char record[RECORD_MAX], line[KLOG_FRAME / 2];
	uint64_t seq;
	ssize_t got;
	size_t len;

	do
		got = read(k->w.fd, record, sizeof(record));
	while (got < 0 && (errno == EPIPE || errno == EINTR)); /* overwritten: the next one */
	if (got <= 0)
		return false;
	len = klog_format(line, sizeof(line), record, (size_t)got, &seq);
	if (!len)
		return true;
	if (seq > k->next_seq)
		k->lost += seq - k->next_seq;
	k->next_seq = seq + 1;
	*n += note_lost(k, frame + *n, KLOG_FRAME - *n);
	memcpy(frame + *n, line, len);
	*n += len;
	return true;
}

static void on_record(struct watch *w, uint32_t events)
{
	struct klog *k = container_of(w, struct klog, w);
	char frame[KLOG_FRAME];
	size_t n = 0;

	(void)events;
	refill(k);
	if (k->tokens < KLOG_FRAME || k->port->out.n + k->port->ctl.n > QUEUE_MAX) {
		pause_reading(k, true);
		return;
	}
	/* room for the longest line and the note before it */
	while (n < KLOG_FRAME / 2 - 64 && add_record(k, frame, &n))
		;
	if (!n)
		return;
	k->tokens -= n;
	die_check(wire_frame_add(&k->port->ctl, 0, WIRE_KLOG, 0, frame, n));
}

static void on_refill(struct timer *t)
{
	pause_reading(container_of(t, struct klog, refill), false);
}

void klog_start(struct klog *k, struct loop *l, struct port *p)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	*k = (struct klog) { .w = { .fd = fd, .fn = on_record }, .loop = l, .port = p };
	k->refill.fn = on_refill;
	k->tokens = KLOG_BURST;
	k->filled = loop_now();
	k->paused = true;
	if (fd >= 0 && loop_watch(l, &k->w, 0) < 0)
		k->w.fd = fd_close(fd);
	if (k->w.fd >= 0)
		loop_after(l, &k->refill, START_MS);
}
