/* Whatever has come is taken up, written with one flush, and answered; what comes meanwhile is the next round's. So the rate of
 * writes follows the load, and one record alone is answered at once.
 *
 * Head follows within a tenth of a second: then each round is one write less.
 *
 * While the log cannot be written nothing is read: the peers' sockets fill up, and they wait. What was taken up stays in
 * memory and is tried again each second. */
#include "audit/serve.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/err.h"
#include "wire/frame.h"

enum { RETRY_MS = 1000, HEAD_MS = 100 };
enum who { PROXY, SUPERVISOR, PEERS };

static const char *const names[PEERS] = { "proxy", "supervisor" };

struct peer {
	int fd;           /* -1: it hung up */
	uint64_t written; /* records */
	uint64_t taken;   /* records that are taken up and not yet written */
	bool ack_due;
};

struct serve {
	struct audit_chain *chain; /* borrowed */
	struct peer peer[PEERS];
	int alarm;        /* the errno that holds us up, positive; 0: all is well */
	bool alarm_due;   /* the supervisor has not been told of it */
	uint64_t head_at; /* when head is to be written, monotonic ns; 0: it is */
	int end;          /* 1: go on; else what serve_run() returns */
	uint8_t in[RECEIPT_DATAGRAM_MAX];
};

static void hang_up(struct serve *s, enum who who)
{
	if (who == PROXY)
		s->peer[who].fd = fd_close(s->peer[who].fd);
	else
		s->end = MIN(s->end, 0);
	s->peer[who].ack_due = false;
}

/* One answer. True: it went. */
static bool tell(struct serve *s, enum who who, const struct receipt_answer *a)
{
	uint8_t p[RECEIPT_ANSWER_MAX];
	const size_t n = receipt_answer_put(a, p);

	if (s->peer[who].fd < 0 ||
	    send(s->peer[who].fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n)
		return true;
	if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR)
		return false;
	hang_up(s, who);
	return true;
}

/* What is due and can be said without waiting. */
static void tell_all(struct serve *s)
{
	char text[200];

	if (s->alarm_due) {
		const struct receipt_answer a = { .alarm = true,
						  .code = (uint32_t)s->alarm,
						  .text = s->alarm ? text
								   : "the log is written again" };

		(void)snprintf(
			text, sizeof(text),
			"the log cannot be written (%s): nothing new is allowed until it can",
			err_text(s->alarm));
		s->alarm_due = !tell(s, SUPERVISOR, &a);
	}
	for (enum who i = 0; i < PEERS; i++)
		if (s->peer[i].ack_due)
			s->peer[i].ack_due = !tell(
				s, i, &(struct receipt_answer) { .count = s->peer[i].written });
}

static void flush(struct serve *s)
{
	const uint64_t now = fd_now_ns();
	const bool head = s->alarm || (s->head_at && now >= s->head_at);
	const int r = head ? audit_chain_settle(s->chain) : audit_chain_flush(s->chain);

	if (audit_chain_settled(s->chain))
		s->head_at = 0;
	else if (!s->head_at)
		s->head_at = now + HEAD_MS * 1000000ULL;
	s->alarm_due |= s->alarm != -r;
	s->alarm = -r;
	for (enum who i = 0; r == 0 && i < PEERS; i++) {
		s->peer[i].ack_due |= s->peer[i].taken > 0;
		s->peer[i].written += s->peer[i].taken;
		s->peer[i].taken = 0;
	}
}

/* All records of a datagram, or none. WIRE_OK or WIRE_E_MALFORMED. */
static int take_records(struct serve *s, struct peer *p, size_t n)
{
	struct rd in = rd_init(s->in, n);
	struct receipt r;
	size_t k = 0;
	uint64_t now;

	for (; in.n; k++)
		if (k == RECEIPT_BATCH || receipt_get(&in, &r) != WIRE_OK)
			return WIRE_E_MALFORMED;
	now = fd_real_ns();
	in = rd_init(s->in, n);
	while (in.n && receipt_get(&in, &r) == WIRE_OK)
		if (audit_chain_add(s->chain, &r, now) < 0)
			return WIRE_E_MALFORMED; /* out of memory: hang up rather than lose one */
	p->taken += k;
	return WIRE_OK;
}

