/* bac-audit: writes the log of one sandbox (docs/protocol/audit.md). It takes no arguments, and is started with an empty root, no
 * network, as the user, and with these descriptors:
 *
 *   2  a line when it dies
 *   3  its orders: a file that is read from its start (struct receipt_order, wire/receipt.h), as receipt_order_put() writes it
 *   4  the directory of the log, state/audit/ID, mode 0700, on a mount that can be written; O_PATH is enough
 *   5  the proxy, SOCK_SEQPACKET (wire/receipt.h); not a socket (/dev/null): there is none yet
 *   6  the supervisor, likewise; it may send another proxy's socket (RECEIPT_NEW_PROXY). When it hangs up, bac-audit ends
 *
 * It exits with 0 then, with 1 if it could not begin or a message of the supervisor was not understood. -EBUSY at its start means
 * that the one before has not ended yet.
 *
 * The order of the stages is the argument:
 *   begin   should drop what was inherited
 *   orders  should read what to do
 *   open    should take up the chain where it ends; it reads files that somebody may have tampered with
 *   seal    should give up everything but the listed system calls
 *   serve   the first code that sees a peer's bytes */
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "audit/seal.h"
#include "audit/serve.h"
#include "base/err.h"
#include "seal/seal.h"
#include "wire/frame.h"

enum { FD_ORDERS = 3, FD_DIR = 4, FD_PROXY = 5, FD_SUPERVISOR = 6 };

static int begin(struct err *e)
{
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	r = seal_begin();
	if (r < 0)
		return err_errno(e, r, "cannot begin");
	for (int fd = FD_ORDERS; fd <= FD_SUPERVISOR; fd++)
		if (fd_cloexec(fd, true) < 0)
			return err_set(e, -EBADF, "started by bac, not by hand");
	(void)close_range(FD_SUPERVISOR + 1, ~0U, 0);
	return 0;
}

/* Texts borrow from p. */
static int orders(struct receipt_order *ret, uint8_t p[static RECEIPT_ORDER_MAX], struct err *e)
{
	ssize_t n = pread(FD_ORDERS, p, RECEIPT_ORDER_MAX, 0);

	(void)fd_close(FD_ORDERS);
	if (n < 0 || receipt_order_get(ret, p, (size_t)n) != WIRE_OK)
		return err_set(e, -EPROTO, "the orders are not understood");
	return 0;
}

static int open_chain(const struct receipt_order *o, struct audit_chain **ret, struct err *e)
{
	const struct audit_config c = { .sandbox = o->sandbox,
					.file_size = o->file_size,
					.total_size = o->total_size };
	int r = audit_chain_open(FD_DIR, &c, ret);

	return r < 0 ? err_errno(e, r, "cannot take up the log of '%s'", o->sandbox) : 0;
}

/* -1: none yet. */
static int proxy_fd(void)
{
	int type;
	socklen_t n = sizeof(type);

	if (getsockopt(FD_PROXY, SOL_SOCKET, SO_TYPE, &type, &n) == 0)
		return FD_PROXY;
	return fd_close(FD_PROXY);
}

static int run(struct err *e)
{
	_cleanup_(audit_chain_closep) struct audit_chain *chain = NULL;
	uint8_t bytes[RECEIPT_ORDER_MAX];
	struct receipt_order o;
	int r, proxy;

	r = begin(e);
	if (r == 0)
		r = orders(&o, bytes, e);
	if (r == 0)
		r = open_chain(&o, &chain, e);
	if (r < 0)
		return r;
	proxy = proxy_fd();
	r = seal();
	if (r < 0)
		return err_errno(e, r, "cannot seal");
	r = serve_run(chain, proxy, FD_SUPERVISOR);
	return r < 0 ? err_errno(e, r, "the supervisor was not understood") : 0;
}

int main(void)
{
	struct err e;

	if (run(&e) == 0)
		return 0;
	(void)dprintf(STDERR_FILENO, "bac-audit: %s\n", e.msg);
	return 1;
}
