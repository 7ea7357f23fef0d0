/* bac-net (the first argument) is run, and what it made is looked at with packets, as a guest would write them: at the one end
 * of the wire a tap device, at the others the sockets of the proxy. This process is in another network namespace, as the
 * proxy is. As root everything runs twice: as root, and as an ordinary user. */
#include <arpa/inet.h>
#include <grp.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "io/fd.h"
#include "sys/spawn.h"
#include "wire/net.h"
#include "wire/proxy.h"

enum { VNET = 10, WAIT_MS = 5000, GUEST_PORT = 40000 };

static int fds[NET_FD_N];

struct packet {
	uint8_t vnet[VNET];
	struct ether_header eth;
	struct iphdr ip;
	uint8_t body[64]; /* of the transport, its header included */
} __attribute__((packed));

static uint32_t addr(const char *text)
{
	struct in_addr a;

	check(inet_aton(text, &a));
	return a.s_addr;
}

static uint32_t add(uint32_t sum, const void *p, size_t n)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		sum += i % 2 ? b[i] : (uint32_t)b[i] << 8;
	return sum;
}

static uint16_t folded(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static void put(struct packet *p, size_t n_body)
{
	size_t n = VNET + sizeof(p->eth) + sizeof(p->ip) + n_body;

	p->ip.tot_len = htons((uint16_t)(sizeof(p->ip) + n_body));
	p->ip.check = folded(add(0, &p->ip, sizeof(p->ip)));
	check(write(fds[NET_FD_TAP], p, n) == (ssize_t)n);
}

static struct packet packet(uint8_t proto, const char *to)
{
	static const uint8_t gateway[6] = { 2, 0xba, 0xc0, 0, 0, 1 },
			     guest[6] = { 2, 0xba, 0xc0, 0, 0, 2 };
	struct packet p = { .eth.ether_type = htons(ETHERTYPE_IP),
			    .ip = { .version = 4,
				    .ihl = 5,
				    .ttl = 64,
				    .protocol = proto,
				    .saddr = addr(NET_GUEST_TEXT),
				    .daddr = addr(to) } };

	memcpy(p.eth.ether_dhost, gateway, 6);
	memcpy(p.eth.ether_shost, guest, 6);
	return p;
}

static void udp(const char *from, const char *to, uint16_t port, uint16_t frag)
{
	struct packet p = packet(IPPROTO_UDP, to);
	struct udphdr h = { .source = htons(GUEST_PORT), .dest = htons(port), .len = htons(12) };

	p.ip.saddr = addr(from);
	p.ip.frag_off = htons(frag);
	memcpy(p.body, &h, sizeof(h));
	memcpy(p.body + sizeof(h), "word", 4);
	put(&p, 12);
}

static void tcp(const char *to, uint16_t port, uint16_t source, bool syn, uint32_t ack)
{
	struct packet p = packet(IPPROTO_TCP, to);
	struct tcphdr h = { .source = htons(source),
			    .dest = htons(port),
			    .seq = htonl(syn ? 1 : 2),
			    .ack_seq = htonl(ack),
			    .doff = 5,
			    .syn = syn,
			    .ack = !syn,
			    .window = htons(1000) };
	uint32_t sum = add(add(0, &p.ip.saddr, 8), &h, sizeof(h)) + IPPROTO_TCP + sizeof(h);

	h.check = folded(sum);
	memcpy(p.body, &h, sizeof(h));
	put(&p, sizeof(h));
}

/* The next IPv4 packet for the guest that is of this protocol. */
static struct packet next(uint8_t proto)
{
	struct packet p;

	for (;;) {
		struct pollfd f = { .fd = fds[NET_FD_TAP], .events = POLLIN };
		ssize_t n;

		check(poll(&f, 1, WAIT_MS) == 1);
		memset(&p, 0, sizeof(p));
		n = read(fds[NET_FD_TAP], &p, sizeof(p));
		check(n > VNET + (ssize_t)sizeof(p.eth));
		if (ntohs(p.eth.ether_type) == ETHERTYPE_IP && p.ip.protocol == proto)
			return p;
	}
}

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* A datagram that is refused, and the word of its refusal: whatever was written before has been dealt with. */
static void fence(void)
{
	struct icmphdr h;
	struct packet p;

	udp(NET_GUEST_TEXT, "192.0.2.9", 443, 0);
	p = next(IPPROTO_ICMP);
	memcpy(&h, p.body, sizeof(h));
	check(h.type == ICMP_DEST_UNREACH && h.code == ICMP_PORT_UNREACH);
}

static int drained(int fd)
{
	uint8_t bytes[256];
	int n = 0;

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) >= 0)
		n++;
	return n;
}

