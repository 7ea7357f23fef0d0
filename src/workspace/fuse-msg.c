/* What each opcode carries, as a table, and the one reader for all of them. */
#include "workspace/fuse-msg.h"

enum text { T_NONE = 0, T_NAME, T_TARGET, T_XATTR, T_ANY };

struct shape {
	const char *op;
	uint16_t arg;     /* bytes of the struct */
	uint16_t arg_max; /* if it may be longer (INIT): the most that is read */
	uint8_t text[2];  /* enum text */
	bool data;        /* bytes may follow */
	bool known;
};

#define S(name, ...) [FUSE_##name] = { .op = #name, .known = true, __VA_ARGS__ }
#define ARG(type)    .arg = sizeof(struct type)

static const struct shape shapes[] = {
	S(LOOKUP, .text = { T_NAME }),
	S(FORGET, ARG(fuse_forget_in)),
	S(GETATTR, ARG(fuse_getattr_in)),
	S(SETATTR, ARG(fuse_setattr_in)),
	S(READLINK, .arg = 0),
	S(SYMLINK, .text = { T_NAME, T_TARGET }),
	S(MKNOD, ARG(fuse_mknod_in), .text = { T_NAME }),
	S(MKDIR, ARG(fuse_mkdir_in), .text = { T_NAME }),
	S(UNLINK, .text = { T_NAME }),
	S(RMDIR, .text = { T_NAME }),
	S(RENAME, ARG(fuse_rename_in), .text = { T_NAME, T_NAME }),
	S(LINK, ARG(fuse_link_in), .text = { T_NAME }),
	S(OPEN, ARG(fuse_open_in)),
	S(READ, ARG(fuse_read_in)),
	S(WRITE, ARG(fuse_write_in), .data = true),
	S(STATFS, .arg = 0),
	S(RELEASE, ARG(fuse_release_in)),
	S(FSYNC, ARG(fuse_fsync_in)),
	/* the short form: the long one (SETXATTR_EXT) is not negotiated */
	S(SETXATTR, .arg = FUSE_COMPAT_SETXATTR_IN_SIZE, .text = { T_XATTR }, .data = true),
	S(GETXATTR, ARG(fuse_getxattr_in), .text = { T_XATTR }),
	S(LISTXATTR, ARG(fuse_getxattr_in)),
	S(REMOVEXATTR, .text = { T_XATTR }),
	S(FLUSH, ARG(fuse_flush_in)),
	/* 16 bytes before 7.36, and it may grow again */
	S(INIT, .arg = 16, .arg_max = sizeof(struct fuse_init_in), .data = true),
	S(OPENDIR, ARG(fuse_open_in)),
	S(READDIR, ARG(fuse_read_in)),
	S(RELEASEDIR, ARG(fuse_release_in)),
	S(FSYNCDIR, ARG(fuse_fsync_in)),
	S(GETLK, ARG(fuse_lk_in)),
	S(SETLK, ARG(fuse_lk_in)),
	S(SETLKW, ARG(fuse_lk_in)),
	S(CREATE, ARG(fuse_create_in), .text = { T_NAME }),
	S(INTERRUPT, ARG(fuse_interrupt_in)),
	S(DESTROY, .arg = 0),
	S(BATCH_FORGET, ARG(fuse_batch_forget_in), .data = true),
	S(FALLOCATE, ARG(fuse_fallocate_in)),
	S(READDIRPLUS, ARG(fuse_read_in)),
	S(RENAME2, ARG(fuse_rename2_in), .text = { T_NAME, T_NAME }),
	S(LSEEK, ARG(fuse_lseek_in)),
	S(COPY_FILE_RANGE, ARG(fuse_copy_file_range_in)),
	S(SYNCFS, ARG(fuse_syncfs_in)),
	/* the name is "/" and says nothing */
	S(TMPFILE, ARG(fuse_create_in), .text = { T_ANY }),
};

static const size_t text_max[] = {
	[T_NAME] = FUSE_MSG_NAME_MAX,
	[T_TARGET] = FUSE_MSG_TARGET_MAX,
	[T_XATTR] = FUSE_MSG_XATTR_MAX,
	[T_ANY] = FUSE_MSG_NAME_MAX,
};

struct in {
	const uint8_t *p;
	size_t n;
};

static const void *take(struct in *i, size_t len)
{
	const uint8_t *p = i->p;

	if (i->n < len)
		return NULL;
	i->p += len;
	i->n -= len;
	return p;
}

static enum fuse_msg_answer take_text(const char **ret, enum text kind, struct in *i)
{
	const uint8_t *end = i->n ? memchr(i->p, 0, i->n) : NULL;
	const char *s;
	size_t len;

	if (!end)
		return FUSE_MSG_E_BODY;
	len = (size_t)(end - i->p);
	if (len > text_max[kind])
		return FUSE_MSG_E_LONG;
	s = take(i, len + 1);
	if (kind != T_ANY && !len)
		return FUSE_MSG_E_NAME;
	if (kind == T_NAME && (streq(s, ".") || streq(s, "..") || strchr(s, '/')))
		return FUSE_MSG_E_NAME;
	*ret = s;
	return FUSE_MSG_OK;
}

static const struct shape *shape_of(uint32_t opcode)
{
	return opcode < ARRAY_SIZE(shapes) && shapes[opcode].known ? &shapes[opcode] : NULL;
}

size_t fuse_msg_head(uint32_t opcode, size_t total)
{
	size_t head = sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in);

	return opcode == FUSE_WRITE && total > head ? head : total;
}

static enum fuse_msg_answer parse_body(struct fuse_msg *m, const struct shape *s, struct in i)
{
	const char **text[] = { &m->name, &m->name2 };
	enum fuse_msg_answer ans;
	size_t k;

	m->arg_len = s->arg_max ? MIN(i.n, s->arg_max) : s->arg;
	if (m->arg_len < s->arg)
		return FUSE_MSG_E_BODY;
	m->arg = take(&i, m->arg_len);
	if (!m->arg)
		return FUSE_MSG_E_BODY;
	for (k = 0; k < ARRAY_SIZE(text) && s->text[k]; k++) {
		ans = take_text(text[k], s->text[k], &i);
		if (ans != FUSE_MSG_OK)
			return ans;
	}
	if (i.n && !s->data)
		return FUSE_MSG_E_BODY;
	m->data = i.p;
	m->data_len = i.n;
	return FUSE_MSG_OK;
}

enum fuse_msg_answer fuse_msg_parse(struct fuse_msg *m, const void *p, size_t head, size_t total)
{
	struct in i = { .p = p, .n = head };
	const struct shape *s;
	const void *h = take(&i, sizeof(m->h));

	*m = (struct fuse_msg) { .op = "?" };
	if (!h)
		return FUSE_MSG_E_HEADER;
	memcpy(&m->h, h, sizeof(m->h));
	if (m->h.len != total)
		return FUSE_MSG_E_HEADER;
	s = shape_of(m->h.opcode);
	if (!s)
		return FUSE_MSG_E_UNKNOWN;
	m->op = s->op;
	if (m->h.total_extlen)
		return FUSE_MSG_E_BODY; /* extensions are not negotiated */
	return parse_body(m, s, i);
}
