/* A ZIP archive as a copy stream. */
#include "archive/zip.h"
#include "io/fd.h"
#include "io/tree-out.h"

static int send_file(struct tree_out *out, const struct zip *z, const struct zip_entry *f,
		     struct buf *bytes, struct err *e)
{
	struct copy_record m = { .kind = COPY_FILE,
				 .mode = f->exec ? 0755 : 0644,
				 .size = f->size,
				 .path = f->name,
				 .target = "" };
	uint64_t at = 0;
	int r;

	buf_consume(bytes, bytes->n);
	r = zip_data(z, f, bytes, e);
	if (r == 0)
		r = tree_out_record(out, &m, e);
	while (r == 0 && at < f->size) {
		uint8_t *room = tree_out_room(out, e);
		size_t n = MIN(f->size - at, (uint64_t)TREE_CHUNK);

		if (!room)
			return e->code;
		memcpy(room, buf_data(bytes) + at, n);
		tree_out_extent(out, at, n);
		at += n;
	}
	return r == 0 ? tree_out_close(out, f->size, e) : r;
}

/* Folders that have no entry of their own are made before what is in them. */
static int send_parents(struct tree_out *out, const char *name, const char *before, struct err *e)
{
	char dir[ZIP_NAME_MAX + 1];
	struct copy_record m = { .kind = COPY_DIR, .mode = 0755, .path = dir, .target = "" };
	const char *slash;
	int r = 0;

	for (slash = strchr(name, '/'); slash && r == 0; slash = strchr(slash + 1, '/')) {
		size_t n = (size_t)(slash - name);

		if (before && !strncmp(before, name, n + 1))
			continue;
		memcpy(dir, name, n);
		dir[n] = '\0';
		r = tree_out_record(out, &m, e);
	}
	return r;
}

static int send_all(struct tree_out *out, const struct zip *z, struct err *e)
{
	struct copy_record top = { .kind = COPY_DIR, .mode = 0755, .path = "", .target = "" };
	struct buf bytes = BUF_INIT(ZIP_BYTES_MAX + 1);
	int r = tree_out_record(out, &top, e);

	for (size_t i = 0; i < z->n_v && r == 0; i++) {
		struct copy_record dir = {
			.kind = COPY_DIR, .mode = 0755, .path = z->v[i].name, .target = ""
		};

		r = send_parents(out, z->v[i].name, i ? z->v[i - 1].name : NULL, e);
		if (r == 0)
			r = z->v[i].dir ? tree_out_record(out, &dir, e)
					: send_file(out, z, &z->v[i], &bytes, e);
	}
	buf_done(&bytes);
	return r == 0 ? tree_out_end(out, e) : r;
}

static int read_in(int fd, struct buf *in, struct err *e)
{
	enum { STEP = 256 * 1024 };

	for (;;) {
		void *to = buf_room(in, STEP);
		ssize_t n;

		if (!to)
			return err_set(e, -EFBIG, "the ZIP is larger than %d MiB",
				       ZIP_FILE_MAX / 1024 / 1024);
		n = fd_read_all(fd, to, STEP);
		if (n < 0)
			return err_errno(e, (int)n, "cannot read the ZIP");
		if (n == 0)
			return 0;
		buf_added(in, (size_t)n);
	}
}

int zip_to_copy(int in_fd, int out_fd, struct err *e)
{
	struct buf in = BUF_INIT(ZIP_FILE_MAX + 512 * 1024);
	struct tree_out out;
	struct zip z = { 0 };
	int r = tree_out_init(&out, out_fd, e);

	if (r == 0) {
		r = read_in(in_fd, &in, e);
		if (r == 0)
			r = zip_read(buf_data(&in), in.n, &z, e);
		if (r == 0)
			r = send_all(&out, &z, e);
		if (r < 0)
			tree_out_fail(&out, e);
	}
	zip_done(&z);
	tree_out_done(&out);
	buf_done(&in);
	return r;
}
