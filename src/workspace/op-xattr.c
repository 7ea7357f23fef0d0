/* Extended attributes: user.* as they are, POSIX ACLs with the agent's id for the user's. Others are not
 * there for the guest: what security.* means on the host is no business of a guest's.
 *
 * There is no system call for the attributes of a descriptor that was opened for its path only, so they
 * are asked for by its name in /proc/self/fd, which is the working directory (fs.h). */
#include <endian.h>
#include <sys/xattr.h>

#include "base/base.h"
#include "workspace/ops.h"
#include "workspace/place.h"
#include "workspace/ruling.h"

#define ACL_VERSION 2U
#define ACL_USER    0x02
#define ACL_GROUP   0x08

struct acl_entry { /* behind a le32 version; all little endian */
	uint16_t tag, perm;
	uint32_t id;
};

static bool is_acl(const char *name)
{
	return streq(name, "system.posix_acl_access") || streq(name, "system.posix_acl_default");
}

static bool served(const char *name)
{
	return is_acl(name) || (starts_with(name, "user.") && name[5]);
}

enum way { TO_GUEST, TO_HOST };

static void map_id(uint32_t *id, uint32_t own, enum way w)
{
	uint32_t host = le32toh(*id);

	if (w == TO_GUEST && host == own)
		*id = htole32(FS_AGENT_ID);
	else if (w == TO_HOST && host == FS_AGENT_ID)
		*id = htole32(own);
}

/* The ids of an ACL in place. -EINVAL: it is none. */
static int map_acl(const struct fs *f, uint8_t *p, size_t n, enum way w)
{
	struct acl_entry e;
	uint32_t version;
	size_t at;

	if (n < sizeof(version) || (n - sizeof(version)) % sizeof(e))
		return -EINVAL;
	memcpy(&version, p, sizeof(version));
	if (le32toh(version) != ACL_VERSION)
		return -EINVAL;
	for (at = sizeof(version); at < n; at += sizeof(e)) {
		memcpy(&e, p + at, sizeof(e));
		if (le16toh(e.tag) == ACL_USER)
			map_id(&e.id, f->cfg.uid, w);
		else if (le16toh(e.tag) == ACL_GROUP)
			map_id(&e.id, f->cfg.gid, w);
		memcpy(p + at, &e, sizeof(e));
	}
	return 0;
}

/* A value, or the list: what was asked for, or how long it is. */
static ssize_t put_value(struct fs *f, const struct call *c, uint32_t size, ssize_t len)
{
	struct fuse_getxattr_out out = { .size = (uint32_t)len };

	if (!size)
		return call_put(c, &out, sizeof(out));
	if ((size_t)len > size)
		return -ERANGE;
	return call_put(c, f->out, (size_t)len);
}

ssize_t op_getxattr(struct fs *f, struct call *c)
{
	const struct fuse_getxattr_in *in = c->m.arg;
	_place_ struct place p = { .own = -1 };
	ssize_t len;
	int r;

	if (!served(c->m.name))
		return -EOPNOTSUPP;
	if (c->n == f->root)
		return -ENODATA;
	r = ruling_hides(f, c->n) ? -EACCES : place_node(f, c->n, &p);
	if (r < 0)
		return r;
	len = getxattr(p.text, c->m.name, f->out, sizeof(f->out));
	if (len < 0)
		return -errno;
	if (is_acl(c->m.name) && map_acl(f, f->out, (size_t)len, TO_GUEST) < 0)
		return -EOPNOTSUPP;
	return put_value(f, c, in->size, len);
}

ssize_t op_setxattr(struct fs *f, struct call *c)
{
	/* its length is the short form's: size and flags */
	const struct fuse_setxattr_in *in = c->m.arg;
	uint8_t *value = f->out;
	_place_ struct place p = { .own = -1 };
	int r;

	if (!served(c->m.name))
		return -EOPNOTSUPP;
	if (in->size != c->m.data_len || in->size > sizeof(f->out))
		return -EINVAL;
	r = ruling_change(f, c->m.op, c->n);
	if (r == 0)
		r = place_node(f, c->n, &p);
	if (r < 0)
		return r;
	memcpy(value, c->m.data, in->size);
	if (is_acl(c->m.name) && map_acl(f, value, in->size, TO_HOST) < 0)
		return -EINVAL;
	return setxattr(p.text, c->m.name, value, in->size, (int)in->flags) < 0 ? -errno : 0;
}

/* Keep the names that are served; the new length. */
static size_t sift(char *list, size_t len)
{
	size_t at, kept = 0, n;

	for (at = 0; at < len; at += n) {
		n = strnlen(list + at, len - at) + 1;
		if (n > len - at)
			break;
		if (!served(list + at))
			continue;
		memmove(list + kept, list + at, n);
		kept += n;
	}
	return kept;
}

ssize_t op_listxattr(struct fs *f, struct call *c)
{
	const struct fuse_getxattr_in *in = c->m.arg;
	_place_ struct place p = { .own = -1 };
	ssize_t len = 0;
	int r;

	/* a hidden file has none: who lists a folder with them, as docker build does before it knows which files it leaves out, would
	 * end with an error */
	if (c->n != f->root && !ruling_hides(f, c->n)) {
		r = place_node(f, c->n, &p);
		if (r < 0)
			return r;
		len = listxattr(p.text, (char *)f->out, sizeof(f->out));
		if (len < 0)
			return -errno;
	}
	return put_value(f, c, in->size, (ssize_t)sift((char *)f->out, (size_t)len));
}

ssize_t op_removexattr(struct fs *f, struct call *c)
{
	_place_ struct place p = { .own = -1 };
	int r;

	if (!served(c->m.name))
		return -EOPNOTSUPP;
	r = ruling_change(f, c->m.op, c->n);
	if (r == 0)
		r = place_node(f, c->n, &p);
	if (r < 0)
		return r;
	return removexattr(p.text, c->m.name) < 0 ? -errno : 0;
}
