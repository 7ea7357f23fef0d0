/* The writer. Records become lines at once, with their place in the chain, and lie in memory until a flush appends them with one
 * write. The oldest file goes only after the record that says so is written, and head is
 * written after the lines, a little later at times. So whatever moment the process ends at,
 *  - a line is whole or the last of its file, and then the next writer cuts it off;
 *  - head is at most behind: a head that is ahead of the files means that records were lost;
 *  - a file that is gone has its record; a file that has one and is still there is removed by the next writer's first drop. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "state/audit-priv.h"

struct audit_chain {
	int dir;            /* borrowed */
	int file;           /* the newest, or -1: none yet, or it is full */
	int head;           /* also the lock */
	uint64_t low, high; /* numbers of the oldest and newest file; high 0: none */
	uint64_t size, total;
	uint64_t file_size, total_size;
	uint64_t seq; /* of the newest record, taken up or written */
	char hash[AUDIT_HASH + 1];
	char sandbox[AUDIT_NAME_MAX + 1];
	struct buf pending;
	bool torn; /* a part of the pending lines is in the file */
	bool head_due;
	bool drop_due;   /* the record about low is pending or written */
	uint64_t now_ns; /* time of the last record */
};

static int add(struct audit_chain *c, const struct receipt *r, const struct audit_word *w,
	       uint64_t real_ns)
{
	const struct audit_stamp stamp = { c->seq + 1, real_ns, c->sandbox, c->hash };
	char hash[AUDIT_HASH + 1], *room;
	size_t n;

	if (buf_space(&c->pending) < AUDIT_LINE_MAX)
		return -ENOBUFS;
	room = buf_room(&c->pending, AUDIT_LINE_MAX);
	if (!room)
		return -ENOMEM;
	n = audit_line(room, &stamp, r, w, hash);
	if (!n)
		return -EMSGSIZE;
	buf_added(&c->pending, n);
	c->seq++;
	memcpy(c->hash, hash, sizeof(hash));
	c->head_due = true;
	c->now_ns = real_ns;
	return 0;
}

int audit_chain_add(struct audit_chain *c, const struct receipt *r, uint64_t real_ns)
{
	/* room for the record about a file that goes is kept */
	if (buf_space(&c->pending) < 2UL * AUDIT_LINE_MAX)
		return -ENOBUFS;
	return add(c, r, NULL, real_ns);
}

int audit_chain_note(struct audit_chain *c, const char *note, uint64_t real_ns)
{
	const struct audit_word w = { .event = "note", .note = note };

	return add(c, NULL, &w, real_ns);
}

bool audit_chain_pending(const struct audit_chain *c)
{
	return c->pending.n;
}

bool audit_chain_settled(const struct audit_chain *c)
{
	return !c->pending.n && !c->head_due;
}

bool audit_chain_roomy(const struct audit_chain *c)
{
	/* texts of a datagram grow sixfold at most, and each record has some hundred bytes around them */
	return buf_space(&c->pending) >=
	       6UL * RECEIPT_DATAGRAM_MAX + 1024UL * RECEIPT_BATCH + 4UL * AUDIT_LINE_MAX;
}

/* ---- flushing ---- */

static int file_new(struct audit_chain *c)
{
	char name[AUDIT_FILE_MAX];
	int fd;

	do
		fd = audit_open(c->dir, audit_file_name(name, ++c->high),
				O_WRONLY | O_CREAT | O_EXCL | O_APPEND);
	while (fd == -EEXIST);
	if (fd < 0) {
		c->high--;
		return fd;
	}
	if (!c->low)
		c->low = c->high;
	c->file = fd;
	c->size = 0;
	return 0;
}

