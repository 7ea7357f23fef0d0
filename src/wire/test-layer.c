/* Trees, lists, lines and limits: what is put comes out; the edges; what is not taken. */
#include "wire/layer.h"

#include "base/check.h"

static uint8_t bytes[LAYER_RECORD_MAX + 8], attrs[LAYER_ATTRS_MAX];
static struct layer_entry back;
static char longest[WIRE_PATH_MAX + 2];

static struct layer_entry sample(uint8_t kind)
{
	struct layer_entry m = { .kind = kind, .path = "dir/a b\377", .target = "" };

	if (kind < LAYER_HARD) {
		m.mode = 07755;
		m.uid = UINT32_MAX - 1;
		m.gid = 7;
		m.mtime = -5;
		m.mtime_ns = 999999999;
	}
	if (kind == LAYER_FILE) {
		m.size = 5ULL << 30;
		m.offset = (uint64_t)LAYER_BLOCK * 3;
	}
	if (kind == LAYER_SYMLINK)
		m.target = "../../any text";
	if (kind == LAYER_HARD)
		m.target = "other/file";
	if (kind == LAYER_CHAR || kind == LAYER_BLOCKDEV) {
		m.major = (1 << 12) - 1;
		m.minor = (1 << 20) - 1;
	}
	if (kind == LAYER_END) {
		m.path = "";
		m.size = 9;
		m.offset = LAYER_BLOCK;
	}
	return m;
}

static int there_and_back(const struct layer_entry *m)
{
	size_t n, used;

	if (layer_entry_put(bytes, &n, m) < 0)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		check(layer_entry_parse(&back, &used, bytes, i) == WIRE_AGAIN);
	check(layer_entry_parse(&back, &used, bytes, n + 1) == WIRE_OK && used == n);
	check(back.kind == m->kind && streq(back.path, m->path) && streq(back.target, m->target));
	check(back.mode == m->mode && back.uid == m->uid && back.gid == m->gid);
	check(back.mtime == m->mtime && back.mtime_ns == m->mtime_ns && back.size == m->size);
	check(back.offset == m->offset && back.major == m->major && back.minor == m->minor);
	check(back.attrs_len == m->attrs_len &&
	      !memcmp(back.attrs ? back.attrs : attrs, m->attrs ? m->attrs : attrs, m->attrs_len));
	return 0;
}

static void entries(void)
{
	struct layer_entry m;

	for (uint8_t k = LAYER_DIR; k < LAYER_KINDS; k++) {
		m = sample(k);
		check(there_and_back(&m) == 0);
		m.path = "../x";
		check(there_and_back(&m) == -EINVAL);
		m.path = "";
		check((there_and_back(&m) == 0) ==
		      (k == LAYER_DIR || k == LAYER_OPAQUE || k == LAYER_END));
	}
	m = sample(0);
	check(there_and_back(&m) == -EINVAL);
	m = sample(LAYER_KINDS);
	check(there_and_back(&m) == -EINVAL);
}

static void edges(void)
{
	struct layer_entry m = sample(LAYER_FILE);

	m.offset++;
	check(there_and_back(&m) == -EINVAL);
	m = sample(LAYER_FILE);
	m.size = 0;
	check(there_and_back(&m) == -EINVAL);
	m.offset = 0;
	check(there_and_back(&m) == 0);
	m.size = INT64_MAX;
	check(there_and_back(&m) == 0);
	m.size++;
	check(there_and_back(&m) == -EINVAL);
	m = sample(LAYER_DIR);
	m.uid = UINT32_MAX;
	check(there_and_back(&m) == -EINVAL);
	m = sample(LAYER_CHAR);
	m.major++;
	check(there_and_back(&m) == -EINVAL);
	m = sample(LAYER_SYMLINK);
	memset(longest, 'x', sizeof(longest) - 1);
	m.target = longest + 1;
	check(there_and_back(&m) == 0);
	m.target = longest;
	check(there_and_back(&m) == -EINVAL);
	m.target = "";
	check(there_and_back(&m) == -EINVAL);
}