/* ---- what must come through ---- */

static void connection(int listener, const char *to, uint16_t port, uint16_t source)
{
	struct sockaddr_in us = { 0 }, peer = { 0 };
	socklen_t n = sizeof(us);
	_close_ int fd = -1;
	struct packet p;
	struct tcphdr h;

	tcp(to, port, source, true, 0);
	do { /* past what is left of the connection before */
		p = next(IPPROTO_TCP);
		memcpy(&h, p.body, sizeof(h));
	} while (ntohs(h.dest) != source);
	check(h.syn && h.ack && p.ip.saddr == addr(to) && ntohs(h.source) == port);
	tcp(to, port, source, false, ntohl(h.seq) + 1);
	check(readable(listener, WAIT_MS));
	fd = accept4(listener, (struct sockaddr *)&peer, &n, SOCK_CLOEXEC);
	check(fd >= 0 && peer.sin_addr.s_addr == addr(NET_GUEST_TEXT));
	n = sizeof(us);
	check(getsockname(fd, (struct sockaddr *)&us, &n) == 0);
	check(us.sin_addr.s_addr == addr(to) && ntohs(us.sin_port) == port);
}

static void question(const char *to)
{
	char bytes[64], aside[256];
	struct sockaddr_in peer, asked = { 0 };
	struct iovec v = { bytes, sizeof(bytes) };
	struct msghdr m = { &peer, sizeof(peer), &v, 1, aside, sizeof(aside), 0 };
	struct in_pktinfo from = { 0 };
	struct cmsghdr *c;
	struct packet p;
	struct udphdr h;

	udp(NET_GUEST_TEXT, to, 53, 0);
	check(readable(fds[NET_FD_DNS_UDP], WAIT_MS));
	check(recvmsg(fds[NET_FD_DNS_UDP], &m, 0) == 4);
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == SOL_IP && c->cmsg_type == IP_RECVORIGDSTADDR)
			memcpy(&asked, CMSG_DATA(c), sizeof(asked));
	check(asked.sin_addr.s_addr == addr(to) && ntohs(asked.sin_port) == 53);

	/* the answer comes from where the question went */
	from.ipi_spec_dst = asked.sin_addr;
	m.msg_controllen = CMSG_SPACE(sizeof(from));
	memset(aside, 0, sizeof(aside));
	c = CMSG_FIRSTHDR(&m);
	*c = (struct cmsghdr) { CMSG_LEN(sizeof(from)), SOL_IP, IP_PKTINFO };
	memcpy(CMSG_DATA(c), &from, sizeof(from));
	v.iov_len = 4;
	check(sendmsg(fds[NET_FD_DNS_UDP], &m, 0) == 4);
	p = next(IPPROTO_UDP);
	memcpy(&h, p.body, sizeof(h));
	check(p.ip.saddr == addr(to) && ntohs(h.source) == 53 && ntohs(h.dest) == GUEST_PORT);
}

/* ---- and what must not ---- */

static void echo(const char *to)
{
	struct packet p = packet(IPPROTO_ICMP, to);
	struct icmphdr h = { .type = ICMP_ECHO };

	h.checksum = folded(add(0, &h, sizeof(h)));
	memcpy(p.body, &h, sizeof(h));
	put(&p, sizeof(h));
}

