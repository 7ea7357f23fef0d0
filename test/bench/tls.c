/* A client that is no bottleneck: HTTP/1.1 over TLS by way of a proxy's CONNECT (or none), as many connections as are asked for, one thread each.
 *
 *   bench-tls PROXY PORT HOST PORT CA MODE CONNECTIONS SECONDS PATH
 *
 * MODE keep: one request after the other on each connection; new: a connection, its handshake and one request each; body: PATH once. Prints
 * "requests seconds p50 p99 bytes errors", times in microseconds. PROXY "-": straight to HOST. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/text.h"

enum { TIMES_MAX = 1 << 20, IN_MAX = 256 * 1024, HEAD_MAX = 4096 };

static struct {
	struct sockaddr_in to;
	const char *connect, *host, *at, *path; /* at: host:port */
	bool keep, body;
	uint64_t until;
	SSL_CTX *ctx;
} job;

struct worker {
	pthread_t thread;
	uint32_t *times; /* us */
	size_t n;
	uint64_t bytes, errors;
};

static uint64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static bool through(int fd)
{
	char text[HEAD_MAX];
	int n = snprintf(text, sizeof(text), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", job.connect,
			 job.connect);
	size_t got = 0;

	if (send(fd, text, (size_t)n, MSG_NOSIGNAL) != n)
		return false;
	while (got < sizeof(text) - 1) {
		ssize_t k = recv(fd, text + got, sizeof(text) - 1 - got, 0);

		if (k <= 0)
			return false;
		got += (size_t)k;
		text[got] = '\0';
		if (strstr(text, "\r\n\r\n"))
			return strstr(text, " 200") != NULL;
	}
	return false;
}

static SSL *dial(void)
{
	const int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	SSL *s = NULL;

	if (fd < 0)
		return NULL;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (struct sockaddr *)&job.to, sizeof(job.to)) == 0 &&
	    (!job.connect || through(fd)))
		s = SSL_new(job.ctx);
	if (s && SSL_set_fd(s, fd) == 1 && SSL_set_tlsext_host_name(s, job.host) == 1 &&
	    SSL_set1_host(s, job.host) == 1 && SSL_connect(s) == 1)
		return s;
	SSL_free(s);
	(void)close(fd);
	return NULL;
}

static void hang_up(SSL *s)
{
	const int fd = SSL_get_fd(s);

	(void)SSL_shutdown(s);
	SSL_free(s);
	(void)close(fd);
}

/* The whole of an answer with a Content-Length. Bytes of its body, or -1. */
static int64_t answer(SSL *s, char *in)
{
	const char *end, *length;
	int64_t want;
	size_t got = 0;

	do {
		int k = SSL_read(s, in + got, (int)(IN_MAX - 1 - got));

		if (k <= 0)
			return -1;
		got += (size_t)k;
		in[got] = '\0';
		end = strstr(in, "\r\n\r\n");
	} while (!end);
	length = strcasestr(in, "\r\nContent-Length: ");
	if (!starts_with(in, "HTTP/1.1 200") || !length)
		return -1;
	want = strtoll(length + 18, NULL, 10);
	got -= (size_t)(end + 4 - in);
	while ((int64_t)got < want) {
		int k = SSL_read(s, in, IN_MAX - 1);

		if (k <= 0)
			return -1;
		got += (size_t)k;
	}
	return want;
}

static bool request(SSL *s, struct worker *w, char *in)
{
	char text[HEAD_MAX];
	int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", job.path,
			 job.at);
	int64_t body;

	if (SSL_write(s, text, n) != n)
		return false;
	body = answer(s, in);
	w->bytes += body > 0 ? (uint64_t)body : 0;
	return body >= 0;
}

static void *run(void *arg)
{
	struct worker *w = arg;
	char *in = malloc(IN_MAX);
	SSL *s = NULL;

	while (in && now_us() < job.until && w->n < TIMES_MAX) {
		uint64_t start = now_us();

		if (!s)
			s = dial();
		if (s && job.keep && !w->n)
			start = now_us(); /* its handshake is not of the request */
		if (!s || !request(s, w, in)) {
			w->errors++;
			if (w->errors > 100)
				break;
		} else {
			w->times[w->n++] = (uint32_t)(now_us() - start);
		}
		if (job.body)
			break;
		if (s && (!job.keep || w->errors)) {
			hang_up(s);
			s = NULL;
		}
	}
	if (s)
		hang_up(s);
	free(in);
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void report(struct worker *w, size_t n, double seconds)
{
	uint32_t *all = calloc(n, (size_t)TIMES_MAX * sizeof(*all));
	uint64_t bytes = 0, errors = 0;
	size_t total = 0;

	for (size_t i = 0; all && i < n; i++) {
		memcpy(all + total, w[i].times, w[i].n * sizeof(*all));
		total += w[i].n;
		bytes += w[i].bytes;
		errors += w[i].errors;
	}
	if (total)
		qsort(all, total, sizeof(*all), by_time);
	printf("%zu %.3f %u %u %llu %llu\n", total, seconds, total ? all[total / 2] : 0,
	       total ? all[total * 99 / 100] : 0, (unsigned long long)bytes,
	       (unsigned long long)errors);
	free(all);
}

int main(int argc, char **argv)
{
	char connect_to[300];
	uint64_t port, n, seconds, start;
	struct worker *w;
	bool straight;

	if (argc != 10 || text_u64(argv[2], 65535, &port) < 0 || text_u64(argv[7], 4096, &n) < 0 ||
	    text_u64(argv[8], 3600, &seconds) < 0)
		return 2;
	straight = streq(argv[1], "-");
	(void)snprintf(connect_to, sizeof(connect_to), "%s:%s", argv[3], argv[4]);
	job.to.sin_family = AF_INET;
	job.to.sin_port = htons((uint16_t)port);
	job.host = argv[3];
	job.path = argv[9];
	job.at = connect_to;
	job.connect = straight ? NULL : connect_to;
	job.keep = !streq(argv[6], "new");
	job.body = streq(argv[6], "body");
	job.ctx = SSL_CTX_new(TLS_client_method());
	if (inet_pton(AF_INET, straight ? "93.184.216.34" : argv[1], &job.to.sin_addr) != 1 ||
	    !job.ctx || SSL_CTX_load_verify_locations(job.ctx, argv[5], NULL) != 1)
		return 2;
	SSL_CTX_set_verify(job.ctx, SSL_VERIFY_PEER, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	w = calloc(n, sizeof(*w));
	start = now_us();
	job.until = start + seconds * 1000000;
	for (size_t i = 0; w && i < n; i++) {
		w[i].times = calloc(TIMES_MAX, sizeof(*w->times));
		if (!w[i].times || pthread_create(&w[i].thread, NULL, run, &w[i]) != 0)
			return 1;
	}
	for (size_t i = 0; w && i < n; i++)
		(void)pthread_join(w[i].thread, NULL);
	if (w)
		report(w, n, (double)(now_us() - start) / 1e6);
	return 0;
}
