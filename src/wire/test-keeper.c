/* Messages of the keeper: each there and back, wrong senders, cuts at every byte, limits at their edge. */
#include "base/check.h"
#include "wire/keeper.h"

static uint8_t bytes[KEEPER_MSG_MAX + 1];
static uint8_t many[KEEPER_MARKS_MAX + 1];

static const struct {
	uint8_t type;
	char from;
	uint8_t fds;
} types[] = {
#define X(name, num, from, fds) { num, from, fds },
	KEEPER_TYPES(X)
#undef X
};

static struct keeper_msg full(uint8_t type)
{
	static const uint8_t a[] = "one", b[] = "second";
	struct keeper_msg m = { .type = type,
				.number = 77,
				.text = "api.example",
				.text2 = "anthropic:1",
				.text3 = "read write",
				.port = 443,
				.code = type == KEEPER_NO ? KEEPER_NO_LONGER : -22,
				.when = UINT64_MAX - 1,
				.bytes = { a, 3 },
				.bytes2 = { b, 6 } };

	return m;
}

/* Each type, with all that it carries; and what was not carried is zero. */
static void each(void)
{
	static uint8_t again[KEEPER_MSG_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct keeper_msg m = full(types[i].type), got;
		ssize_t n = keeper_put(&m, bytes, sizeof(bytes));

		check(n > 0);
		for (size_t cut = 0; cut < (size_t)n; cut++)
			check(keeper_parse(&got, types[i].from, bytes, cut, types[i].fds) ==
			      WIRE_E_MALFORMED);
		bytes[n] = 0;
		check(keeper_parse(&got, types[i].from, bytes, (size_t)n + 1, types[i].fds) ==
		      WIRE_E_MALFORMED);
		for (const char *f = "SMPFK"; *f; f++)
			check((keeper_parse(&got, *f, bytes, (size_t)n, types[i].fds) == WIRE_OK) ==
			      (*f == types[i].from));
		check(keeper_parse(&got, types[i].from, bytes, (size_t)n, types[i].fds + 1U) ==
		      WIRE_E_MALFORMED);
		check(keeper_parse(&got, types[i].from, bytes, (size_t)n, types[i].fds) == WIRE_OK);
		check(got.type == m.type);
		check(keeper_put(&got, again, sizeof(again)) == n);
		check(memcmp(again, bytes, (size_t)n) == 0);
	}
}

static struct keeper_msg one(struct keeper_msg m, char from)
{
	ssize_t n = keeper_put(&m, bytes, sizeof(bytes));
	struct keeper_msg got;

	check(n > 0);
	check(keeper_parse(&got, from, bytes, (size_t)n, 0) == WIRE_OK);
	return got;
}

static void fields(void)
{
	struct keeper_msg m = one(full(KEEPER_TOKENS), 'P');

	check(m.number == 77 && m.port == 443 && m.when == UINT64_MAX - 1);
	check(streq(m.text, "api.example") && streq(m.text2, "anthropic:1"));
	check(streq(m.text3, "read write"));
	check(m.bytes.n == 3 && memcmp(m.bytes.p, "one", 3) == 0);
	check(m.bytes2.n == 6 && memcmp(m.bytes2.p, "second", 6) == 0);
	m = one(full(KEEPER_CONFIG), 'S');
	check(streq(m.text, "api.example") && streq(m.text2, "anthropic:1") && !m.text3);
	m = one(full(KEEPER_LEAF_IS), 'K');
	check(m.bytes.n == 3 && m.bytes2.n == 6 && m.number == 77);
	m = one(full(KEEPER_NO), 'K');
	check(m.code == KEEPER_NO_LONGER && streq(m.text, "api.example"));
	m = one(full(KEEPER_APPLIED), 'K');
	check(m.code == -22);
}

static void codes(void)
{
	struct keeper_msg m = full(KEEPER_NO);

	m.code = KEEPER_NO_N;
	check(keeper_put(&m, bytes, sizeof(bytes)) == -ENOBUFS);
	m.code = 0;
	check(keeper_put(&m, bytes, sizeof(bytes)) == -ENOBUFS);
	m = full(KEEPER_APPLIED);
	m.code = 1;
	check(keeper_put(&m, bytes, sizeof(bytes)) == -ENOBUFS);
	m.code = -4096;
	check(keeper_put(&m, bytes, sizeof(bytes)) == -ENOBUFS);
	m.type = 255;
	check(keeper_put(&m, bytes, sizeof(bytes)) == -ENOBUFS);
}

static void edge(uint8_t type, char from, bool second, uint32_t max)
{
	struct keeper_msg m = full(type), got;
	struct keeper_bytes *b = second ? &m.bytes2 : &m.bytes;

	*b = (struct keeper_bytes) { many, max };
	got = one(m, from);
	check((second ? got.bytes2.n : got.bytes.n) == max);
	b->n++;
	check(keeper_put(&m, bytes, sizeof(bytes)) == -ENOBUFS);
}

static void limits(void)
{
	static char text[KEEPER_PEM_MAX + 2];
	struct keeper_msg m = full(KEEPER_CA);

	edge(KEEPER_GOT, 'F', false, KEEPER_VALUE_MAX);
	edge(KEEPER_VALUE_IS, 'K', false, KEEPER_VALUE_MAX);
	edge(KEEPER_TOKENS, 'P', true, KEEPER_VALUE_MAX);
	edge(KEEPER_LEAF_IS, 'K', false, KEEPER_CHAIN_MAX);
	edge(KEEPER_LEAF_IS, 'K', true, KEEPER_KEY_MAX);
	edge(KEEPER_MARKS, 'K', false, KEEPER_MARKS_MAX);
	memset(text, 't', sizeof(text) - 1);
	m.text = text;
	check(keeper_put(&m, bytes, sizeof(bytes)) == -ENOBUFS);
	text[KEEPER_PEM_MAX] = '\0';
	check(strlen(one(m, 'K').text) == KEEPER_PEM_MAX);
	m.type = KEEPER_SAY;
	check(strlen(one(m, 'K').text) == KEEPER_TEXT_MAX);
	m.type = KEEPER_GET;
	check(keeper_put(&m, bytes, sizeof(bytes)) == -ENOBUFS);
	check(keeper_parse(&m, 'P', bytes, KEEPER_MSG_MAX + 1, 0) == WIRE_E_TOO_LARGE);
	m = full(KEEPER_GOT);
	check(keeper_put(&m, bytes, 8) == -ENOBUFS);
}

int main(void)
{
	each();
	fields();
	codes();
	limits();
	return 0;
}
