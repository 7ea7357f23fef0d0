/* Requests are made in a buffer that none of ours can fill, sent, and acknowledged one at a time. */
#include "net/netlink.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/fd.h"

enum { REQUEST_MAX = 256 };

struct request {
	struct nlmsghdr h;
	uint8_t body[REQUEST_MAX];
};

static struct request request(uint16_t type, uint16_t flags, const void *body, size_t n)
{
	struct request q = { .h = { .nlmsg_len = (uint32_t)NLMSG_LENGTH(n),
				    .nlmsg_type = type,
				    .nlmsg_flags =
					    (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags) } };

	memcpy(q.body, body, n);
	return q;
}

static void attribute(struct request *q, uint16_t type, const void *p, size_t n)
{
	struct rtattr a = { .rta_len = (uint16_t)RTA_LENGTH(n), .rta_type = type };
	size_t at = NLMSG_ALIGN(q->h.nlmsg_len) - NLMSG_HDRLEN;

	memcpy(q->body + at, &a, sizeof(a));
	memcpy(q->body + at + RTA_LENGTH(0), p, n);
	q->h.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + at + RTA_ALIGN(a.rta_len));
}

static int ask(int nl, const struct request *q)
{
	struct {
		struct nlmsghdr h;
		struct nlmsgerr e;
		uint8_t more[REQUEST_MAX * 2];
	} a = { 0 };
	ssize_t n;

	if (send(nl, q, q->h.nlmsg_len, 0) < 0)
		return -errno;
	do {
		n = recv(nl, &a, sizeof(a), 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(a.e.error)) || a.h.nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return a.e.error;
}

int netlink_open(int *ret_fd)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0 || connect(fd, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

int netlink_up(int nl, unsigned ifindex)
{
	struct ifinfomsg m = { .ifi_family = AF_UNSPEC,
			       .ifi_index = (int)ifindex,
			       .ifi_flags = IFF_UP,
			       .ifi_change = IFF_UP };
	struct request q = request(RTM_NEWLINK, 0, &m, sizeof(m));

	return ask(nl, &q);
}

int netlink_address(int nl, unsigned ifindex, const char *addr, unsigned prefix)
{
	struct ifaddrmsg m = { .ifa_family = AF_INET,
			       .ifa_prefixlen = (uint8_t)prefix,
			       .ifa_index = ifindex };
	struct request q = request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &m, sizeof(m));
	struct in_addr a;

	if (!inet_aton(addr, &a))
		return -EINVAL;
	attribute(&q, IFA_LOCAL, &a, sizeof(a));
	attribute(&q, IFA_ADDRESS, &a, sizeof(a));
	return ask(nl, &q);
}

int netlink_neighbour(int nl, unsigned ifindex, const char *addr, const uint8_t mac[6])
{
	struct ndmsg m = { .ndm_family = AF_INET,
			   .ndm_ifindex = (int)ifindex,
			   .ndm_state = NUD_PERMANENT };
	struct request q = request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &m, sizeof(m));
	struct in_addr a;

	if (!inet_aton(addr, &a))
		return -EINVAL;
	attribute(&q, NDA_DST, &a, sizeof(a));
	attribute(&q, NDA_LLADDR, mac, 6);
	return ask(nl, &q);
}

int netlink_mark_is_local(int nl, unsigned lo_index, uint32_t mark, uint8_t table)
{
	struct rtmsg way = { .rtm_family = AF_INET,
			     .rtm_table = table,
			     .rtm_protocol = RTPROT_STATIC,
			     .rtm_scope = RT_SCOPE_HOST,
			     .rtm_type = RTN_LOCAL };
	struct fib_rule_hdr rule = { .family = AF_INET, .table = table, .action = FR_ACT_TO_TBL };
	struct request q = request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &way, sizeof(way));
	int r;

	attribute(&q, RTA_OIF, &lo_index, sizeof(lo_index));
	r = ask(nl, &q);
	if (r < 0)
		return r;
	q = request(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, &rule, sizeof(rule));
	attribute(&q, FRA_FWMARK, &mark, sizeof(mark));
	return ask(nl, &q);
}
