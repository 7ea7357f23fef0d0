/* Directory listing. All names are read before the first is used: an order that does not change
 * from run to run, and no open directory for each level of the tree. */
#include "io/tree-names.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "io/fd.h"

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_all(DIR *dir, struct buf *text, size_t *ret_n)
{
	struct dirent *d;
	size_t n = 0;
	int r;

	for (;;) {
		errno = 0;
		d = readdir(dir);
		if (!d)
			break;
		if (streq(d->d_name, ".") || streq(d->d_name, ".."))
			continue;
		r = buf_add(text, d->d_name, strlen(d->d_name) + 1);
		if (r < 0)
			return r;
		n++;
	}
	*ret_n = n;
	return -errno;
}

static DIR *open_again(int fd)
{
	_close_ int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	DIR *dir = own < 0 ? NULL : fdopendir(own);

	if (dir) {
		(void)take_fd(&own);
		rewinddir(dir);
	}
	return dir;
}

int tree_names_read(struct tree_names *ret, int fd)
{
	struct tree_names m = { 0 };
	struct buf text = BUF_INIT(SIZE_MAX / 4);
	DIR *dir = open_again(fd);
	size_t i;
	char *at;
	int r;

	if (!dir)
		return -errno;
	r = read_all(dir, &text, &m.n);
	(void)closedir(dir);
	if (r == 0)
		m.v = calloc(m.n + 1, sizeof(*m.v));
	if (!m.v) {
		buf_done(&text);
		return r < 0 ? r : -ENOMEM;
	}
	m.text = (char *)text.p; /* nothing was consumed: this is the start */
	for (i = 0, at = m.text; i < m.n; i++, at += strlen(at) + 1)
		m.v[i] = at;
	qsort(m.v, m.n, sizeof(*m.v), by_bytes);
	*ret = m;
	return 0;
}

void tree_names_done(struct tree_names *n)
{
	free(n->v);
	free(n->text);
	*n = (struct tree_names) { 0 };
}
