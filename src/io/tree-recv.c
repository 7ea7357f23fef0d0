/* A copy stream into the file system. */
#include "io/tree-dest.h"
#include "io/tree-in.h"

struct recv {
	struct tree_in in;
	struct tree_dest dest;
	struct tree_count count;
	uint64_t max_bytes, max_entries;
};

static int recv_file(struct recv *t, const struct copy_record *m, struct err *e)
{
	struct tree_data data;
	int r;

	r = tree_dest_file(&t->dest, m, e);
	if (r < 0)
		return r;
	t->count.files++;
	while ((r = tree_in_data(&t->in, &data, e)) > 0) {
		r = tree_dest_write(&t->dest, data.offset, data.p, data.n, e);
		if (r < 0)
			return r;
		t->count.bytes += data.n;
		if (t->max_bytes && t->count.bytes > t->max_bytes)
			return err_set(e, -EFBIG, "it holds more than %llu MiB",
				       (unsigned long long)t->max_bytes / 1024 / 1024);
	}
	return r;
}

static int recv_entry(struct recv *t, const struct copy_record *m, struct err *e)
{
	if (t->max_entries && t->count.files + t->count.dirs + t->count.links >= t->max_entries)
		return err_set(e, -EFBIG, "it holds more than %llu files",
			       (unsigned long long)t->max_entries);
	switch (m->kind) {
	case COPY_DIR:
		t->count.dirs++;
		/* the top was made with the destination */
		return m->path[0] ? tree_dest_dir(&t->dest, m, e) : 0;
	case COPY_FILE:
		return recv_file(t, m, e);
	case COPY_LINK:
		t->count.links++;
		return tree_dest_link(&t->dest, m, e);
	default:
		t->count.links++;
		return tree_dest_hard(&t->dest, m, e);
	}
}

/* Each file takes its name only when the record after it has come: if that is an ERROR it may be
 * about this very file. */
static int recv_entries(struct recv *t, struct copy_record *m, struct err *e)
{
	int r;

	for (;;) {
		r = recv_entry(t, m, e);
		if (r < 0)
			return r;
		r = tree_in_next(&t->in, m, e);
		if (r < 0)
			return r;
		if (tree_dest_commit(&t->dest, e) < 0)
			return e->code;
		if (r == 0)
			return 0;
	}
}

static int recv_tree(struct recv *t, const char *dest, const struct tree_recv_opts *o,
		     struct err *e)
{
	struct copy_record m;
	struct err second;
	int r, k;

	r = tree_in_next(&t->in, &m, e);
	if (r < 0)
		return r;
	if (!t->in.top[0] != o->content)
		return err_set(e, -EPROTO,
			       "nothing was copied: what was sent is not what was asked for");
	r = tree_dest_open(&t->dest, dest, o, o->name ? o->name : t->in.top, &m, e);
	if (r == 0)
		r = recv_entries(t, &m, e);
	tree_dest_drop(&t->dest);
	/* also what is left of a failed copy can be entered, as far as that was meant */
	k = tree_dest_finish(&t->dest, r < 0 ? &second : e);
	tree_dest_done(&t->dest);
	return r < 0 ? r : k;
}

int tree_recv(int in_fd, const char *dest, const struct tree_recv_opts *o,
	      struct tree_count *ret_count, struct err *e)
{
	struct recv t = { .max_bytes = o->max_bytes, .max_entries = o->max_entries };
	int r;

	tree_in_init(&t.in, in_fd);
	r = recv_tree(&t, dest, o, e);
	tree_in_done(&t.in);
	if (ret_count)
		*ret_count = t.count;
	return r;
}
