/* The other side of a throughput measurement: "get N" is answered with N bytes, "put" and bytes with the end of the connection.
 *
 * plain PORTFILE: listens on the host's loopback and writes its port. Without an argument it takes the place of bac-proxy: the guest's
 * connections end here, with no proxy between, over the same device, namespace and sockets. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/proxy.h"

enum { SUPERVISOR = 3, MINDER = 4, LISTENER = 6, PIECE = 256 * 1024 };

static char piece[PIECE];

static void serve(int fd)
{
	char line[64] = "";
	size_t n = 0;
	ssize_t k = 0;

	while (n < sizeof(line) - 1 && !strchr(line, '\n') && (k = read(fd, line + n, 1)) == 1)
		n++;
	if (!strncmp(line, "put", 3)) {
		while (read(fd, piece, PIECE) > 0)
			;
		return;
	}
	for (unsigned long long left = strtoull(line + 4, NULL, 10); left;) {
		k = write(fd, piece, left < PIECE ? (size_t)left : PIECE);
		if (k <= 0)
			break;
		left -= (unsigned long long)k;
	}
}

/* As with plain routing, the host's way to send: the listener has another, which its connections inherit (src/net/sockets.c). */
static void as_the_host_sends(int fd)
{
	char name[16];
	socklen_t len = sizeof(name);
	int fresh = socket(AF_INET, SOCK_STREAM, 0);

	if (fresh >= 0 && getsockopt(fresh, IPPROTO_TCP, TCP_CONGESTION, name, &len) == 0)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, len);
	(void)close(fresh);
}

static void take(int listener)
{
	int fd = accept(listener, NULL, NULL);

	if (fd < 0)
		return;
	if (fork() == 0) {
		as_the_host_sends(fd);
		serve(fd);
		_exit(0);
	}
	(void)close(fd);
}

static void answer(void)
{
	static uint8_t bytes[PROXY_MSG_MAX];
	ssize_t n = recv(SUPERVISOR, bytes, sizeof(bytes), 0);
	struct proxy_msg m, out = { .type = PROXY_APPLIED, .applied.text = "" };

	if (n <= 0)
		_exit(0);
	if (proxy_parse(&m, 'S', bytes, (size_t)n, bytes[0] == PROXY_POLICY) != WIRE_OK ||
	    m.type == PROXY_CONFIG)
		return;
	if (m.type == PROXY_POLICY)
		out.applied.number = m.number;
	else
		out = (struct proxy_msg) { .type = PROXY_PONG, .number = m.number };
	n = proxy_put(&out, bytes, sizeof(bytes));
	if (n > 0)
		(void)!send(SUPERVISOR, bytes, (size_t)n, MSG_NOSIGNAL);
}

static _Noreturn void as_proxy(void)
{
	for (;;) {
		struct pollfd p[] = { { SUPERVISOR, POLLIN, 0 }, { LISTENER, POLLIN, 0 } };

		(void)poll(p, 2, -1);
		if (p[0].revents)
			answer();
		if (p[1].revents)
			take(LISTENER);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd;
	FILE *f;

	(void)signal(SIGCHLD, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc < 2)
		as_proxy();
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 16) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return 1;
	f = fopen(argv[1], "we");
	if (!f || fprintf(f, "%u\n", ntohs(a.sin_port)) < 0 || fclose(f) != 0)
		return 1;
	for (;;)
		take(fd);
}
