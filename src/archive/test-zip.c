/* ZIP archives: written, read again, and everything that is not taken. */
#include "archive/zip.h"
#include "base/check.h"

static struct buf made = BUF_INIT(ZIP_FILE_MAX);

struct member {
	const char *name, *text;
	bool exec;
};

static void make(const struct member *v, size_t n)
{
	struct zip_out w;
	struct err e;

	buf_consume(&made, made.n);
	zip_out_begin(&w, &made);
	for (size_t i = 0; i < n; i++)
		check(zip_out_add(&w, v[i].name, v[i].text, strlen(v[i].text), v[i].exec, &e) == 0);
	check(zip_out_end(&w, &e) == 0);
	zip_out_done(&w);
}

static const struct member two[] = {
	{ "spec.yaml", "name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
	  false },
	{ "files/home/run", "#!", true },
};

static void round_trip(void)
{
	struct buf first = BUF_INIT(65536), got = BUF_INIT(65536);
	struct zip z;
	struct err e;

	make(two, 2);
	check(buf_add(&first, buf_data(&made), made.n) == 0);
	make(two, 2);
	check(made.n == first.n && !memcmp(buf_data(&made), buf_data(&first), made.n));
	check(zip_read(buf_data(&made), made.n, &z, &e) == 0 && z.n_v == 2);
	check(z.v[0].deflate && !z.v[1].deflate && !z.v[0].exec && z.v[1].exec);
	for (size_t i = 0; i < 2; i++) {
		buf_consume(&got, got.n);
		check(streq(z.v[i].name, two[i].name));
		check(zip_data(&z, &z.v[i], &got, &e) == 0);
		check(got.n == strlen(two[i].text) && !memcmp(buf_data(&got), two[i].text, got.n));
	}
	zip_done(&z);
	make(NULL, 0);
	check(zip_read(buf_data(&made), made.n, &z, &e) == 0 && z.n_v == 0);
	zip_done(&z);
	buf_done(&first);
	buf_done(&got);
}

/* The archive of `two` with some bytes changed. */
static void refused(size_t at, const void *p, size_t n, const char *message)
{
	_free_ uint8_t *copy = NULL;
	struct zip z;
	struct err e = { 0 };
	int r;

	make(two, 2);
	copy = malloc(made.n);
	check(copy && at <= made.n && n <= made.n - at);
	memcpy(copy, buf_data(&made), made.n);
	memcpy(copy + at, p, n);
	r = zip_read(copy, made.n, &z, &e);
	if (r == 0) {
		struct buf out = BUF_INIT(65536);

		for (size_t i = 0; i < z.n_v && r == 0; i++)
			r = zip_data(&z, &z.v[i], &out, &e);
		buf_done(&out);
		zip_done(&z);
	}
	if (r == 0 || !strstr(e.msg, message))
		(void)fprintf(stderr, "at %zu: '%s', not '%s'\n", at, e.msg, message);
	check(r < 0 && strstr(e.msg, message));
}

static void names(void)
{
	static const struct {
		const char *name, *message;
	} bad[] = {
		{ "/etc/passwd", "an absolute path" }, { "../x", "leads out of it" },
		{ "a/../../x", "leads out of it" },    { "a//b", "leads out of it" },
		{ "./a", "leads out of it" },          { "a\\b", "a backslash" },
		{ "a\nb", "control characters" },      { "a\x80", "not UTF-8" },
		{ "", "empty, too long or damaged" },  { "/", "an absolute path" },
	};
	struct zip z;
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct member m = { bad[i].name, "x", false };

		make(&m, 1);
		check(zip_read(buf_data(&made), made.n, &z, &e) < 0);
		check(strstr(e.msg, bad[i].message));
	}
	make((const struct member[]) { { "a", "x", false }, { "a", "y", false } }, 2);
	check(zip_read(buf_data(&made), made.n, &z, &e) < 0 && strstr(e.msg, "comes twice"));
}

/* Where the central directory of `two` is. */
static size_t central(void)
{
	make(two, 2);
	return made.n - 22 - 2 * 46 - strlen(two[0].name) - strlen(two[1].name);
}

static void headers(void)
{
	size_t c = central(), end = made.n - 22;

	refused(end, "PX", 2, "is damaged, or is not a ZIP");
	refused(end + 4, "\1", 1, "one of several parts");
	refused(end + 10, "\377\377", 2, "ZIP64");
	refused(end + 16, "\377\377\377\377", 4, "ZIP64");
	refused(end + 12, "\1", 1, "is damaged");
	refused(end + 10, "\1", 1, "one of several parts");
	refused(end + 20, "\1", 1, "is damaged");
	refused(c + 8, "\1", 1, "is encrypted");
	refused(c + 10, "\14", 1, "other than deflate");
	refused(c + 16, "\0", 1, "is damaged");
	refused(c + 24, "\377\377\377\377", 4, "ZIP64");
	refused(c + 24, "\377\377\377\3", 4, "more than 300 times");
	refused(c + 38, "\0\0\377\241", 4, "a symbolic link");
	refused(c + 38, "\0\0\377\41", 4, "neither a file nor a folder");
	refused(c + 38, "\0\0\377\101", 4, "both file and folder");
	refused(c + 42, "\1", 1, "is damaged");
	refused(0, "PX", 2, "is damaged");
	refused(14, "\0\0\0\0", 4, "is damaged");
	refused(30, "x", 1, "is damaged");
	refused(30 + 9 + 2, "x", 1, "is damaged at");
}

static void large(void)
{
	size_t n = 32UL * 1024 * 1024;
	_free_ char *zeros = calloc(1, n);
	struct zip_out w;
	struct zip z;
	struct err e;

	check(zeros);
	buf_consume(&made, made.n);
	zip_out_begin(&w, &made);
	check(zip_out_add(&w, "zeros", zeros, n, false, &e) == 0 && zip_out_end(&w, &e) == 0);
	zip_out_done(&w);
	check(zip_read(buf_data(&made), made.n, &z, &e) == -EFBIG);
	check(strstr(e.msg, "more than 300 times its size"));
}

int main(void)
{
	round_trip();
	names();
	headers();
	large();
	buf_done(&made);
	return 0;
}
