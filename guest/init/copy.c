/* A copy is done as root, since the user may name any path; what it makes belongs to the user. */
#include "guest/init/copy.h"

#include "guest/init/spawn.h"
#include "guest/init/user.h"
#include "io/tree.h"

static int find_owner(const char *spec, struct user *ret, struct err *e)
{
	static char passwd[USER_FILE_MAX], group[USER_FILE_MAX];
	struct user_files f = { .passwd = passwd, .group = group };

	f.passwd_len = user_read("/etc/passwd", passwd, sizeof(passwd));
	f.group_len = user_read("/etc/group", group, sizeof(group));
	return user_find(ret, &f, spec, e);
}

static int copy_in(void *ctx, int data, int report)
{
	const struct wire_copy *m = ctx;
	struct tree_recv_opts o = { .set_owner = true };
	struct user u;
	struct err e;
	int r = find_owner(m->user, &u, &e);

	o.content = m->flags & COPY_CONTENT || !*m->name;
	o.name = *m->name ? m->name : NULL;
	o.to_dir = m->flags & COPY_TO_DIR;
	if (r == 0) {
		o.uid = u.uid;
		o.gid = u.gid;
		r = tree_recv(data, m->path, &o, NULL, &e);
	}
	if (r < 0)
		spawn_report(report, 1, e.msg);
	return r < 0;
}

static int copy_out(void *ctx, int data, int report)
{
	const struct wire_copy *m = ctx;
	struct tree_send_opts o = { .follow = m->flags & COPY_FOLLOW,
				    .content = m->flags & COPY_CONTENT };
	struct err e;
	int r = tree_send(data, m->path, &o, NULL, &e);

	if (r < 0)
		spawn_report(report, 1, e.msg);
	return r < 0;
}

pid_t copy_start(bool in, const struct wire_copy *m, int data, int *ret_report)
{
	return spawn_fn(data, in ? copy_in : copy_out, (void *)m, ret_report);
}
