/* ioctl(2) as netdevice(7) describes it: no program of the template is needed, and it costs less than starting one. */
#include "guest/init/net.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "guest/init/die.h"
#include "io/fd.h"
#include "wire/net.h"
#include "wire/proxy.h"

#define WIRE "eth0"

static struct sockaddr address(const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct sockaddr out;

	(void)inet_aton(text, &a.sin_addr);
	memcpy(&out, &a, sizeof(out));
	return out;
}

static int flag_up(int s, const char *device)
{
	struct ifreq q = { .ifr_flags = 0 };

	(void)snprintf(q.ifr_name, sizeof(q.ifr_name), "%s", device);
	if (ioctl(s, SIOCGIFFLAGS, &q) < 0)
		return -1;
	q.ifr_flags = (short)(q.ifr_flags | IFF_UP);
	return ioctl(s, SIOCSIFFLAGS, &q);
}

static void no_version6(void)
{
	static const char *const of[] = { "default", WIRE };
	char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		_close_ int fd = -1;

		(void)snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/disable_ipv6",
			       of[i]);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0)
			(void)!write(fd, "1", 1);
	}
}

static int set_address(int s)
{
	struct ifreq q = { .ifr_name = WIRE };

	q.ifr_addr = address(NET_GUEST_TEXT);
	if (ioctl(s, SIOCSIFADDR, &q) < 0)
		return -1;
	q.ifr_netmask = address("255.255.255.252");
	return ioctl(s, SIOCSIFNETMASK, &q);
}

static int set_gateway(int s)
{
	struct rtentry way = { .rt_dst = address("0.0.0.0"),
			       .rt_genmask = address("0.0.0.0"),
			       .rt_gateway = address(NET_GATEWAY_TEXT),
			       .rt_flags = RTF_UP | RTF_GATEWAY };
	struct arpreq arp = { .arp_pa = address(NET_GATEWAY_TEXT),
			      .arp_ha.sa_family = ARPHRD_ETHER,
			      .arp_flags = ATF_PERM | ATF_COM,
			      .arp_dev = WIRE };
	unsigned b[6];

	if (ioctl(s, SIOCADDRT, &way) < 0)
		return -1;
	/* without it the first packet would wait for an answer */
	if (sscanf(NET_GATEWAY_MAC, "%x:%x:%x:%x:%x:%x", &b[0], &b[1], &b[2], &b[3], &b[4],
		   &b[5]) == 6)
		for (int i = 0; i < 6; i++)
			arp.arp_ha.sa_data[i] = (char)b[i];
	(void)ioctl(s, SIOCSARP, &arp);
	return 0;
}

bool net_up(void)
{
	_close_ int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (s < 0 || flag_up(s, "lo") < 0)
		die_note("the loopback device is down: %s", err_text(errno));
	if (s < 0 || if_nametoindex(WIRE) == 0)
		return false;
	no_version6();
	if (set_address(s) < 0 || flag_up(s, WIRE) < 0 || set_gateway(s) < 0)
		die_note("the network is down: %s", err_text(errno));
	return true;
}
