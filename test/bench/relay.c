/* What two ends of TLS cost by themselves: the least that a proxy can be that opens it. A thread a connection, blocking, no policy, no
 * record, no parser beyond the length of an answer; a connection to the server is kept for whoever asks next.
 *
 *   bench-relay ADDRESS PORT HOST SERVER SERVER-PORT PEM CA OTHERS
 *
 * Takes CONNECT on ADDRESS:PORT, shows the certificate of PEM, reaches SERVER:SERVER-PORT as HOST and trusts CA. One request at a time, as
 * bench/tls.c sends them. With few connections that is
 * about what no proxy is without; with many, a thread each costs more than a loop would: then it is no limit.
 *
 * With OTHERS, a number, each request waits until so many others, all asked at once, have answered with a word: what it costs to let one
 * process hold the keys and another write the log, whatever the two then do. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "base/text.h"

enum { KEPT_MAX = 512, BUFFER_MAX = 64 * 1024, STACK_SIZE = 256 * 1024, OTHERS_MAX = 4 };

static struct {
	SSL_CTX *near, *far;
	const char *host;
	struct sockaddr_in server;
	pthread_mutex_t lock;
	SSL *kept[KEPT_MAX];
	size_t n_kept;
	uint64_t others;
	pthread_attr_t small;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void drop(SSL *s)
{
	const int fd = s ? SSL_get_fd(s) : -1;

	SSL_free(s);
	if (fd >= 0)
		(void)close(fd);
}

static SSL *far_side(void)
{
	const int one = 1;
	SSL *s = NULL;
	int fd;

	(void)pthread_mutex_lock(&all.lock);
	if (all.n_kept)
		s = all.kept[--all.n_kept];
	(void)pthread_mutex_unlock(&all.lock);
	if (s)
		return s;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (struct sockaddr *)&all.server, sizeof(all.server)) == 0)
		s = SSL_new(all.far);
	if (s && SSL_set_fd(s, fd) == 1 && SSL_set_tlsext_host_name(s, all.host) == 1 &&
	    SSL_set1_host(s, all.host) == 1 && SSL_connect(s) == 1)
		return s;
	SSL_free(s);
	(void)close(fd);
	return NULL;
}

static void keep(SSL *s)
{
	(void)pthread_mutex_lock(&all.lock);
	if (all.n_kept < KEPT_MAX) {
		all.kept[all.n_kept++] = s;
		s = NULL;
	}
	(void)pthread_mutex_unlock(&all.lock);
	drop(s);
}

/* An answer from far to near as it comes. False: one of the two is gone. */
static bool answer(SSL *far, SSL *near, char *buffer)
{
	const char *length, *end;
	int64_t left;
	int n = SSL_read(far, buffer, BUFFER_MAX - 1);

	if (n <= 0)
		return false;
	buffer[n] = '\0';
	length = strcasestr(buffer, "\r\nContent-Length: ");
	end = strstr(buffer, "\r\n\r\n");
	if (!length || !end || SSL_write(near, buffer, n) != n)
		return false;
	left = strtoll(length + 18, NULL, 10) - (n - (end + 4 - buffer));
	while (left > 0) {
		n = SSL_read(far, buffer, BUFFER_MAX);
		if (n <= 0 || SSL_write(near, buffer, n) != n)
			return false;
		left -= n;
	}
	return left == 0;
}

/* One who is asked: a word for a word, until the asker goes. */
static void *other(void *arg)
{
	const int fd = (int)(intptr_t)arg;
	uint64_t word;

	while (recv(fd, &word, sizeof(word), 0) == sizeof(word) &&
	       send(fd, &word, sizeof(word), MSG_NOSIGNAL) == sizeof(word))
		;
	(void)close(fd);
	return NULL;
}

static bool meet_others(int *fds)
{
	for (size_t i = 0; i < all.others; i++) {
		pthread_t thread;
		int two[2];

		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, two) < 0)
			return false;
		fds[i] = two[0];
		if (pthread_create(&thread, &all.small, other, (void *)(intptr_t)two[1]) != 0) {
			(void)close(two[1]);
			return false;
		}
	}
	return true;
}

