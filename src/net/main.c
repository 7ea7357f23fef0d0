/* bac-net: makes the network namespace of one sandbox, with a wire whose one end is QEMU's and whose other ends
 * are the proxy's, sends the ends to its parent, and is gone. Nothing in the namespace leads anywhere else: it has lo
 * and bac0, forwards nothing, and the proxy, which dials from the host's namespace, holds sockets of it and is not in it.
 *
 * As an ordinary user the namespace belongs to a user namespace that maps the user alone; root does without. */
#include <fcntl.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/fd.h"
#include "net/netlink.h"
#include "net/sockets.h"
#include "net/table.h"
#include "sys/cage.h"
#include "wire/net.h"
#include "wire/proxy.h"

enum { TABLE_OF_MARKED = 100 };

static int put_file(const char *path, const char *text)
{
	_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int own_users(void)
{
	char uid[64], gid[64];
	int r;

	(void)snprintf(uid, sizeof(uid), "0 %u 1", geteuid());
	(void)snprintf(gid, sizeof(gid), "0 %u 1", getegid());
	if (unshare(CLONE_NEWUSER) < 0)
		return -errno;
	r = put_file("/proc/self/setgroups", "deny");
	if (r == 0)
		r = put_file("/proc/self/uid_map", uid);
	return r == 0 ? put_file("/proc/self/gid_map", gid) : r;
}

/* Root in a container may lack the power, and has to make users of its own as well. */
static int enter(struct err *e)
{
	int r;

	if (geteuid() == 0 && unshare(CLONE_NEWNET) == 0)
		return 0;
	r = own_users();
	if (r == 0 && unshare(CLONE_NEWNET) < 0)
		r = -errno;
	return r < 0 ? cage_explain(e, r, "make a network namespace", "/proc/sys") : 0;
}

/* Best wishes: where /proc/sys is read-only the packet filter says the same. */
static void switches(void)
{
	static const struct {
		const char *name, *value;
	} list[] = {
		{ "ipv4/ip_forward", "0" },
		{ "ipv4/conf/all/rp_filter", "1" },
		{ "ipv4/conf/" NET_DEVICE "/rp_filter", "1" },
		{ "ipv4/conf/all/send_redirects", "0" },
		{ "ipv4/conf/" NET_DEVICE "/send_redirects", "0" },
		{ "ipv4/conf/all/accept_redirects", "0" },
		{ "ipv4/conf/" NET_DEVICE "/accept_redirects", "0" },
		{ "ipv6/conf/all/disable_ipv6", "1" },
		{ "ipv6/conf/" NET_DEVICE "/disable_ipv6", "1" },
	};
	char path[96];

	for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
		(void)snprintf(path, sizeof(path), "/proc/sys/net/%s", list[i].name);
		(void)!put_file(path, list[i].value);
	}
}

static int parse_mac(const char *text, uint8_t mac[6])
{
	unsigned b[6];

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5]) != 6)
		return -EINVAL;
	for (int i = 0; i < 6; i++)
		mac[i] = (uint8_t)b[i];
	return 0;
}

static int set_mac(const char *text)
{
	struct ifreq q = { .ifr_name = NET_DEVICE, .ifr_hwaddr.sa_family = ARPHRD_ETHER };
	_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int r = parse_mac(text, (uint8_t *)q.ifr_hwaddr.sa_data);

	if (fd < 0 || r < 0)
		return r < 0 ? r : -errno;
	return ioctl(fd, SIOCSIFHWADDR, &q) < 0 ? -errno : 0;
}

static int addresses(struct err *e)
{
	unsigned bac0 = if_nametoindex(NET_DEVICE), lo = if_nametoindex("lo");
	_close_ int nl = -1;
	uint8_t mac[6];
	int r = set_mac(NET_GATEWAY_MAC);

	if (r == 0)
		r = netlink_open(&nl);
	if (r == 0)
		r = netlink_up(nl, lo);
	if (r == 0)
		r = netlink_address(nl, bac0, NET_GATEWAY_TEXT, NET_PREFIX);
	if (r == 0)
		r = netlink_up(nl, bac0);
	if (r == 0)
		r = parse_mac(NET_GUEST_MAC, mac);
	if (r == 0)
		r = netlink_neighbour(nl, bac0, NET_GUEST_TEXT, mac);
	if (r == 0)
		r = netlink_mark_is_local(nl, lo, TABLE_MARK, TABLE_OF_MARKED);
	return r < 0 ? err_errno(e, r, "cannot set up the sandbox's network namespace") : 0;
}

/* The order is the argument: the filter is there before anything can come, and the wire before the sockets that
 * name it. */
static int make(int *fds, struct err *e)
{
	int r = enter(e);

	if (r == 0)
		r = table_load(e);
	if (r == 0)
		r = sockets_tap(&fds[NET_FD_TAP], e);
	if (r < 0)
		return r;
	switches();
	r = addresses(e);
	return r == 0 ? sockets_make(fds, e) : r;
}

static int answer(const int *fds)
{
	for (int i = 0; i < NET_FD_N; i++) {
		uint8_t which = (uint8_t)i;
		int r = fd_send_with(NET_SOCKET_FD, &which, 1, fds[i], 0);

		if (r < 0)
			return r;
	}
	return 0;
}

static int fail(const struct err *e)
{
	char text[NET_ANSWER_MAX];
	int n = snprintf(text, sizeof(text), "%c%s", NET_FAILED, e->msg);

	(void)!send(NET_SOCKET_FD, text, MIN((size_t)n, sizeof(text) - 1), MSG_NOSIGNAL);
	return 1;
}

int main(void)
{
	int fds[NET_FD_N] = { -1, -1, -1, -1, -1 };
	struct err e = { 0 };

	if (fcntl(NET_SOCKET_FD, F_GETFD) < 0) {
		(void)fprintf(stderr, "bac-net: is started by bac-supervisor, not by hand\n");
		return 2;
	}
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (make(fds, &e) < 0)
		return fail(&e);
	return answer(fds) < 0;
}
