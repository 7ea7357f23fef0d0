/* The sandbox's log. */
#include "supervisor/log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io/fd.h"
#include "wire/limits.h"

struct slog {
	int fd[2];
	unsigned now; /* which of the two */
	uint64_t seq; /* number of the file in the sequence */
	size_t size;
};

static uint64_t seq_of(int fd)
{
	char head[64] = "";
	ssize_t n = pread(fd, head, sizeof(head) - 1, 0);
	uint64_t seq = 0;
	const char *p;

	if (n <= 0 || !starts_with(head, "#bac-log "))
		return 0;
	for (p = head + 9; *p >= '0' && *p <= '9'; p++)
		seq = seq * 10 + (uint64_t)(*p - '0');
	return seq;
}

static void start_file(struct slog *l)
{
	char head[64];
	int n = snprintf(head, sizeof(head), "#bac-log %llu\n", (unsigned long long)l->seq);

	if (ftruncate(l->fd[l->now], 0) < 0)
		return;
	l->size = 0;
	if (pwrite(l->fd[l->now], head, (size_t)n, 0) == n)
		l->size = (size_t)n;
}

int slog_open(int dir, struct slog **ret, struct err *e)
{
	struct slog *l = calloc(1, sizeof(*l));
	static const char *const names[] = { "log.0", "log.1" };
	uint64_t seq[2];
	struct stat st;
	int i;

	if (!l)
		return err_errno(e, -ENOMEM, "cannot open the log");
	l->fd[0] = l->fd[1] = -1;
	for (i = 0; i < 2; i++) {
		l->fd[i] = openat(dir, names[i], O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (l->fd[i] < 0) {
			(void)err_errno(e, -errno, "cannot open the log %s", names[i]);
			slog_free(l);
			return e->code;
		}
		seq[i] = seq_of(l->fd[i]);
	}
	l->now = seq[1] > seq[0];
	l->seq = seq[l->now];
	if (l->seq == 0) {
		l->seq = 1;
		start_file(l);
	} else if (fstat(l->fd[l->now], &st) == 0) {
		l->size = (size_t)st.st_size;
	}
	*ret = l;
	return 0;
}

struct slog *slog_free(struct slog *l)
{
	if (!l)
		return NULL;
	(void)fd_close(l->fd[0]);
	(void)fd_close(l->fd[1]);
	free(l);
	return NULL;
}

static void put(struct slog *l, const char *p, size_t n)
{
	if (l->size + n > LOG_FILE_MAX) {
		l->now = !l->now;
		l->seq++;
		start_file(l);
	}
	if (pwrite(l->fd[l->now], p, n, (off_t)l->size) == (ssize_t)n)
		l->size += n;
}

static void put_line(struct slog *l, const char *source, const char *text, size_t len)
{
	char line[1200], stamp[32];
	struct timespec ts;
	struct tm tm;
	size_t n, i;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	(void)strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", gmtime_r(&ts.tv_sec, &tm));
	n = (size_t)snprintf(line, sizeof(line), "%s.%03ldZ %s: ", stamp, ts.tv_nsec / 1000000,
			     source);
	for (i = 0; i < len && n + 2 < sizeof(line); i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f || (c >= 0x80 && c < 0xa0))
			c = '?';
		line[n++] = (char)c;
	}
	line[n++] = '\n';
	put(l, line, n);
}

void slog_say(struct slog *l, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n > 0)
		put_line(l, "bac", text, MIN((size_t)n, sizeof(text) - 1));
}

void slog_bytes(struct slog *l, struct slog_carry *carry, const char *source, const void *p,
		size_t len)
{
	const char *at = p;

	while (len--) {
		char c = *at++;

		if (c == '\r')
			continue;
		if (c != '\n')
			carry->p[carry->n++] = c;
		if (c != '\n' && carry->n < sizeof(carry->p))
			continue;
		if (carry->n)
			put_line(l, source, carry->p, carry->n);
		carry->n = 0;
	}
}