static bool ask_others(const int *fds)
{
	uint64_t word = 0;
	bool fine = true;

	for (size_t i = 0; i < all.others; i++)
		fine &= send(fds[i], &word, sizeof(word), MSG_NOSIGNAL) == sizeof(word);
	for (size_t i = 0; fine && i < all.others; i++)
		fine = recv(fds[i], &word, sizeof(word), 0) == sizeof(word);
	return fine;
}

static SSL *near_side(int fd, char *buffer)
{
	static const char yes[] = "HTTP/1.1 200 OK\r\n\r\n";
	const int one = 1;
	SSL *s = NULL;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (recv(fd, buffer, BUFFER_MAX, 0) > 0 && /* the CONNECT, which comes in one piece here */
	    send(fd, yes, sizeof(yes) - 1, MSG_NOSIGNAL) > 0)
		s = SSL_new(all.near);
	if (s && SSL_set_fd(s, fd) == 1 && SSL_accept(s) == 1)
		return s;
	SSL_free(s);
	(void)close(fd);
	return NULL;
}

static void *serve(void *arg)
{
	char *buffer = malloc(BUFFER_MAX);
	int others[OTHERS_MAX] = { -1, -1, -1, -1 };
	SSL *near = buffer ? near_side((int)(intptr_t)arg, buffer) : NULL, *far = NULL;
	bool met = near && meet_others(others);

	while (met) {
		int n = SSL_read(near, buffer, BUFFER_MAX);

		if (n <= 0 || !ask_others(others))
			break;
		if (!far)
			far = far_side();
		if (!far || SSL_write(far, buffer, n) != n || !answer(far, near, buffer)) {
			drop(far);
			far = NULL;
			break;
		}
	}
	if (far)
		keep(far);
	drop(near);
	for (size_t i = 0; i < OTHERS_MAX; i++)
		if (others[i] >= 0)
			(void)close(others[i]);
	free(buffer);
	return NULL;
}

static int listen_at(const char *address, uint64_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	const int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || inet_pton(AF_INET, address, &to.sin_addr) != 1 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || listen(fd, 1024) < 0)
		return -1;
	return fd;
}

static bool set_up(char **argv)
{
	uint64_t port;

	all.near = SSL_CTX_new(TLS_server_method());
	all.far = SSL_CTX_new(TLS_client_method());
	all.host = argv[3];
	all.server.sin_family = AF_INET;
	if (!all.near || !all.far || inet_pton(AF_INET, argv[4], &all.server.sin_addr) != 1 ||
	    text_u64(argv[5], 65535, &port) < 0)
		return false;
	all.server.sin_port = htons((uint16_t)port);
	SSL_CTX_set_verify(all.far, SSL_VERIFY_PEER, NULL);
	return SSL_CTX_load_verify_locations(all.far, argv[7], NULL) == 1 &&
	       SSL_CTX_use_certificate_chain_file(all.near, argv[6]) == 1 &&
	       SSL_CTX_use_PrivateKey_file(all.near, argv[6], SSL_FILETYPE_PEM) == 1;
}

int main(int argc, char **argv)
{
	uint64_t port;
	int fd;

	if (argc != 9 || text_u64(argv[2], 65535, &port) < 0 ||
	    text_u64(argv[8], OTHERS_MAX, &all.others) < 0 || !set_up(argv))
		return 2;
	(void)signal(SIGPIPE, SIG_IGN);
	fd = listen_at(argv[1], port);
	if (fd < 0 || pthread_attr_init(&all.small) != 0 ||
	    pthread_attr_setstacksize(&all.small, STACK_SIZE) != 0 ||
	    pthread_attr_setdetachstate(&all.small, PTHREAD_CREATE_DETACHED) != 0)
		return 1;
	for (;;) {
		pthread_t thread;
		int one = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (one < 0 ||
		    pthread_create(&thread, &all.small, serve, (void *)(intptr_t)one) != 0)
			return 1;
	}
}
