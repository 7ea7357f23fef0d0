/* Shares: what is put comes out; the edges; who may say what, with how many descriptors. */
#include "wire/share.h"

#include "base/check.h"

static uint8_t bytes[SHARE_MSG_MAX + 8];
static struct share_msg m, back;
static char longest[WIRE_PATH_MAX + 2];

static const struct {
	uint8_t num;
	enum share_from from;
	size_t fds;
} types[] = {
#define X(name, num, from, fds) { num, from, fds },
	SHARE_TYPES(X)
#undef X
};

static struct share_msg sample(uint8_t type)
{
	struct share_msg s = { .type = type, .seq = 0xdeadbeef };

	if (type == SHARE_ADD)
		s.add = (struct share_add) { .id = 7, .flags = SHARE_RO, .path = "/home/a b" };
	if (type == SHARE_REMOVE)
		s.remove = UINT32_MAX;
	if (type == SHARE_RULES) {
		s.rules.n = 2;
		s.rules.v[0] = (struct share_rule) { SHARE_HIDE, ".env" };
		s.rules.v[1] = (struct share_rule) { SHARE_ALLOW, "*.pem" };
	}
	if (type == SHARE_MARKS)
		s.marks = (struct share_marks) { true, 5, (const uint8_t *)"\0\1\2\3\4" };
	if (type == SHARE_ANSWER)
		s.answer = (struct share_answer) { .code = -ENOTDIR, .text = "no folder" };
	if (type == SHARE_REFUSED)
		s.refused = (struct share_refused) { .kind = SHARE_PROTECT,
						     .share = 1,
						     .dropped = 9,
						     .path = ".git/hooks/x",
						     .rule = ".git/hooks/**",
						     .op = "create" };
	if (type == SHARE_CHANGED)
		s.changed = (struct wire_changed) {
			.id = 4, .kind = CHANGED_DELETED, .dir = 1, .path = "a/b"
		};
	return s;
}

static size_t put(const struct share_msg *s)
{
	ssize_t n = share_put(s, bytes, sizeof(bytes));

	check(n > 0 && n <= SHARE_MSG_MAX);
	return (size_t)n;
}

static void same(const struct share_msg *a, const struct share_msg *b)
{
	check(a->type == b->type && a->seq == b->seq);
	if (a->type == SHARE_ADD)
		check(a->add.id == b->add.id && a->add.flags == b->add.flags &&
		      streq(a->add.path, b->add.path));
	if (a->type == SHARE_REMOVE)
		check(a->remove == b->remove);
	if (a->type == SHARE_RULES) {
		check(a->rules.n == b->rules.n);
		for (uint32_t i = 0; i < a->rules.n; i++)
			check(a->rules.v[i].kind == b->rules.v[i].kind &&
			      streq(a->rules.v[i].pattern, b->rules.v[i].pattern));
	}
	if (a->type == SHARE_MARKS)
		check(a->marks.refuse == b->marks.refuse && a->marks.n == b->marks.n &&
		      memcmp(a->marks.p, b->marks.p, a->marks.n) == 0);
	if (a->type == SHARE_ANSWER)
		check(a->answer.code == b->answer.code && streq(a->answer.text, b->answer.text));
	if (a->type == SHARE_CHANGED)
		check(a->changed.id == b->changed.id && a->changed.kind == b->changed.kind &&
		      a->changed.dir == b->changed.dir && streq(a->changed.path, b->changed.path));
	if (a->type == SHARE_REFUSED)
		check(a->refused.kind == b->refused.kind && a->refused.share == b->refused.share &&
		      a->refused.dropped == b->refused.dropped &&
		      streq(a->refused.path, b->refused.path) &&
		      streq(a->refused.rule, b->refused.rule) &&
		      streq(a->refused.op, b->refused.op));
}

/* Every type: there and back; from the other side, cut at any byte, with a byte more, or with another
 * number of descriptors it is malformed. */
static void each_type(size_t i)
{
	const enum share_from other =
		types[i].from == FROM_SUPERVISOR ? FROM_WORKSPACE : FROM_SUPERVISOR;
	size_t n, cut;

	m = sample(types[i].num);
	n = put(&m);
	check(share_parse(&back, types[i].from, bytes, n, types[i].fds) == WIRE_OK);
	same(&m, &back);
	check(share_parse(&back, other, bytes, n, types[i].fds) == WIRE_E_MALFORMED);
	check(share_parse(&back, types[i].from, bytes, n, types[i].fds + 1) == WIRE_E_MALFORMED);
	if (types[i].fds)
		check(share_parse(&back, types[i].from, bytes, n, 0) == WIRE_E_MALFORMED);
	for (cut = 0; cut < n; cut++) {
		_free_ uint8_t *p = malloc(cut + !cut);

		check(p);
		memcpy(p, bytes, cut);
		check(share_parse(&back, types[i].from, p, cut, types[i].fds) == WIRE_E_MALFORMED);
		check(share_put(&m, p, cut) == -ENOBUFS);
	}
	bytes[n] = 0;
	check(share_parse(&back, types[i].from, bytes, n + 1, types[i].fds) == WIRE_E_MALFORMED);
}

