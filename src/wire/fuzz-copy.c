/* Any bytes as a copy stream: what is accepted is written the same, its paths lead nowhere else,
 * and its extents stay within the file. */
#include "base/check.h"
#include "wire/copy.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void record(const struct copy_record *m, const uint8_t *p, size_t used)
{
	uint8_t b[COPY_RECORD_MAX];
	size_t len;

	check(copy_record_put(b, &len, m) == 0);
	check(len == used && !memcmp(b, p, len));
	check(m->path[0] != '/' && !strstr(m->path, "//") && strlen(m->path) <= WIRE_PATH_MAX);
	check(!starts_with(m->path, "../") && !strstr(m->path, "/../") && !streq(m->path, ".."));
	if (m->kind == COPY_HARD)
		check(copy_path_ok(m->target));
}

static size_t extents(uint64_t size, const uint8_t *p, size_t n)
{
	struct copy_extent e;
	uint64_t pos = 0, before = 0;
	size_t at = 0;

	while (copy_extent_parse(&e, &pos, size, p + at, n - at) == WIRE_OK) {
		check(e.offset >= before && pos == e.offset + e.len && pos <= size);
		check(e.len <= COPY_EXTENT_MAX);
		before = pos;
		at += COPY_EXTENT_HEAD;
		if (!e.len || e.len > n - at)
			break;
		at += e.len;
	}
	return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct copy_record m;
	size_t used;

	while (copy_record_parse(&m, &used, p, n) == WIRE_OK) {
		check(used <= n);
		record(&m, p, used);
		p += used;
		n -= used;
		if (m.kind != COPY_FILE)
			continue;
		used = extents(m.size, p, n);
		p += used;
		n -= used;
	}
	return 0;
}
