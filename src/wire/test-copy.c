/* Copy streams: records and extents, at the edges. */
#include "wire/copy.h"

#include "base/check.h"

static char x[WIRE_PATH_MAX + 2];

static const char *len(size_t n)
{
	return x + sizeof(x) - 1 - n;
}

/* n bytes of path in components of 255. */
static const char *deep(size_t n)
{
	static char p[WIRE_PATH_MAX + 2];
	size_t i;

	check(n < sizeof(p));
	for (i = 0; i < n; i++)
		p[i] = i % 256 == 255 && i + 1 < n ? '/' : 'd';
	p[n] = '\0';
	return p;
}

static void paths(void)
{
	static const char *const good[] = { "a",   "a/b",     ".a",       "..a", "a..",
					    "...", "a/.../b", " ",        "\n",  "\377\376",
					    "-",   "a/ /b",   ".bac-cp-x" };
	static const char *const bad[] = { "",    "/",    "/a",  "a/",   "a//b",  ".",      "..",
					   "./a", "../a", "a/.", "a/..", "a/./b", "a/../b", "//" };
	char name[300];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++)
		check(copy_path_ok(good[i]));
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		check(!copy_path_ok(bad[i]));
	check(copy_path_ok(deep(WIRE_PATH_MAX)) && !copy_path_ok(deep(WIRE_PATH_MAX + 1)));
	memset(name, 'n', sizeof(name));
	name[COPY_NAME_MAX] = '\0';
	check(copy_path_ok(name));
	name[COPY_NAME_MAX] = 'n';
	name[COPY_NAME_MAX + 1] = '\0';
	check(!copy_path_ok(name));
	memcpy(name + COPY_NAME_MAX - 1, "/x", 3);
	check(copy_path_ok(name));
	memcpy(name, "x/", 2);
	name[COPY_NAME_MAX + 2] = '\0';
	memset(name + 2, 'n', COPY_NAME_MAX);
	check(copy_path_ok(name));
	name[COPY_NAME_MAX + 2] = 'n';
	name[COPY_NAME_MAX + 3] = '\0';
	check(!copy_path_ok(name));
}

static bool same(const struct copy_record *a, const struct copy_record *b)
{
	return a->kind == b->kind && a->mode == b->mode && a->mtime == b->mtime &&
	       a->mtime_ns == b->mtime_ns && a->size == b->size && streq(a->path, b->path) &&
	       streq(a->target, b->target);
}

/* Out and in again, cut at each byte on the way. Texts that are not given are empty. */
static bool passes(struct copy_record *m)
{
	uint8_t b[COPY_RECORD_MAX];
	struct copy_record m2 = { .kind = 99 };
	size_t n = 0, used = 7, i;

	m->path = m->path ? m->path : "";
	m->target = m->target ? m->target : "";
	if (copy_record_put(b, &n, m) < 0) {
		check(n == 0);
		return false;
	}
	for (i = 0; i < n; i += i < 80 || i + 80 > n ? 1 : 50) {
		_free_ uint8_t *p = malloc(i + !i);

		check(p);
		memcpy(p, b, i);
		check(copy_record_parse(&m2, &used, p, i) == WIRE_AGAIN && m2.kind == 99 &&
		      used == 7);
	}
	check(copy_record_parse(&m2, &used, b, n) == WIRE_OK && used == n && same(m, &m2));
	check(copy_record_parse(&m2, &used, b, sizeof(b)) == WIRE_OK && used == n);
	return true;
}

#define REC(...) (&(struct copy_record) { __VA_ARGS__ })

static void kinds(void)
{
	check(passes(REC(.kind = COPY_DIR)));
	check(passes(REC(.kind = COPY_DIR, .path = "a", .mode = 0777, .mtime = -1,
			 .mtime_ns = 999999999)));
	check(!passes(REC(.kind = COPY_DIR, .path = "a", .size = 1)));
	check(!passes(REC(.kind = COPY_DIR, .path = "a", .target = "t")));
	check(!passes(REC(.kind = COPY_DIR, .path = "a", .mode = 01755)));
	check(!passes(REC(.kind = COPY_DIR, .path = "a", .mtime_ns = 1000000000)));
	check(passes(REC(.kind = COPY_DIR, .path = "a", .mtime = INT64_MIN)));
	check(passes(REC(.kind = COPY_DIR, .path = "a", .mtime = INT64_MAX)));

	check(passes(REC(.kind = COPY_FILE, .path = "a/b", .mode = 0644, .size = INT64_MAX)));
	check(!passes(REC(.kind = COPY_FILE, .path = "a", .size = (uint64_t)INT64_MAX + 1)));
	check(!passes(REC(.kind = COPY_FILE)));
	check(!passes(REC(.kind = COPY_FILE, .path = "../a")));
	check(!passes(REC(.kind = COPY_FILE, .path = "a", .mode = 04755)));
	check(passes(REC(.kind = COPY_FILE, .path = deep(WIRE_PATH_MAX))));
	check(!passes(REC(.kind = COPY_FILE, .path = deep(WIRE_PATH_MAX + 1))));

	check(passes(REC(.kind = COPY_LINK, .path = "a", .target = "../../etc/passwd")));
	check(passes(
		REC(.kind = COPY_LINK, .path = deep(WIRE_PATH_MAX), .target = len(WIRE_PATH_MAX))));
	check(!passes(REC(.kind = COPY_LINK, .path = "a", .target = len(WIRE_PATH_MAX + 1))));
	check(!passes(REC(.kind = COPY_LINK, .path = "a")));
	check(!passes(REC(.kind = COPY_LINK, .target = "a")));
	check(!passes(REC(.kind = COPY_LINK, .path = "a", .target = "b", .mode = 0777)));

	check(passes(REC(.kind = COPY_HARD, .path = "b", .target = "a")));
	check(passes(REC(.kind = COPY_HARD, .path = "b", .target = "a", .mode = 0600, .mtime = 5)));
	check(!passes(REC(.kind = COPY_HARD, .path = "b", .target = "/etc/passwd")));
	check(!passes(REC(.kind = COPY_HARD, .path = "b", .target = "../a")));
	check(!passes(REC(.kind = COPY_HARD, .path = "b")));
	check(!passes(REC(.kind = COPY_HARD, .path = "b", .target = "a", .size = 1)));

	check(passes(REC(.kind = COPY_ERROR, .target = "disk on fire")));
	check(!passes(REC(.kind = COPY_ERROR)));
	check(passes(REC(.kind = COPY_END, .size = UINT64_MAX)));
	check(!passes(REC(.kind = COPY_END, .path = "a")));
	check(!passes(REC(.kind = COPY_END, .target = "a")));
	check(!passes(REC(.kind = 0)) && !passes(REC(.kind = 7)) && !passes(REC(.kind = 255)));
}