static void not_understood(struct serve *s, enum who who)
{
	char text[100];

	(void)snprintf(text, sizeof(text), "a message of the %s was not understood: hung up",
		       names[who]);
	if (audit_chain_note(s->chain, text, fd_real_ns()) < 0)
		s->end = MIN(s->end, -ENOMEM);
	if (who == SUPERVISOR)
		s->end = -EPROTO;
	hang_up(s, who);
}

static void new_proxy(struct serve *s, int fd)
{
	(void)fd_close(s->peer[PROXY].fd);
	s->peer[PROXY] = (struct peer) { .fd = fd };
}

/* One datagram. False: there is none for now. */
static bool take(struct serve *s, enum who who)
{
	struct peer *p = &s->peer[who];
	_close_ int fd = -1;
	ssize_t n;

	n = fd_receive_with(p->fd, s->in, sizeof(s->in), MSG_DONTWAIT | MSG_TRUNC, &fd);
	if (n == -EAGAIN || n == -EINTR)
		return false;
	if (n <= 0) {
		hang_up(s, who);
		return false;
	}
	if (who == SUPERVISOR && n == 1 && s->in[0] == RECEIPT_NEW_PROXY && fd >= 0) {
		new_proxy(s, take_fd(&fd));
		return true;
	}
	if (fd >= 0 || (size_t)n > sizeof(s->in) || take_records(s, p, (size_t)n) != WIRE_OK) {
		not_understood(s, who);
		return false;
	}
	return true;
}

static int patience(const struct serve *s)
{
	const uint64_t now = s->head_at ? fd_now_ns() : 0;

	if (s->alarm)
		return RETRY_MS;
	if (!s->head_at)
		return -1;
	return now >= s->head_at ? 0 : (int)((s->head_at - now) / 1000000) + 1;
}

static int wait_for(struct serve *s, struct pollfd f[PEERS])
{
	for (enum who i = 0; i < PEERS; i++) {
		const bool out = s->peer[i].ack_due || (i == SUPERVISOR && s->alarm_due);

		f[i] = (struct pollfd) { .fd = s->peer[i].fd };
		f[i].events = (short)((s->alarm ? 0 : POLLIN) | (out ? POLLOUT : 0));
	}
	if (poll(f, PEERS, patience(s)) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

static void round_once(struct serve *s, const struct pollfd f[PEERS])
{
	for (enum who i = 0; i < PEERS; i++) {
		/* the supervisor may have brought another proxy */
		const bool ready =
			f[i].revents & (POLLIN | POLLHUP | POLLERR) && f[i].fd == s->peer[i].fd;

		if (s->alarm && f[i].revents & (POLLHUP | POLLERR) && ready)
			hang_up(s, i);
		while (ready && !s->alarm && s->peer[i].fd >= 0 && audit_chain_roomy(s->chain) &&
		       take(s, i))
			;
	}
	if (s->alarm || !audit_chain_settled(s->chain))
		flush(s);
	tell_all(s);
}

int serve_run(struct audit_chain *chain, int proxy_fd, int supervisor_fd)
{
	struct serve *s = calloc(1, sizeof(*s));
	struct pollfd f[PEERS];
	int r;

	if (!s)
		return -ENOMEM;
	s->chain = chain;
	s->end = 1;
	s->peer[PROXY].fd = proxy_fd;
	s->peer[SUPERVISOR].fd = supervisor_fd;
	flush(s); /* notes about what was found */
	tell_all(s);
	while (s->end == 1) {
		r = wait_for(s, f);
		if (r < 0)
			s->end = r;
		else
			round_once(s, f);
	}
	r = s->end;
	(void)fd_close(s->peer[PROXY].fd);
	free(s);
	return r;
}
