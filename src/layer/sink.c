/* Who keeps the file will want it on the disk before it counts (fsync): the way there begins while it is written. */
#include "layer/sink.h"

#include <fcntl.h>
#include <unistd.h>

enum { HOLE_MIN = 64 * 1024, DIRECT_MIN = 128 * 1024, START_EVERY = 32 * 1024 * 1024 };

int sink_open(struct sink *s, int fd)
{
	*s = (struct sink) { .fd = fd, .b = malloc(SINK_BUFFER) };
	return s->b ? 0 : -ENOMEM;
}

void sink_done(struct sink *s)
{
	free(take_ptr(s->b));
}

static void write_at(struct sink *s, const uint8_t *p, size_t n, uint64_t at)
{
	while (n && s->r == 0) {
		ssize_t k = pwrite(s->fd, p, n, (off_t)at);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0) {
			s->r = k < 0 ? -errno : -EIO;
			return;
		}
		p += k;
		at += (uint64_t)k;
		n -= (size_t)k;
	}
	if (at >= s->started + START_EVERY) {
		(void)sync_file_range(s->fd, (off_t)s->started, (off_t)(at - s->started),
				      SYNC_FILE_RANGE_WRITE);
		s->started = at;
	}
}

static void flush(struct sink *s)
{
	write_at(s, s->b, s->n, s->pos - s->n);
	s->n = 0;
}

void sink_bytes(struct sink *s, const void *p, size_t n)
{
	if (n >= DIRECT_MIN || n > SINK_BUFFER - s->n)
		flush(s);
	if (n >= DIRECT_MIN) {
		write_at(s, p, n, s->pos);
	} else {
		memcpy(s->b + s->n, p, n);
		s->n += n;
	}
	s->pos += n;
}

void sink_zeros(struct sink *s, uint64_t n)
{
	if (n >= HOLE_MIN) {
		flush(s);
		s->pos += n;
		return;
	}
	if (n > SINK_BUFFER - s->n)
		flush(s);
	memset(s->b + s->n, 0, (size_t)n);
	s->n += (size_t)n;
	s->pos += n;
}

void sink_align(struct sink *s, size_t step)
{
	sink_zeros(s, (step - s->pos % step) % step);
}

int sink_end(struct sink *s)
{
	flush(s);
	if (s->r == 0 && ftruncate(s->fd, (off_t)s->pos) < 0)
		s->r = -errno;
	return s->r;
}
