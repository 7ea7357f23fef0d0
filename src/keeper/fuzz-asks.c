/* A conversation of a proxy, with answers of bac-fetch in between: each message is a byte that says whose, be16 length, and its bytes. Whatever is asked, a value is told only
 * to who asked for a use of its host, and a certificate is made only for what is opened. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rdwr.h"
#include "io/fd.h"
#include "keeper/keeper.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static const char cred[] =
	"bac-credentials 1\n"
	"u1\theader\tready\tuser\tsvc\tglobal/service/"
	"svc\tapi.example\tauthorization\tBearer %s\t-\t-\t-\t-\t-\t-\n"
	"t1\ttoken\tready\tuser\tsvc\tglobal/oauth/svc.refresh\tauth.example\t-\t-\t-\t"
	"refresh-proxy-managed\taccess-proxy-managed\t-\t/token\t"
	"access_token,refresh_token,expires_in,scope\n"
	"end 2\n";

static struct keeper k;
static int sup, proxy, fetch;

static int pair(int *ret_ours)
{
	int p[2];

	check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p) == 0);
	*ret_ours = p[0];
	return p[1];
}

static void order(char from, uint8_t type, int fd)
{
	const struct keeper_msg m = { .type = type, .number = 1 };

	check(keeper_order(&k, from, &m, fd) == 0);
}

static void begin(void)
{
	int fd = memfd_create("cred", MFD_CLOEXEC), ours = pair(&sup);

	check(fd >= 0 && fd_write_all(fd, cred, sizeof(cred) - 1) == 0);
	check(keeper_open(&k, "web", ours, -1) == 0);
	order('M', KEEPER_FETCH, pair(&fetch));
	order('M', KEEPER_PROXY, pair(&proxy));
	order('S', KEEPER_CREDENTIALS, fd);
	check(cred_at(k.judge.cred, 1));
}

static void discard(int fd, bool to_proxy)
{
	static uint8_t bytes[KEEPER_MSG_MAX];
	struct keeper_msg m;
	ssize_t n;

	while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0) {
		check(keeper_parse(&m, 'K', bytes, (size_t)n, 0) == WIRE_OK);
		check(to_proxy == (m.type >= KEEPER_LEAF_IS && m.type <= KEEPER_KEPT));
	}
}

static void one(bool by_fetch, const uint8_t *p, size_t n)
{
	struct keeper_msg m;
	int r;

	if (keeper_parse(&m, by_fetch ? 'F' : 'P', p, n, 0) != WIRE_OK)
		return;
	r = by_fetch ? asks_answer(&k, &m) : asks_take(&k, &m);
	if (!by_fetch && r == -EPROTO)
		check(k.why[0]);
	discard(fetch, false);
	discard(proxy, true);
}

/* A process serves all inputs: making an authority takes longer than asking it. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct rd r = rd_init(p, n);

	if (!k.ca)
		begin();
	asks_proxy_gone(&k);
	asks_credentials(&k);
	discard(fetch, false);
	while (r.n && !r.bad) {
		bool by_fetch = rd_u8(&r) & 1;
		uint16_t len = rd_be16(&r);
		const uint8_t *at = rd_take(&r, MIN((size_t)len, r.n));

		if (at)
			one(by_fetch, at, MIN((size_t)len, (size_t)(p + n - at)));
	}
	while (recv(sup, &(char) { 0 }, 1, 0) > 0)
		;
	return 0;
}
