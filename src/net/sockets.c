#include "net/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/fd.h"
#include "net/table.h"
#include "wire/net.h"
#include "wire/proxy.h"

enum {
	BACKLOG = 4096,
	DROPS_ROOM = 128 * 1024, /* a guest that floods loses news of itself */
	DROPS_SNAP = 128,        /* bytes of each packet */
	DNS_ROOM = 1024 * 1024,
};

int sockets_tap(int *ret_fd, struct err *e)
{
	struct ifreq q = { .ifr_name = NET_DEVICE,
			   .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	_close_ int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 && (errno == ENOENT || errno == ENODEV || errno == ENXIO))
		return err_set(
			e, -errno,
			"there is no /dev/net/tun: sudo modprobe tun (in a container: start it "
			"with "
			"--device /dev/net/tun), or give the sandbox no network (--network none)");
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		return err_set(e, -errno,
			       "/dev/net/tun may not be opened (%s): sudo chmod 0666 /dev/net/tun",
			       err_text(errno));
	if (fd < 0)
		return err_errno(e, -errno, "cannot open /dev/net/tun");
	if (ioctl(fd, TUNSETIFF, &q) < 0)
		return err_errno(e, -errno, "cannot make a tap device");
	*ret_fd = take_fd(&fd);
	return 0;
}

static int option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* On the gateway's address; answers for every other. */
static int transparent(int type, uint16_t port, int *ret_fd)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	_close_ int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	if (!inet_aton(NET_GATEWAY_TEXT, &a.sin_addr))
		return -EINVAL;
	r = option(fd, SOL_IP, IP_TRANSPARENT, 1);
	if (r == 0)
		r = option(fd, SOL_IP, IP_FREEBIND, 1);
	if (r == 0 && type == SOCK_DGRAM)
		r = option(fd, SOL_IP, IP_RECVORIGDSTADDR, 1);
	if (r == 0 && type == SOCK_DGRAM)
		r = option(fd, SOL_SOCKET, SO_RCVBUF, DNS_ROOM);
	if (r == 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		r = -errno;
	/* To a guest there is no road whose width would have to be found out: what the host has chosen for real ones may hold back
	 * (BBR sends by a timer). Connections inherit it; without it they go as the host's do. */
	if (r == 0 && type == SOCK_STREAM)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno"));
	if (r == 0 && type == SOCK_STREAM && listen(fd, BACKLOG) < 0)
		r = -errno;
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

#define GUEST 0xc6120002U /* NET_GUEST_TEXT, as a number */

/* What the filter of table.c lets through to the other sockets, and what goes out, is not for this one. ARP is nobody's news.
 * bpf(4); the packet begins with its network header. */
static const struct sock_filter not_for_others[] = {
	/* 0 */ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
	/* 1 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 14, 0),
	/* 2 */ BPF_STMT(BPF_LD | BPF_H | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PROTOCOL)),
	/* 3 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_ARP, 12, 0),
	/* 4 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IP, 0, 10),
	/* 5: a fragment is dropped, whatever is in it */
	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 6),
	/* 6 */ BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x3fff, 8, 0),
	/* 7: and what comes from another address than the guest's */
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 12),
	/* 8 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, GUEST, 0, 6),
	/* 9 */ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
	/* 10 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 5, 0),
	/* 11 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 3),
	/* 12 */ BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
	/* 13 */ BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2),
	/* 14 */ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TABLE_DNS_PORT, 1, 0),
	/* 15 */ BPF_STMT(BPF_RET | BPF_K, DROPS_SNAP),
	/* 16 */ BPF_STMT(BPF_RET | BPF_K, 0),
};

static int drops(int *ret_fd)
{
	struct sock_fprog prog = { ARRAY_SIZE(not_for_others),
				   (struct sock_filter *)not_for_others };
	struct sockaddr_ll a = { .sll_family = AF_PACKET,
				 .sll_protocol = htons(ETH_P_ALL),
				 .sll_ifindex = (int)if_nametoindex(NET_DEVICE) };
	/* protocol 0: nothing arrives before the filter is there */
	_close_ int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &(int) { 1 }, sizeof(int)) < 0)
		return -errno;
	r = option(fd, SOL_SOCKET, SO_RCVBUF, DROPS_ROOM);
	if (r == 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		r = -errno;
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

int sockets_make(int *fds, struct err *e)
{
	int r = transparent(SOCK_STREAM, TABLE_TCP_PORT, &fds[NET_FD_TCP]);

	if (r == 0)
		r = transparent(SOCK_STREAM, TABLE_DNS_PORT, &fds[NET_FD_DNS_TCP]);
	if (r == 0)
		r = transparent(SOCK_DGRAM, TABLE_DNS_PORT, &fds[NET_FD_DNS_UDP]);
	if (r == 0)
		r = drops(&fds[NET_FD_DROPS]);
	return r < 0 ? err_errno(e, r, "cannot make the proxy's sockets") : 0;
}
