/* Streams with secrets: what goes on, what waits, what is told. The supervisor around them is played here. */
#include "base/check.h"
#include "supervisor/marks.h"
#include "supervisor/net.h"
#include "supervisor/share.h"

static const uint64_t key = 0x9e3779b97f4a7c15;
static const char secret[] = "sk-ant-api03-the-value-of-it";
static struct sup s;
static struct stream st;
static struct buf out[2];
static unsigned told, shared, pieces;
static int share_answer;
static bool told_refused;

int sup_share_marks(struct sup *sup, const uint8_t *p, size_t n, bool refuse)
{
	struct leak_set set;

	check(sup == &s && refuse == s.order.leak_refuse);
	check(leak_set_parse(&set, p, n) == 0);
	leak_set_done(&set);
	shared++;
	return share_answer;
}

void sup_net_leaked(struct sup *sup, bool copy, const char *what, const char *name, bool refused)
{
	check(sup == &s && !copy && streq(what, "cat key") && streq(name, "anthropic"));
	told++;
	told_refused = refused;
}

void slog_say(struct slog *l, const char *fmt, ...)
{
	check(!l && fmt);
}

static void pass(struct sup *sup, struct stream *one, uint8_t chan, const uint8_t *p, size_t n)
{
	check(sup == &s && one == &st && n && n <= WIRE_FRAME_MAX);
	pieces++;
	check(buf_add(&out[chan - 1], p, n) == 0);
}

static void begin(bool refuse)
{
	s = (struct sup) { .order = { .leak_refuse = refuse } };
	st = (struct stream) { .what = "cat key" };
	buf_init(&out[0], 1UL << 20);
	buf_init(&out[1], 1UL << 20);
	told = shared = pieces = 0;
	share_answer = 0;
}

static void end(void)
{
	sup_marks_stream_free(&st);
	sup_marks_free(&s);
	buf_done(&out[0]);
	buf_done(&out[1]);
}

static int set(const char *value)
{
	struct leak_mark *v = calloc(LEAK_FORMS_MAX, sizeof(*v));
	struct buf b = BUF_INIT(LEAK_SET_MAX);
	struct leak_set one;
	size_t n;
	int r;

	check(v);
	n = leak_marks(key, "anthropic", (const uint8_t *)value, strlen(value), v, LEAK_FORMS_MAX);
	check(leak_set_init(&one, key, v, n) == 0 && leak_set_put(&b, &one) == 0);
	r = sup_marks_set(&s, buf_data(&b), b.n);
	leak_set_done(&one);
	buf_done(&b);
	return r;
}

static const char *data(uint8_t chan, const char *text)
{
	return sup_marks_data(&s, &st, chan, (const uint8_t *)text, strlen(text), pass);
}

static bool got(uint8_t chan, const char *want)
{
	return streq(buf_str(&out[chan - 1]), want);
}

static void flag(void)
{
	begin(false);
	check(!data(1, secret) && !told && got(1, secret) && !st.marks[0]);
	check(set(secret) == 0 && shared == 1 && !s.marks_bytes);
	check(!data(1, " sk-ant-api03-the") && !data(2, "-value-of-it") && !told);
	check(!data(1, "-value-of-it") && told == 1 && !told_refused);
	check(!data(1, secret) && !data(2, secret) && told == 1);
	sup_marks_end(&s, &st, 1, pass);
	check(out[0].n == 3 * 28 + 1 && out[1].n == 28 + 12);
	end();
}

static void blanked(void)
{
	char text[][80] = { "echo sk-ant-api03-the-value-of-it >f", "echo sk-ant-api03-the-v",
			    "echo sk-ant-api03", "", "c2stYW50LWFwaTAzLXRoZS12YWx1ZS1vZi1pdA==" };
	static const char *const want[] = { "echo **************************** >f",
					    "echo ******************", "echo sk-ant-api03", "",
					    "*************************************A==" };
	size_t i;

	begin(false);
	sup_marks_blank(&s, text[0]);
	check(strstr(text[0], secret));
	check(set(secret) == 0);
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		sup_marks_blank(&s, text[i]);
		check(streq(text[i], want[i]));
	}
	end();
}

static void refuse(void)
{
	begin(true);
	check(set(secret) == 0);
	check(!data(1, "abc sk-ant-api03-") && got(1, "abc sk-ant-api03-"));
	check(!data(1, "the") && got(1, "abc sk-ant-api03-")); /* begun: it waits */
	check(!data(2, "other") && got(2, "other"));
	check(!data(1, "-value-of-ix") && got(1, "abc sk-ant-api03-the-value-of-ix") && !told);
	check(!data(1, "\nsk-ant-api03-the-") && got(1, "abc sk-ant-api03-the-value-of-ix\n"));
	check(streq(data(1, "value-of-it and more"), "anthropic") && told == 1 && told_refused);
	check(got(1, "abc sk-ant-api03-the-value-of-ix\n"));
	end();
	begin(true);
	check(set(secret) == 0);
	check(!data(1, "sk-ant-api03-the-value") && got(1, ""));
	sup_marks_end(&s, &st, 2, pass);
	check(got(1, ""));
	sup_marks_end(&s, &st, 1, pass);
	check(got(1, "sk-ant-api03-the-value") && !told);
	sup_marks_end(&s, &st, 1, pass);
	check(pieces == 1);
	end();
}

/* What waits is longer than a frame. */
static void long_secret(void)
{
	enum { N = 3 * WIRE_FRAME_MAX };
	char *value = malloc(N + 1);
	uint64_t x = 1;
	size_t i;

	check(value);
	for (i = 0; i < N; i++)
		value[i] = (char)('a' + ((x = x * 6364136223846793005U + 1) >> 40) % 25);
	value[N] = '\0';
	begin(true);
	check(set(value) == 0);
	value[N - 1] = '!';
	for (i = 0; i < 3; i++)
		check(!sup_marks_data(&s, &st, 1, (const uint8_t *)value + i * WIRE_FRAME_MAX,
				      WIRE_FRAME_MAX, pass) &&
		      (i == 2 || !out[0].n));
	check(got(1, value) && pieces == 3);
	end();
	free(value);
}

static void sets(void)
{
	begin(false);
	check(sup_marks_set(&s, (const uint8_t *)"x", 1) == -EPROTO && !shared);
	share_answer = -EAGAIN;
	check(set(secret) == 0 && shared == 1 && s.marks_bytes);
	sup_marks_again(&s);
	check(shared == 2 && s.marks_bytes);
	share_answer = 0;
	sup_marks_again(&s);
	sup_marks_again(&s);
	check(shared == 3 && !s.marks_bytes);
	check(!data(1, secret) && told == 1);
	st.leaked = false;
	check(set("another-secret-of-some-length") == 0 && shared == 4);
	check(!data(1, secret) && told == 1 && !data(1, "another-secret-of-some-length") &&
	      told == 2);
	share_answer = -EPIPE;
	check(set("") == 0 && !s.marks_bytes && !s.marks.n);
	check(!data(1, secret) && told == 2);
	end();
}

int main(void)
{
	flag();
	blanked();
	refuse();
	long_secret();
	sets();
	return 0;
}