static void values(void)
{
	size_t n;

	m = sample(SHARE_ADD);
	m.add.flags = SHARE_FLAGS + 1;
	check(share_parse(&back, FROM_SUPERVISOR, bytes, put(&m), 1) == WIRE_E_MALFORMED);
	m.add.flags = SHARE_FLAGS;
	m.add.path = "relative";
	check(share_parse(&back, FROM_SUPERVISOR, bytes, put(&m), 1) == WIRE_E_MALFORMED);
	m.add.path = longest;
	longest[WIRE_PATH_MAX] = '\0';
	check(share_parse(&back, FROM_SUPERVISOR, bytes, put(&m), 1) == WIRE_OK);
	longest[WIRE_PATH_MAX] = 'x';
	check(share_put(&m, bytes, sizeof(bytes)) == -ENOBUFS);

	m = sample(SHARE_ANSWER);
	m.answer.code = 1;
	check(share_parse(&back, FROM_WORKSPACE, bytes, put(&m), 0) == WIRE_E_MALFORMED);
	m.answer.code = INT32_MIN;
	check(share_parse(&back, FROM_WORKSPACE, bytes, put(&m), 0) == WIRE_E_MALFORMED);
	m.answer.code = -4095;
	m.answer.text = longest; /* cut */
	check(share_parse(&back, FROM_WORKSPACE, bytes, put(&m), 0) == WIRE_OK);
	check(strlen(back.answer.text) == WIRE_TEXT_MAX);

	m = sample(SHARE_REFUSED);
	m.refused.path = m.refused.rule = m.refused.op = longest;
	check(share_parse(&back, FROM_WORKSPACE, bytes, put(&m), 0) == WIRE_OK);
	check(strlen(back.refused.path) == WIRE_PATH_MAX &&
	      strlen(back.refused.op) == WIRE_NAME_MAX);
	m.refused.kind = SHARE_ALLOW;
	check(share_parse(&back, FROM_WORKSPACE, bytes, put(&m), 0) == WIRE_E_MALFORMED);

	m = sample(SHARE_START);
	m.type = 6;
	n = put(&m);
	check(share_parse(&back, FROM_SUPERVISOR, bytes, n, 0) == WIRE_E_MALFORMED);
	check(share_parse(&back, FROM_SUPERVISOR, bytes, SHARE_MSG_MAX + 1, 0) == WIRE_E_TOO_LARGE);
}

static void rules(void)
{
	uint32_t i;

	m = (struct share_msg) { .type = SHARE_RULES };
	for (i = 0; i < SHARE_RULES_MAX; i++)
		m.rules.v[i] = (struct share_rule) { SHARE_PROTECT, "a/**" };
	m.rules.n = SHARE_RULES_MAX;
	check(share_parse(&back, FROM_SUPERVISOR, bytes, put(&m), 0) == WIRE_OK);
	same(&m, &back);
	bytes[5 + 2]++; /* the count says more than the maximum */
	check(share_parse(&back, FROM_SUPERVISOR, bytes, SHARE_MSG_MAX, 0) == WIRE_E_MALFORMED);
	m.rules.n++;
	check(share_put(&m, bytes, sizeof(bytes)) == -ENOBUFS);
	m.rules.n = 1;
	m.rules.v[0].kind = 0;
	check(share_parse(&back, FROM_SUPERVISOR, bytes, put(&m), 0) == WIRE_E_MALFORMED);
	m.rules.v[0].kind = SHARE_ALLOW + 1;
	check(share_parse(&back, FROM_SUPERVISOR, bytes, put(&m), 0) == WIRE_E_MALFORMED);
	m.rules.n = 0;
	check(share_parse(&back, FROM_SUPERVISOR, bytes, put(&m), 0) == WIRE_OK);
}

int main(void)
{
	memset(longest, 'x', sizeof(longest) - 1);
	longest[0] = '/';
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		each_type(i);
	values();
	rules();
	return 0;
}
