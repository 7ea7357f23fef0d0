/* Requests at the edges: every length of every opcode, names that cannot be. */
#include "workspace/fuse-msg.h"

#include "base/check.h"

static _Alignas(8) uint8_t req[FUSE_MSG_MAX + 8];
static uint8_t *copy; /* of the last request, exactly as long */

static enum fuse_msg_answer parse(struct fuse_msg *m, uint32_t op, const void *body, size_t n)
{
	struct fuse_in_header h = { .len = (uint32_t)(sizeof(h) + n), .opcode = op, .nodeid = 1 };
	uint8_t *p = malloc(sizeof(h) + n);

	free(copy);
	copy = p;
	check(p && sizeof(h) + n <= sizeof(req));
	memcpy(p, &h, sizeof(h));
	if (n)
		memcpy(p + sizeof(h), body, n);
	return fuse_msg_parse(m, p, fuse_msg_head(op, h.len), h.len);
}

static void lengths(void)
{
	static const struct {
		uint32_t op;
		size_t len;
	} plain[] = { { FUSE_FORGET, 8 },   { FUSE_GETATTR, 16 },   { FUSE_SETATTR, 88 },
		      { FUSE_READLINK, 0 }, { FUSE_OPEN, 8 },       { FUSE_READ, 40 },
		      { FUSE_STATFS, 0 },   { FUSE_RELEASE, 24 },   { FUSE_FSYNC, 16 },
		      { FUSE_FLUSH, 24 },   { FUSE_OPENDIR, 8 },    { FUSE_READDIR, 40 },
		      { FUSE_GETLK, 48 },   { FUSE_INTERRUPT, 8 },  { FUSE_DESTROY, 0 },
		      { FUSE_LSEEK, 24 },   { FUSE_FALLOCATE, 32 }, { FUSE_COPY_FILE_RANGE, 56 },
		      { FUSE_SYNCFS, 8 },   { FUSE_LISTXATTR, 8 } };
	uint8_t body[256] = { 0 };
	struct fuse_msg m;
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(plain); i++)
		for (n = 0; n < 100; n++)
			check(parse(&m, plain[i].op, body, n) ==
			      (n == plain[i].len ? FUSE_MSG_OK : FUSE_MSG_E_BODY));
	for (n = 0; n < 100; n++) {
		check(parse(&m, FUSE_INIT, body, n) == (n < 16 ? FUSE_MSG_E_BODY : FUSE_MSG_OK));
		check(n < 16 || m.arg_len == MIN(n, sizeof(struct fuse_init_in)));
		check(parse(&m, FUSE_WRITE, body, n) == (n < 40 ? FUSE_MSG_E_BODY : FUSE_MSG_OK));
		check(parse(&m, FUSE_BATCH_FORGET, body, n) ==
		      (n < 8 ? FUSE_MSG_E_BODY : FUSE_MSG_OK));
	}
}

static enum fuse_msg_answer lookup(struct fuse_msg *m, const char *s, size_t n)
{
	return parse(m, FUSE_LOOKUP, s, n);
}

static void names(void)
{
	struct fuse_msg m;
	char s[300];

	memset(s, 'a', sizeof(s));
	s[255] = 0;
	check(lookup(&m, s, 256) == FUSE_MSG_OK && strlen(m.name) == 255);
	s[255] = 'a';
	s[256] = 0;
	check(lookup(&m, s, 257) == FUSE_MSG_E_LONG);
	check(lookup(&m, "a", 1) == FUSE_MSG_E_BODY);    /* no NUL */
	check(lookup(&m, "a\0b", 4) == FUSE_MSG_E_BODY); /* more behind it */
	check(lookup(&m, "", 1) == FUSE_MSG_E_NAME && lookup(&m, "", 0) == FUSE_MSG_E_BODY);
	check(lookup(&m, ".", 2) == FUSE_MSG_E_NAME && lookup(&m, "..", 3) == FUSE_MSG_E_NAME);
	check(lookup(&m, "...", 4) == FUSE_MSG_OK && lookup(&m, "a/", 3) == FUSE_MSG_E_NAME);
	check(parse(&m, FUSE_SYMLINK, "n\0../t", 7) == FUSE_MSG_OK);
	check(streq(m.name, "n") && streq(m.name2, "../t"));
	check(parse(&m, FUSE_SYMLINK, "n\0", 3) == FUSE_MSG_E_NAME);
	check(parse(&m, FUSE_SYMLINK, "n", 2) == FUSE_MSG_E_BODY);
	check(parse(&m, FUSE_RENAME, "12345678a\0b", 12) == FUSE_MSG_OK && streq(m.name2, "b"));
	check(parse(&m, FUSE_RENAME, "12345678a\0..", 13) == FUSE_MSG_E_NAME);
	check(parse(&m, FUSE_SETXATTR, "12345678user.x\0val", 18) == FUSE_MSG_OK);
	check(streq(m.name, "user.x") && m.data_len == 3 && !memcmp(m.data, "val", 3));
	check(parse(&m, FUSE_TMPFILE, "1234567812345678/", 18) == FUSE_MSG_OK);
}

static void headers(void)
{
	struct fuse_in_header h = { .opcode = FUSE_READLINK };
	struct fuse_msg m;
	size_t n;

	for (n = 0; n <= sizeof(h) + 8; n++) {
		h.len = (uint32_t)n;
		memcpy(req, &h, sizeof(h));
		check(fuse_msg_parse(&m, req, n, n) == (n < sizeof(h)    ? FUSE_MSG_E_HEADER
							: n == sizeof(h) ? FUSE_MSG_OK
									 : FUSE_MSG_E_BODY));
	}
	h.len = sizeof(h) + 1;
	memcpy(req, &h, sizeof(h));
	check(fuse_msg_parse(&m, req, sizeof(h), sizeof(h)) == FUSE_MSG_E_HEADER);
	h.len = sizeof(h);
	h.total_extlen = 1;
	memcpy(req, &h, sizeof(h));
	check(fuse_msg_parse(&m, req, sizeof(h), sizeof(h)) == FUSE_MSG_E_BODY);
	h = (struct fuse_in_header) { .opcode = 4711, .len = sizeof(h) };
	memcpy(req, &h, sizeof(h));
	check(fuse_msg_parse(&m, req, sizeof(h), sizeof(h)) == FUSE_MSG_E_UNKNOWN &&
	      m.h.opcode == 4711);
	check(fuse_msg_head(FUSE_WRITE, 1 << 20) == 80 && fuse_msg_head(FUSE_WRITE, 50) == 50);
	check(fuse_msg_head(FUSE_LOOKUP, 50) == 50);
}

int main(void)
{
	lengths();
	names();
	headers();
	free(copy);
	return 0;
}