/* A record that is written by hand; bytes at `at` are replaced. */
static int parse_with(size_t at, const char *bytes, size_t n)
{
	uint8_t b[COPY_RECORD_MAX];
	struct copy_record m;
	size_t total = 0, used;

	check(copy_record_put(b, &total, REC(.kind = COPY_LINK, .path = "ab", .target = "cd")) ==
	      0);
	check(total == COPY_RECORD_HEAD + 7 + 7);
	memcpy(b + at, bytes, n);
	return copy_record_parse(&m, &used, b, total);
}

static void malformed(void)
{
	check(parse_with(0, "\3", 1) == WIRE_OK);
	check(parse_with(1, "\1", 1) == WIRE_E_MALFORMED);
	check(parse_with(3, "\1", 1) == WIRE_E_MALFORMED);
	check(parse_with(4, "\1", 1) == WIRE_E_MALFORMED);
	check(parse_with(16, "\377", 1) == WIRE_E_MALFORMED);
	check(parse_with(COPY_RECORD_HEAD, "\0\0\0\2a\0\0", 7) ==
	      WIRE_E_MALFORMED);                                                   /* NUL inside */
	check(parse_with(COPY_RECORD_HEAD, "\0\0\0\2abc", 7) == WIRE_E_MALFORMED); /* no NUL */
	check(parse_with(COPY_RECORD_HEAD, "\0\0\0\2..", 6) == WIRE_E_MALFORMED);
	check(parse_with(COPY_RECORD_HEAD, "\0\0\0\3", 4) == WIRE_E_MALFORMED);
	/* a length beyond the limit is refused before its bytes have come */
	check(parse_with(COPY_RECORD_HEAD, "\0\0\20\0", 4) == WIRE_E_TOO_LARGE);
	check(parse_with(COPY_RECORD_HEAD, "\377\377\377\377", 4) == WIRE_E_TOO_LARGE);
	check(parse_with(COPY_RECORD_HEAD + 7, "\377\377\377\377", 4) == WIRE_E_TOO_LARGE);
	check(parse_with(COPY_RECORD_HEAD, "\0\0\17\377", 4) == WIRE_AGAIN);
	check(parse_with(COPY_RECORD_HEAD + 7, "\0\0\0\3", 4) == WIRE_AGAIN);
}

static int extent(uint64_t offset, uint32_t n, uint64_t *pos, uint64_t size)
{
	uint8_t b[COPY_EXTENT_HEAD];
	struct copy_extent e = { 1, 1 };
	uint64_t before = *pos;
	int ans;

	copy_extent_put(b, (struct copy_extent) { offset, n });
	check(copy_extent_parse(&e, pos, size, b, sizeof(b) - 1) == WIRE_AGAIN);
	ans = copy_extent_parse(&e, pos, size, b, sizeof(b));
	if (ans == WIRE_OK)
		check(e.offset == offset && e.len == n && *pos == offset + n);
	else
		check(e.offset == 1 && e.len == 1 && *pos == before);
	return ans;
}

static void extents(void)
{
	const uint64_t large = INT64_MAX;
	uint64_t pos = 0;

	check(extent(0, 10, &pos, 100) == WIRE_OK);
	check(extent(10, 10, &pos, 100) == WIRE_OK);
	check(extent(19, 1, &pos, 100) == WIRE_E_MALFORMED);  /* back */
	check(extent(90, 11, &pos, 100) == WIRE_E_MALFORMED); /* beyond */
	check(extent(101, 0, &pos, 100) == WIRE_E_MALFORMED);
	check(extent(90, 10, &pos, 100) == WIRE_OK);
	check(extent(100, 1, &pos, 100) == WIRE_E_MALFORMED);
	check(extent(100, 0, &pos, 100) == WIRE_OK);
	pos = 0;
	check(extent(0, 0, &pos, 0) == WIRE_OK);
	check(extent(0, 1, &pos, 0) == WIRE_E_MALFORMED);
	check(extent(0, COPY_EXTENT_MAX, &pos, large) == WIRE_OK);
	check(extent(large, COPY_EXTENT_MAX + 1, &pos, large) == WIRE_E_TOO_LARGE);
	check(extent(large - COPY_EXTENT_MAX, COPY_EXTENT_MAX, &pos, large) == WIRE_OK);
	check(extent(large, 0, &pos, large) == WIRE_OK);
	check(extent(UINT64_MAX, 1, &pos, large) == WIRE_E_MALFORMED); /* the sum would wrap */
	check(extent(UINT64_MAX - 5, 100, &pos, large) == WIRE_E_MALFORMED);
}

int main(void)
{
	memset(x, 't', sizeof(x) - 1);
	paths();
	kinds();
	malformed();
	extents();
	return 0;
}
