/* bac-proxy: the only wire out of one sandbox. Started by the minder with an empty root, in the host's network, and these descriptors:
 *
 *   2        a line when it dies
 *   3, 4     the supervisor and the minder (wire/proxy.h)
 *   5        bac-audit (wire/receipt.h)
 *   6 to 9   sockets of the sandbox's network: TCP to anywhere, DNS by TCP and by UDP, packets that were dropped
 *
 * The order is the argument:
 *   begin   should drop what it does not need; mustn't read anything foreign
 *   orders  should read what to do
 *   open    should make what has to be made by calls that will be given up; mustn't have read a byte of the guest
 *   seal    should give up every call but the listed ones
 *   serve   the first code that sees guest bytes */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/fd.h"
#include "proxy/accept.h"
#include "proxy/control.h"
#include "proxy/dns-serve.h"
#include "proxy/dropped.h"
#include "proxy/keeper.h"
#include "proxy/pool.h"
#include "proxy/resolve.h"
#include "proxy/seal.h"
#include "proxy/tls.h"
#include "seal/seal.h"

static int begin(struct proxy *p, struct err *e)
{
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	for (int fd = FD_SUPERVISOR; fd <= FD_PACKET; fd++)
		if (fd_cloexec(fd, true) < 0)
			return err_set(e, -EBADF, "bac-proxy is started by bac, not by hand");
	(void)close_range(FD_PACKET + 1, ~0U, 0);
	/* what is accepted or received in a loop must not wait when there is no more */
	for (int fd = FD_TCP; fd <= FD_PACKET; fd++)
		if (fd_nonblock(fd, true) < 0)
			return err_set(e, -EBADF, "cannot use descriptor %d", fd);
	r = seal_begin();
	if (r < 0)
		return err_errno(e, r, "cannot begin");
	p->relay.scratch = malloc(SCRATCH_MAX);
	return p->relay.scratch ? 0 : err_errno(e, -ENOMEM, "cannot begin");
}

/* Without a log there is no traffic: another proxy will be started, when there is one. */
static void audit_gone(void *arg)
{
	struct proxy *p = arg;

	control_say(p, "the proxy ends: the log is gone");
	uv_stop(&p->loop.uv);
}

static void audit_room(void *arg)
{
	accept_room(arg);
}

static void keeper_says(void *arg, const char *line)
{
	control_say(arg, "%s", line);
}

static int open_all(struct proxy *p, struct err *e)
{
	int r;

	/* before the seal: what libraries do once, and are not permitted later */
	tls_prepare();
	r = loop_open(&p->loop);
	if (r == 0)
		r = resolver_new(&p->loop, &p->resolver);
	p->trust_fd = -1;
	if (r == 0)
		r = keeper_new(&p->loop, keeper_says, p, &p->keeper);
	if (r == 0)
		r = pool_new(p, &p->pool);
	if (r < 0)
		return err_errno(e, r, "cannot make the event loop");
	r = control_orders(p, e);
	if (r < 0)
		return r;
	r = names_new(p->generation, &p->names);
	if (r == 0)
		r = receipts_new(&p->loop, FD_AUDIT, (uint64_t)p->generation << 40, audit_gone,
				 audit_room, p, &p->receipts);
	if (r == 0)
		r = control_open(p);
	if (r == 0)
		r = dns_open(p);
	if (r == 0)
		r = dropped_open(p);
	if (r == 0)
		r = accept_open(p);
	return r < 0 ? err_errno(e, r, "cannot take the sockets over") : 0;
}

static int run(struct proxy *p, struct err *e)
{
	int r;

	r = begin(p, e);
	if (r == 0)
		r = open_all(p, e);
	if (r < 0)
		return r;
	r = seal();
	if (r < 0)
		return err_errno(e, r, "cannot seal the proxy");
	r = control_ready(p);
	if (r < 0)
		return err_errno(e, r, "the supervisor does not listen");
	(void)uv_run(&p->loop.uv, UV_RUN_DEFAULT);
	receipts_flush(p->receipts);
	return 0;
}

int main(void)
{
	struct proxy *p = calloc(1, sizeof(*p));
	struct err e = { 0 };
	int r = p ? run(p, &e) : err_errno(&e, -ENOMEM, "cannot begin");

	if (r < 0) {
		char line[ERR_MSG_MAX + 16];
		int n = snprintf(line, sizeof(line), "bac-proxy: %s\n", e.msg);

		if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0)
			return 2;
	}
	_exit(r < 0); /* the kernel takes back what is open: nothing is worth being taken apart */
}
