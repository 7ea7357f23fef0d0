/* The reader: files in the order of their numbers, line by line through one buffer. At the end of a file it looks for a newer
 * one; since a writer closes a file before it makes the next, the old one is read to its end once more then. */
#include <fcntl.h>
#include <unistd.h>

#include "state/audit-priv.h"

enum { BUFFER = 4 * AUDIT_LINE_MAX };

struct audit_reader {
	int dir, fd;
	struct audit_place at; /* of the line that comes next */
	uint64_t next;         /* a newer file that there is; 0: not known */
	size_t start, n;       /* unread bytes of the buffer */
	bool skipping;         /* the rest of a line that is too long */
	bool unfinished;       /* the last line of a file that has a successor */
	char p[BUFFER];
};

int audit_reader_new(int dir, struct audit_reader **ret)
{
	struct audit_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->dir = dir;
	r->fd = -1;
	*ret = r;
	return 0;
}

struct audit_reader *audit_reader_free(struct audit_reader *r)
{
	if (r)
		(void)fd_close(r->fd);
	free(r);
	return NULL;
}

size_t audit_reader_rest(const struct audit_reader *r)
{
	return r->n;
}

/* The lowest number above the file that is being read; 0: none. */
static int find_next(struct audit_reader *r, uint64_t *ret)
{
	_free_ uint64_t *v = NULL;
	size_t n = 0;
	int e = audit_files(r->dir, &v, &n);

	*ret = 0;
	for (size_t i = 0; e == 0 && i < n && !*ret; i++)
		if (v[i] > r->at.file)
			*ret = v[i];
	return e;
}

/* 1: there is another file, now open; 0: read this one again, or there is none. */
static int move_on(struct audit_reader *r)
{
	char name[AUDIT_FILE_MAX];
	int e, fd;

	if (!r->next) {
		e = find_next(r, &r->next);
		if (e < 0 || !r->next)
			return e;
		if (r->fd >= 0)
			return 1; /* once more: what came to its end before the new one was made */
	}
	if (r->n || r->skipping) {
		r->n = r->start = 0;
		r->skipping = false;
		r->unfinished = true;
		return 0;
	}
	fd = audit_open(r->dir, audit_file_name(name, r->next), O_RDONLY | O_NONBLOCK);
	if (fd == -ENOENT) { /* it went meanwhile */
		r->at.file = r->next;
		r->next = 0;
		return 1;
	}
	if (fd < 0)
		return fd;
	(void)fd_close(r->fd);
	r->fd = fd;
	r->at = (struct audit_place) { .file = r->next, .line = 1 };
	r->next = 0;
	return 1;
}

/* More bytes, at the end of the buffer. 1: some; 0: none for now; -errno. */
static int fill(struct audit_reader *r)
{
	ssize_t n;
	int e;

	memmove(r->p, r->p + r->start, r->n);
	r->start = 0;
	for (;;) {
		n = r->fd < 0 ? 0 : read(r->fd, r->p + r->n, sizeof(r->p) - r->n);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			r->n += (size_t)n;
			return 1;
		}
		e = n < 0 ? 1 : move_on(r);
		if (e <= 0)
			return e;
	}
}

int audit_reader_next(struct audit_reader *r, const char **ret_line, size_t *ret_n,
		      struct audit_place *ret_place)
{
	for (;;) {
		const char *p = r->p + r->start, *end = memchr(p, '\n', r->n);
		const size_t len = end ? (size_t)(end - p) : r->n;
		const bool was = r->skipping;
		int e;

		if (end) {
			*ret_place = r->at;
			*ret_line = p;
			*ret_n = len;
			r->start += len + 1;
			r->n -= len + 1;
			r->at.line++;
			r->skipping = false;
			return was || len >= AUDIT_LINE_MAX ? AUDIT_BAD : AUDIT_LINE;
		}
		if (r->n >= AUDIT_LINE_MAX) {
			r->skipping = true;
			r->n = 0;
			r->start = 0;
		}
		e = fill(r);
		if (e < 0 || (e == 0 && !r->unfinished))
			return e;
		if (r->unfinished) {
			r->unfinished = false;
			*ret_place = r->at;
			*ret_n = 0;
			return AUDIT_BAD;
		}
	}
}
