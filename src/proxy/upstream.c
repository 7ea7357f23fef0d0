#include "proxy/upstream.h"

#include <stdio.h>
#include <sys/socket.h>

#include "base/rdwr.h"
#include "proxy/http.h"

enum { HEAD_MAX = 16 * 1024 };

static int fail(struct upstream_talk *t, const char *what)
{
	(void)snprintf(t->why, sizeof(t->why), "the host's proxy %.100s", what);
	return -ECONNREFUSED;
}

/* Small, and the first on a new connection: it fits. */
static int say(struct upstream_talk *t, int fd, const void *p, size_t n)
{
	return send(fd, p, n, MSG_NOSIGNAL) == (ssize_t)n ? 0 : fail(t, "does not listen");
}

/* Exactly n bytes, or none of them yet. */
static int hear(struct upstream_talk *t, int fd, uint8_t *p, size_t n)
{
	ssize_t k = recv(fd, p, n, MSG_PEEK);

	if (k < 0)
		return errno == EAGAIN ? 0 : fail(t, "hung up");
	if (k == 0)
		return fail(t, "hung up");
	if ((size_t)k < n)
		return 0;
	return recv(fd, p, n, 0) == (ssize_t)n ? 1 : fail(t, "hung up");
}

/* ---- HTTP ---- */

static int http_ask(struct upstream_talk *t, int fd)
{
	const char *open = strchr(t->host, ':') ? "[" : "", *close = *open ? "]" : "";
	char text[2048];
	int n = snprintf(text, sizeof(text),
			 "CONNECT %s%s%s:%u HTTP/1.1\r\nHost: %s%s%s:%u\r\n%s%s%s\r\n", open,
			 t->host, close, t->port, open, t->host, close, t->port,
			 t->by->basic[0] ? "Proxy-Authorization: " : "", t->by->basic,
			 t->by->basic[0] ? "\r\n" : "");

	if (n < 0 || (size_t)n >= sizeof(text))
		return fail(t, "cannot be asked");
	t->step++;
	return say(t, fd, text, (size_t)n);
}

static int http_answer(struct upstream_talk *t, int fd)
{
	static uint8_t head[HEAD_MAX];
	struct http_head h;
	ssize_t n = recv(fd, head, sizeof(head), MSG_PEEK);
	char what[40];

	if (n <= 0)
		return n < 0 && errno == EAGAIN ? 0 : fail(t, "hung up");
	switch (http_response(&h, head, (size_t)n, "CONNECT")) {
	case HTTP_MORE:
		return n == sizeof(head) ? fail(t, "says too much") : 0;
	case HTTP_OK:
		break;
	default:
		return fail(t, "does not speak HTTP");
	}
	if (h.status / 100 == 1)
		return fail(t, "does not speak HTTP");
	if (h.status / 100 != 2) {
		(void)snprintf(what, sizeof(what), "answered %u", h.status);
		return fail(t, what);
	}
	return recv(fd, head, h.size, 0) == (ssize_t)h.size ? 1 : fail(t, "hung up");
}

/* ---- SOCKS ---- */

static int socks_greet(struct upstream_talk *t, int fd)
{
	const uint8_t text[] = { 5, t->by->user[0] ? 2 : 1, 0, 2 };

	t->step++;
	return say(t, fd, text, 2 + (size_t)text[1]);
}

static int socks_ask(struct upstream_talk *t, int fd)
{
	const size_t len = strlen(t->host);
	uint8_t bytes[300];
	struct wr w = wr_init(bytes, sizeof(bytes));

	wr_bytes(&w, "\5\1\0\3", 4);
	wr_u8(&w, (uint8_t)len);
	wr_bytes(&w, t->host, len);
	wr_be16(&w, t->port);
	t->step = 4;
	return len > 255 || !wr_ok(&w) ? fail(t, "cannot be asked") : say(t, fd, bytes, w.n);
}

static int socks_method(struct upstream_talk *t, int fd)
{
	const size_t user = strlen(t->by->user), pass = strlen(t->by->pass);
	uint8_t b[2], text[520];
	struct wr w = wr_init(text, sizeof(text));
	int r = hear(t, fd, b, sizeof(b));

	if (r <= 0)
		return r;
	if (b[0] == 5 && b[1] == 0)
		return socks_ask(t, fd);
	if (b[0] != 5 || b[1] != 2 || !user)
		return fail(t, "wants another way to log in");
	wr_u8(&w, 1);
	wr_u8(&w, (uint8_t)user);
	wr_bytes(&w, t->by->user, user);
	wr_u8(&w, (uint8_t)pass);
	wr_bytes(&w, t->by->pass, pass);
	t->step++;
	return say(t, fd, text, w.n);
}

static int socks_login(struct upstream_talk *t, int fd)
{
	uint8_t b[2];
	int r = hear(t, fd, b, sizeof(b));

	if (r <= 0)
		return r;
	return b[1] ? fail(t, "does not take the password") : socks_ask(t, fd);
}

/* The length of the answer is in it: a look first, then all of it. */
static int socks_answer(struct upstream_talk *t, int fd)
{
	uint8_t b[4 + 256 + 2];
	ssize_t n = recv(fd, b, 5, MSG_PEEK);
	size_t len;
	char what[40];
	int r;

	if (n <= 0)
		return n < 0 && errno == EAGAIN ? 0 : fail(t, "hung up");
	if (n < 5)
		return 0;
	if (b[0] != 5 || (b[1] == 0 && b[3] != 1 && b[3] != 3 && b[3] != 4))
		return fail(t, "does not speak SOCKS 5");
	if (b[1]) {
		(void)snprintf(what, sizeof(what), "answered %u", b[1]);
		return fail(t, what);
	}
	len = b[3] == 1 ? 10 : b[3] == 4 ? 22 : 7 + (size_t)b[4];
	r = hear(t, fd, b, len);
	return r;
}

static int (*const http_steps[])(struct upstream_talk *t, int fd) = { http_ask, http_answer };
static int (*const socks_steps[])(struct upstream_talk *t, int fd) = { socks_greet, socks_method,
								       socks_login, NULL,
								       socks_answer };

int upstream_step(struct upstream_talk *t, int fd)
{
	const bool http = t->by->kind == UPSTREAM_HTTP;
	uint8_t before;
	int r;

	do { /* each step that goes on may have its answer already */
		before = t->step;
		r = http ? http_steps[before](t, fd) : socks_steps[before](t, fd);
	} while (r == 0 && t->step != before);
	return r;
}