static void version6(void)
{
	static const uint8_t echo6[48] = { 0x60, 0, 0, 0, 0, 8, 58, 64, [39] = 1, [40] = 128 };
	struct packet p = packet(0, NET_GATEWAY_TEXT);

	p.eth.ether_type = htons(ETHERTYPE_IPV6);
	memcpy(&p.ip, echo6, sizeof(echo6));
	check(write(fds[NET_FD_TAP], &p, VNET + sizeof(p.eth) + sizeof(echo6)) > 0);
}

/* TCP repeats itself; anything else would be an answer. */
static void nothing_but_tcp(void)
{
	struct packet p;

	while (readable(fds[NET_FD_TAP], 0)) {
		check(read(fds[NET_FD_TAP], &p, sizeof(p)) > 0);
		check(ntohs(p.eth.ether_type) == ETHERTYPE_IP && p.ip.protocol == IPPROTO_TCP);
	}
}

static void refused(void)
{
	fence();
	(void)drained(fds[NET_FD_DROPS]);
	echo("192.0.2.9");
	echo(NET_GATEWAY_TEXT);
	version6();
	udp(NET_GUEST_TEXT, "192.0.2.9", 53, 0x2000);
	udp("192.0.2.77", "192.0.2.9", 53, 0);
	udp("192.0.2.77", "192.0.2.9", 443, 0);
	fence();
	fence();
	check(!readable(fds[NET_FD_DNS_UDP], 0) && !readable(fds[NET_FD_TCP], 0));
	nothing_but_tcp();
	/* two echoes, version 6, the fragment, the forged question, port 443 three times */
	check(drained(fds[NET_FD_DROPS]) == 8);
}

static void look(const char *program)
{
	const char *argv[] = { program, NULL };
	int pair[2], status;
	char text[NET_ANSWER_MAX + 1];
	struct err e = { 0 };
	_close_ int pidfd = -1;
	pid_t pid;

	check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	struct sys_fd map[] = { { pair[1], NET_SOCKET_FD }, { 2, 2 } };
	struct sys_cmd cmd = { .argv = argv, .fds = map, .n_fds = 2 };

	if (sys_spawn(&cmd, &pid, &pidfd, &e) < 0) {
		(void)fprintf(stderr, "%s\n", e.msg);
		check(false);
	}
	(void)close(pair[1]);
	for (int i = 0; i < NET_FD_N; i++) {
		int fd;
		ssize_t n = fd_receive_with(pair[0], text, NET_ANSWER_MAX, 0, &fd);

		check(n > 0);
		text[n] = '\0';
		if ((uint8_t)text[0] == NET_FAILED) {
			(void)waitpid(pid, NULL, 0);
			check(strlen(text + 1) > 20);
			skip(text + 1);
		}
		check(n == 1 && text[0] == i && fd >= 0);
		fds[i] = fd;
	}
	/* what it made outlives it */
	check(sys_wait(pid, pidfd, fd_now_ns() + 10000000000u, &status) == 0 && status == 0);
	check(recv(pair[0], text, 1, 0) == 0);
	(void)close(pair[0]);

	connection(fds[NET_FD_TCP], "192.0.2.9", 80, 5000);
	connection(fds[NET_FD_TCP], NET_GATEWAY_TEXT, NET_FORWARD_PORT, 5001);
	connection(fds[NET_FD_TCP], "10.1.2.3", 1, 5002);
	connection(fds[NET_FD_DNS_TCP], "8.8.8.8", 53, 5003);
	question("8.8.8.8");
	question(NET_GATEWAY_TEXT);
	refused();
}

/* In a child: 0, or 77 if it could not be shown. */
static int as(uid_t uid, const char *program)
{
	pid_t pid = fork();
	int status;

	check(pid >= 0);
	if (pid == 0) {
		if (uid && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
			    setresuid(uid, uid, uid) < 0))
			abort();
		look(program);
		exit(0);
	}
	check(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	check(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77);
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	int r;

	check(argc == 2);
	r = as(0, argv[1]);
	if (geteuid() == 0 && as(65534, argv[1]) == 77)
		r = 77;
	return r;
}
