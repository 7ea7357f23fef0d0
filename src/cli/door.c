/* A command's end of the door. */
#include "cli/door.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/fd.h"

enum {
	DOOR_IN = 4 * (WIRE_HEADER + WIRE_FRAME_MAX),
	DOOR_OUT = 2 * WIRE_EXEC_MAX + 4 * WIRE_WINDOW
};

uint64_t door_in_ms(uint64_t ms)
{
	return fd_now_ns() + ms * 1000000;
}

static int wait_for(int fd, short what, uint64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = what };
	uint64_t now = fd_now_ns();
	int r;

	if (now >= deadline)
		return -ETIMEDOUT;
	r = poll(&p, 1, (int)MIN((deadline - now) / 1000000 + 1, (uint64_t)3600000));
	return r < 0 && errno != EINTR ? -errno : 0;
}

static int connect_to(const char *run_dir, int *ret)
{
	_close_ int dir = open(run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_close_ int fd = -1;
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	if (dir < 0)
		return -errno;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/ctl.sock", dir);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	*ret = take_fd(&fd);
	return 0;
}

int door_connect(const char *run_dir, struct door *ret, struct err *e)
{
	struct door d = { .fd = -1 };
	int r = connect_to(run_dir, &d.fd);

	if (r == -ENOENT || r == -ECONNREFUSED)
		return r;
	if (r == -EAGAIN)
		return err_set(e, r,
			       "the sandbox's supervisor takes no more connections; try again");
	if (r < 0)
		return err_errno(e, r, "cannot reach the sandbox's supervisor in %s", run_dir);
	buf_init(&d.in, DOOR_IN);
	buf_init(&d.out, DOOR_OUT);
	*ret = d;
	return 0;
}

int door_greeted(struct door *d, uint64_t deadline)
{
	struct wire_frame f;
	const char *id;
	int r = door_next(d, deadline, &f);

	if (r == 0 && (f.type != WIRE_DOOR || wire_door_parse(&id, &f) != WIRE_OK))
		r = -EPROTO;
	return r;
}

int door_open(const char *run_dir, uint64_t deadline, struct door *ret, struct err *e)
{
	struct door d;
	int r;

	r = door_connect(run_dir, &d, e);
	if (r < 0)
		return r;
	r = door_greeted(&d, deadline);
	if (r < 0) {
		door_done(&d);
		if (r == -EPIPE)
			return -ECONNREFUSED;
		return err_errno(e, r, "the sandbox's supervisor does not answer");
	}
	*ret = d;
	return 0;
}

void door_done(struct door *d)
{
	d->fd = fd_close(d->fd);
	buf_done(&d->in);
	buf_done(&d->out);
}

int door_flush(struct door *d, uint64_t deadline)
{
	while (d->out.n) {
		ssize_t k = send(d->fd, buf_data(&d->out), d->out.n, MSG_NOSIGNAL | MSG_DONTWAIT);
		int r = 0;

		if (k >= 0)
			buf_consume(&d->out, (size_t)k);
		else if (errno == EAGAIN)
			r = wait_for(d->fd, POLLOUT, deadline);
		else if (errno != EINTR)
			r = errno == EPIPE || errno == ECONNRESET ? -EPIPE : -errno;
		if (r < 0)
			return r;
	}
	return 0;
}

int door_next(struct door *d, uint64_t deadline, struct wire_frame *ret)
{
	if (d->taken)
		buf_consume(&d->in, d->taken);
	d->taken = 0;
	for (;;) {
		size_t used;
		int r = wire_frame_parse(ret, &used, FROM_DOOR, d->in.n ? buf_data(&d->in) : NULL,
					 d->in.n);
		ssize_t k;
		void *to;

		if (r == WIRE_OK) {
			d->taken = used;
			return 0;
		}
		if (r != WIRE_AGAIN)
			return -EPROTO;
		to = buf_room(&d->in, WIRE_FRAME_MAX);
		if (!to)
			return -ENOMEM;
		k = recv(d->fd, to, WIRE_FRAME_MAX, MSG_DONTWAIT);
		if (k > 0) {
			buf_added(&d->in, (size_t)k);
			continue;
		}
		if (k == 0 || errno == ECONNRESET)
			return -EPIPE;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = wait_for(d->fd, POLLIN, deadline);
		if (r < 0)
			return r;
	}
}

int door_answer(struct door *d, const char *name, enum wire_type type, uint64_t deadline,
		struct wire_frame *ret, struct err *e)
{
	struct wire_failed m;
	int r = door_flush(d, deadline);

	if (r == 0)
		r = door_next(d, deadline, ret);
	if (r == -ETIMEDOUT)
		return err_set(
			e, r,
			"sandbox '%s' does not answer; see 'bac logs %s', or end it with 'bac stop "
			"--force %s'",
			name, name, name);
	if (r == -EPIPE)
		return err_set(e, r, "the supervisor of sandbox '%s' ended meanwhile; try again",
			       name);
	if (r < 0)
		return err_errno(e, r, "cannot talk to the supervisor of sandbox '%s'", name);
	if (ret->type == WIRE_FAILED && wire_failed_parse(&m, ret) == WIRE_OK)
		return err_set(e, -(int)m.code, "sandbox '%s': %s", name, m.text);
	if (ret->type != type)
		return err_set(
			e, -EPROTO,
			"the supervisor of sandbox '%s' speaks another protocol; stop it with "
			"'bac stop %s'",
			name, name);
	return 0;
}

/* A frame with a memory file beside it, and the answer DONE. */
static int hand_over(struct door *d, const char *name, enum wire_type type, int file,
		     uint64_t deadline, struct err *e)
{
	struct buf out = BUF_INIT(WIRE_HEADER);
	struct wire_frame f = { 0 };
	int r = wire_empty_add(&out, 0, type);

	if (r == 0)
		r = door_flush(d, deadline);
	if (r == 0)
		r = fd_send_with(d->fd, buf_data(&out), out.n, file, 0);
	buf_done(&out);
	if (r < 0)
		return err_errno(e, r, "cannot talk to the supervisor of sandbox '%s'", name);
	return door_answer(d, name, WIRE_DONE, deadline, &f, e);
}

int door_policy(struct door *d, const char *name, int policy, uint64_t deadline, struct err *e)
{
	return hand_over(d, name, WIRE_POLICY, policy, deadline, e);
}

int door_credentials(struct door *d, const char *name, int file, uint64_t deadline, struct err *e)
{
	return hand_over(d, name, WIRE_CREDENTIALS, file, deadline, e);
}