static int write_lines(struct audit_chain *c)
{
	if (!c->pending.n)
		return 0;
	if (c->file >= 0 && c->size && !c->torn && c->size + c->pending.n > c->file_size)
		c->file = fd_close(c->file);
	if (c->file < 0) {
		int r = file_new(c);

		if (r < 0)
			return r;
	}
	while (c->pending.n) {
		ssize_t n = write(c->file, buf_data(&c->pending), c->pending.n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		buf_consume(&c->pending, (size_t)n);
		c->size += (uint64_t)n;
		c->total += (uint64_t)n;
		c->torn = c->pending.n;
	}
	return 0;
}

static int write_head(struct audit_chain *c)
{
	char text[128];
	int n;
	ssize_t done;

	if (!c->head_due)
		return 0;
	/* a fixed width, so that it is overwritten in place */
	n = snprintf(text, sizeof(text), "%020llu %s\n", (unsigned long long)c->seq, c->hash);
	done = pwrite(c->head, text, (size_t)n, 0);
	if (done != n)
		return done < 0 ? -errno : -EIO;
	c->head_due = false;
	return 0;
}

/* The sequence number and prev of the first record of a file; 0 and zeros if it has none that can be read. */
static uint64_t first_of(struct audit_chain *c, uint64_t number,
			 char ret_prev[static AUDIT_HASH + 1])
{
	char name[AUDIT_FILE_MAX], line[AUDIT_LINE_MAX];
	_close_ int fd = audit_open(c->dir, audit_file_name(name, number), O_RDONLY | O_NONBLOCK);
	struct audit_record rec;
	ssize_t n = fd < 0 ? -1 : fd_read_all(fd, line, sizeof(line));
	const char *end = n > 0 ? memchr(line, '\n', (size_t)n) : NULL;

	memcpy(ret_prev, audit_zeros, sizeof(audit_zeros));
	if (!end || audit_record_parse(&rec, line, (size_t)(end - line)) < 0)
		return 0;
	memcpy(ret_prev, rec.prev, AUDIT_HASH + 1);
	return rec.seq;
}

static uint64_t size_of(const struct audit_chain *c, uint64_t number)
{
	char name[AUDIT_FILE_MAX];
	_close_ int fd = audit_open(c->dir, audit_file_name(name, number), O_RDONLY | O_NONBLOCK);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* If there is too much: take up the record about the oldest file. 1: it is pending; 0: nothing to do; -errno. */
static int plan_drop(struct audit_chain *c)
{
	char last_hash[AUDIT_HASH + 1], prev[AUDIT_HASH + 1];
	struct audit_word w = { .event = "rotate", .file = c->low, .last_hash = last_hash };
	uint64_t next;
	int r;

	if (c->drop_due || c->total <= c->total_size || c->low >= c->high)
		return 0;
	next = first_of(c, c->low + 1, last_hash);
	w.last = next ? next - 1 : 0;
	w.first = first_of(c, c->low, prev);
	r = add(c, NULL, &w, c->now_ns);
	if (r < 0)
		return r;
	c->drop_due = true;
	return 1;
}

static void drop(struct audit_chain *c)
{
	char name[AUDIT_FILE_MAX];
	uint64_t size;

	if (!c->drop_due)
		return;
	size = size_of(c, c->low);
	(void)unlinkat(c->dir, audit_file_name(name, c->low), 0);
	c->total -= MIN(c->total, size);
	c->low++;
	c->drop_due = false;
}

int audit_chain_flush(struct audit_chain *c)
{
	int r;

	do {
		r = write_lines(c);
		/* what head names must not go before head moves on */
		if (r == 0 && c->drop_due)
			r = write_head(c);
		if (r < 0)
			return r;
		drop(c);
		r = plan_drop(c);
	} while (r > 0);
	return r;
}

int audit_chain_settle(struct audit_chain *c)
{
	int r = audit_chain_flush(c);

	return r < 0 ? r : write_head(c);
}

/* ---- opening: where did the last writer stop? ---- */

/* The last lines of the newest file that has any. */
static int tail_cut(struct audit_chain *c, int fd, uint64_t size, char *line, size_t *ret_n,
		    uint64_t *ret_cut)
{
	char bytes[2 * AUDIT_LINE_MAX];
	const uint64_t from = size - MIN(size, (uint64_t)sizeof(bytes));
	ssize_t n = pread(fd, bytes, sizeof(bytes), (off_t)from);
	const char *end, *start;

	(void)c;
	if (n < 0)
		return -errno;
	end = memrchr(bytes, '\n', (size_t)n);
	*ret_cut = end ? (uint64_t)(bytes + n - end - 1) : from ? UINT64_MAX : (uint64_t)n;
	*ret_n = 0;
	if (!end)
		return 0;
	start = memrchr(bytes, '\n', (size_t)(end - bytes));
	start = start ? start + 1 : bytes;
	if (end - start < AUDIT_LINE_MAX) {
		*ret_n = (size_t)(end - start);
		memcpy(line, start, *ret_n);
	}
	return 0;
}

/* Of the file number: cut it and read its last record into the chain. 1: it has one; 0: it has none; -EBADMSG: it cannot be
 * gone on with. */
static int tail_take(struct audit_chain *c, uint64_t number, uint64_t *ret_cut)
{
	char name[AUDIT_FILE_MAX], line[AUDIT_LINE_MAX];
	_close_ int fd =
		audit_open(c->dir, audit_file_name(name, number), O_RDWR | O_APPEND | O_NONBLOCK);
	struct audit_record rec;
	struct stat st;
	uint64_t cut = 0;
	size_t n = 0;
	int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EBADMSG;

	if (r == 0)
		r = tail_cut(c, fd, (uint64_t)st.st_size, line, &n, &cut);
	if (r < 0)
		return r;
	if (cut == UINT64_MAX)
		return -EBADMSG;
	if (cut && ftruncate(fd, st.st_size - (off_t)cut) < 0)
		return -errno;
	*ret_cut += cut;
	c->total -= cut;
	c->size = (uint64_t)st.st_size - cut;
	if (!c->size)
		return 0;
	if (!n || audit_record_parse(&rec, line, n) < 0)
		return -EBADMSG;
	c->seq = rec.seq;
	memcpy(c->hash, rec.hash, AUDIT_HASH + 1);
	if (number == c->high)
		c->file = take_fd(&fd);
	return 1;
}

/* Notes for the chain: what was found amiss. */
struct found {
	uint64_t cut;
	bool unreadable;
};

static int recover(struct audit_chain *c, struct found *f)
{
	_free_ uint64_t *v = NULL;
	size_t n = 0;
	int r = audit_files(c->dir, &v, &n);

	if (r < 0 || !n)
		return r;
	c->low = v[0];
	c->high = v[n - 1];
	for (size_t i = 0; i < n; i++)
		c->total += size_of(c, v[i]);
	for (r = 0; r == 0 && n--;)
		r = tail_take(c, v[n], &f->cut);
	f->unreadable = r == -EBADMSG;
	return r == -EBADMSG ? 0 : MIN(r, 0);
}

/* What the head knows and the files do not is lost. The chain goes on behind it, so that it stays visible. */
static int compare_head(struct audit_chain *c, const struct found *f, uint64_t now)
{
	char hash[AUDIT_HASH + 1], text[160];
	uint64_t seq = 0;
	int r = audit_head_read(c->dir, &seq, hash);
	const uint64_t had = c->seq;

	if (r < 0 && r != -ENOENT && r != -EBADMSG)
		return r;
	if (r == 0 && (seq > c->seq || f->unreadable)) {
		c->seq = seq;
		memcpy(c->hash, hash, sizeof(hash));
	}
	if (f->unreadable)
		r = audit_chain_note(c, "the end of the log could not be read", now);
	else if (c->seq > had && had)
		(void)snprintf(text, sizeof(text), "records %llu to %llu are missing",
			       (unsigned long long)had + 1, (unsigned long long)c->seq);
	else if (c->seq > had)
		(void)snprintf(text, sizeof(text), "all files were missing, up to record %llu",
			       (unsigned long long)c->seq);
	if (!f->unreadable)
		r = c->seq > had ? audit_chain_note(c, text, now) : 0;
	if (r == 0 && f->cut) {
		(void)snprintf(text, sizeof(text),
			       "a record of %llu bytes was not finished and was cut off",
			       (unsigned long long)f->cut);
		r = audit_chain_note(c, text, now);
	}
	return r;
}

static int write_name(struct audit_chain *c)
{
	_close_ int fd = audit_open(c->dir, AUDIT_NAME, O_WRONLY | O_CREAT | O_TRUNC);
	char text[AUDIT_NAME_MAX + 2];
	int n = snprintf(text, sizeof(text), "%s\n", c->sandbox);

	return fd < 0 ? fd : fd_write_all(fd, text, (size_t)n);
}

static int begin(struct audit_chain *c)
{
	struct found f = { 0 };
	int r;

	c->head = audit_open(c->dir, AUDIT_HEAD, O_RDWR | O_CREAT | O_NONBLOCK);
	if (c->head < 0)
		return c->head;
	if (flock(c->head, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	r = write_name(c);
	if (r == 0)
		r = recover(c, &f);
	if (r == 0)
		r = compare_head(c, &f, fd_real_ns());
	/* a file that cannot be gone on with stays as it is */
	if (f.unreadable)
		c->file = fd_close(c->file);
	c->head_due = true;
	return r;
}

int audit_chain_open(int dir, const struct audit_config *config, struct audit_chain **ret)
{
	_cleanup_(audit_chain_closep) struct audit_chain *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->dir = dir;
	c->file = c->head = -1;
	c->file_size = MAX(config->file_size, (uint64_t)AUDIT_LINE_MAX);
	c->total_size = MAX(config->total_size, 2 * c->file_size);
	memcpy(c->hash, audit_zeros, sizeof(audit_zeros));
	buf_init(&c->pending, AUDIT_PENDING_MAX);
	r = text_copy(c->sandbox, sizeof(c->sandbox), config->sandbox);
	if (r == 0)
		r = begin(c);
	if (r < 0)
		return r;
	*ret = take_ptr(c);
	return 0;
}

struct audit_chain *audit_chain_close(struct audit_chain *c)
{
	if (!c)
		return NULL;
	if (c->head >= 0 && audit_chain_settle(c) == 0 && c->file >= 0)
		(void)fdatasync(c->file);
	if (c->head >= 0)
		(void)fdatasync(c->head);
	c->file = fd_close(c->file);
	c->head = fd_close(c->head);
	buf_done(&c->pending);
	free(c);
	return NULL;
}
