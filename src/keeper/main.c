/* bac-keeper: holds what the sandbox must not have, the values of credentials and the key of its authority, and gives out what may be given. Started
 * by the minder with an empty root, no network, as the user, without arguments, and with these descriptors:
 *
 *   2  a line when it dies
 *   3  the supervisor, 4 the minder (wire/keeper.h)
 *
 * The order is the argument:
 *   begin   should drop what was inherited
 *   open    should make all that has to be made by calls that will be given up, and have libcrypto do each thing once: it makes up its
 *           mind about a machine when it is first asked; mustn't have read a byte of a proxy
 *   seal    should give up every call but the listed ones
 *   serve   the first code that sees a proxy's bytes */
#include <openssl/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "io/fd.h"
#include "keeper/keeper.h"
#include "keeper/seal.h"
#include "keeper/vault.h"
#include "seal/seal.h"

enum { FD_SUPERVISOR = 3, FD_MINDER = 4 };

static int begin(struct err *e)
{
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	r = seal_begin();
	if (r < 0)
		return err_errno(e, r, "cannot begin");
	for (int fd = FD_SUPERVISOR; fd <= FD_MINDER; fd++)
		if (fd_cloexec(fd, true) < 0)
			return err_set(e, -EBADF, "started by bac, not by hand");
	(void)close_range(FD_MINDER + 1, ~0U, 0);
	return 0;
}

/* The first message; its texts borrow from bytes. */
static int config(struct keeper_msg *ret, uint8_t *bytes, size_t max, struct err *e)
{
	ssize_t n = recv(FD_SUPERVISOR, bytes, max, 0);

	if (n <= 0 || keeper_parse(ret, 'S', bytes, (size_t)n, 0) != WIRE_OK ||
	    ret->type != KEEPER_CONFIG)
		return err_set(e, -EPROTO, "the supervisor's orders are not understood");
	return 0;
}

static int try_all(const char *sandbox)
{
	const struct host h = { .kind = HOST_NAME, .text = "try.invalid" };
	const struct scope s = { 0 };
	_cleanup_(ca_freep) struct ca *c = NULL;
	struct ca_leaf l;
	int64_t now = (int64_t)(fd_real_ns() / 1000000000);
	int r = ca_new(sandbox, &c);

	if (r == 0)
		r = ca_renew(c, &s, now);
	return r == 0 ? ca_leaf(c, &h, now, &l) : r;
}

static int open_all(struct keeper *k, struct err *e)
{
	uint8_t bytes[4096];
	struct keeper_msg m;
	int r = config(&m, bytes, sizeof(bytes), e);

	if (r < 0)
		return r;
	tzset(); /* libcrypto asks for the date, and libc then for the zone */
	if (!OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL))
		r = -EIO;
	if (r == 0)
		r = vault_open();
	if (r == 0)
		r = try_all(m.text);
	if (r == 0)
		r = keeper_open(k, m.text, FD_SUPERVISOR, FD_MINDER);
	return r < 0 ? err_errno(e, r, "cannot make the sandbox's authority") : 0;
}

static int run(struct keeper *k, struct err *e)
{
	const struct keeper_msg ready = { .type = KEEPER_READY };
	int r = begin(e);

	if (r == 0)
		r = open_all(k, e);
	if (r < 0)
		return r;
	r = seal();
	if (r < 0)
		return err_errno(e, r, "cannot seal");
	r = peer_send(&k->supervisor, &ready);
	if (r == 0)
		r = keeper_serve(k);
	return r < 0 ? err_errno(e, r, "the supervisor was not understood") : 0;
}

int main(void)
{
	static struct keeper k;
	struct err e = { 0 };
	int r = run(&k, &e);

	if (r < 0) {
		char line[ERR_MSG_MAX + 16];
		int n = snprintf(line, sizeof(line), "bac-keeper: %s\n", e.msg);

		if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0)
			return 2;
	}
	_exit(r < 0); /* the kernel wipes what it takes back */
}