static void attributes(void)
{
	struct layer_entry m = sample(LAYER_FILE);
	struct wr w = wr_init(attrs, sizeof(attrs));
	static uint8_t value[LAYER_VALUE_MAX];
	struct layer_attr a = { .prefix = LAYER_USER,
				.name_len = 4,
				.len = sizeof(value),
				.name = (const uint8_t *)"name",
				.value = value },
			  x;
	struct rd r;

	layer_attr_put(&w, &a);
	a.prefix = LAYER_SECURITY;
	a.len = 0;
	layer_attr_put(&w, &a);
	m.attrs = attrs;
	m.attrs_len = w.n;
	check(there_and_back(&m) == 0);
	r = rd_init(back.attrs, back.attrs_len);
	check(layer_attr_next(&r, &x) && x.len == LAYER_VALUE_MAX && x.name_len == 4);
	check(layer_attr_next(&r, &x) && x.len == 0 && x.prefix == LAYER_SECURITY);
	check(!layer_attr_next(&r, &x) && !r.bad);
	m.attrs_len--;
	check(there_and_back(&m) == -EINVAL);
	attrs[0] = 2; /* an ACL */
	m.attrs_len++;
	check(there_and_back(&m) == -EINVAL);
}

static void members(void)
{
	static const struct layer_member v[] = {
		{ 'f', 512, 7, "blobs/x", "" },
		{ 'd', 0, 0, "", "" },
		{ 'l', 0, 0, "a/layer.tar", "../b/layer.tar" },
		{ 0, 3, 0, "", "" },
	};
	struct layer_member m;
	size_t n, used;

	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		check(layer_member_put(bytes, &n, &v[i]) == 0);
		check(layer_member_parse(&m, &used, bytes, n - 1) == WIRE_AGAIN);
		check(layer_member_parse(&m, &used, bytes, n) == WIRE_OK && used == n);
		check(m.type == v[i].type && m.offset == v[i].offset && m.size == v[i].size);
		check(streq(m.name, v[i].name) && streq(m.target, v[i].target));
		bytes[4] = 'x';
		check(layer_member_parse(&m, &used, bytes, n) == WIRE_E_MALFORMED);
	}
	memset(bytes, 255, 8);
	check(layer_member_parse(&m, &used, bytes, 8) == WIRE_E_TOO_LARGE);
}

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void lines(void)
{
	struct layer_line l = { .done = true, .digest = HEX, .v = { 1, UINT64_MAX }, .n = 2 }, m;
	char text[LAYER_LINE_MAX + 2];
	static const char *const bad[] = {
		"", "do", "at x", "done -", "at -1", "done a - 1", "at 1 2 3 4 5 6 7"
	};

	check(layer_line_text(text, &l) == strlen(text));
	check(streq(text, "done " HEX " - 1 18446744073709551615\n"));
	text[strlen(text) - 1] = '\0';
	check(layer_line_parse(text, &m) == 0 && m.done && streq(m.digest, HEX) && !m.diff[0]);
	check(m.n == 2 && m.v[0] == 1 && m.v[1] == UINT64_MAX);
	memcpy(l.diff, l.digest, sizeof(l.diff));
	for (l.n = 0; l.n < LAYER_FIELDS_MAX; l.n++)
		l.v[l.n] = INT64_MAX / 10;
	check(layer_line_text(text, &l) <= LAYER_LINE_MAX + 1);
	check(layer_line_parse("at 5 6", &m) == 0 && !m.done && m.n == 2);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check(layer_line_parse(bad[i], &m) == -EINVAL);
}

static void limits(void)
{
	const struct layer_limits d = LAYER_LIMITS_DEFAULT;
	struct layer_limits l;
	char text[LAYER_LIMITS_TEXT];
	static const char *const bad[] = { "", "1:2:3", "1:2:3:4:5", "1:2:3:0", "1:2:3:x" };

	check(layer_limits_parse(layer_limits_text(text, &d), &l) == 0);
	check(l.entries == d.entries && l.bytes == d.bytes && l.file == d.file &&
	      l.ratio == d.ratio);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check(layer_limits_parse(bad[i], &l) == -EINVAL);
}

int main(void)
{
	entries();
	edges();
	attributes();
	members();
	lines();
	limits();
	return 0;
}
