/* Secrets in answers are blanked, in requests found. */
#include "base/check.h"
#include "proxy/inject.h"

static const char secret[] = "sk-ant-api03-the-value-of-it", other[] = "ghp_0123456789abcdefghij";

static struct leak_set set(void)
{
	struct leak_mark *v = calloc(2, LEAK_FORMS_MAX * sizeof(*v));
	struct leak_set s;
	size_t n;

	check(v);
	n = leak_marks(7, "anthropic", (const uint8_t *)secret, strlen(secret), v, LEAK_FORMS_MAX);
	n += leak_marks(7, "github", (const uint8_t *)other, strlen(other), v + n, LEAK_FORMS_MAX);
	check(leak_set_init(&s, 7, v, n) == 0);
	return s;
}

static const struct {
	const char *in, *out;
	unsigned hits;
} rows[] = {
	{ "nothing", "nothing", 0 },
	{ "", "", 0 },
	{ "a sk-ant-api03-the-value-of-it b", "a **************************** b", 1 },
	{ "sk-ant-api03-the-value-of-itghp_0123456789abcdefghij",
	  "****************************************************", 2 },
	{ "sk-ant-api03-the-value-of-i", "sk-ant-api03-the-value-of-i", 0 },
	{ "sk-ant-api03-the-sk-ant-api03-the-value-of-it.",
	  "sk-ant-api03-the-****************************.", 1 },
	{ "{\"key\": \"c2stYW50LWFwaTAzLXRoZS12YWx1ZS1vZi1pdA==\"}",
	  "{\"key\": \"*************************************A==\"}", 1 },
	{ "6768705f303132333435363738396162636465666768696a",
	  "************************************************", 1 },
};

/* Cut where it may be: what is held is not on the way before it is clear. */
static void answers(const struct leak_set *s)
{
	struct buf out;
	struct guard g;
	const char *name;
	unsigned hits, sum;
	size_t i, cut, n;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		n = strlen(rows[i].in);
		for (cut = 0; cut <= n; cut++) {
			memset(&g, 0, sizeof(g));
			buf_init(&out, 1000);
			name = NULL;
			check(guard_answer(&g, s, (const uint8_t *)rows[i].in, cut, false, &out,
					   &hits, &name) == 0);
			sum = hits;
			check(guard_answer(&g, s, (const uint8_t *)rows[i].in + cut, n - cut, true,
					   &out, &hits, &name) == 0);
			sum += hits;
			check(sum == rows[i].hits && !sum == !name && out.n == n);
			/* of one whose first 16 bytes are cut the first piece may have gone */
			check(!n || !memmem(buf_data(&out), n, secret, strlen(secret)));
			if (!cut || cut == n)
				check(streq(buf_str(&out), rows[i].out));
			buf_done(&out);
			guard_done(&g);
		}
	}
}

static void holds_back(const struct leak_set *s)
{
	struct buf out = BUF_INIT(1000);
	struct guard g = { 0 };
	const char *name = NULL;
	unsigned hits;

	check(guard_answer(&g, s, (const uint8_t *)"data: sk-ant-api03-th", 21, false, &out, &hits,
			   &name) == 0);
	check(out.n == 21); /* it has not begun, for all that is known */
	check(guard_answer(&g, s, (const uint8_t *)"e-value", 7, false, &out, &hits, &name) == 0);
	check(out.n == 21 && !hits);
	check(guard_answer(&g, s, (const uint8_t *)"-of-it.", 7, false, &out, &hits, &name) == 0);
	check(hits == 1 && streq(buf_str(&out), "data: sk-ant-api03-th*************."));
	/* without marks nothing is held, nor looked at */
	check(guard_answer(&g, NULL, (const uint8_t *)secret, strlen(secret), false, &out, &hits,
			   &name) == 0);
	check(!hits && out.n == 35 + strlen(secret));
	guard_done(&g);
	buf_done(&out);
	buf_init(&out, 4);
	check(guard_answer(&g, s, (const uint8_t *)"12345", 5, true, &out, &hits, &name) ==
	      -ENOBUFS);
	guard_done(&g);
	buf_done(&out);
}

static void add(struct xhead *h, const char *name, const char *value)
{
	check(hfields_add(&h->fields, name, strlen(name), value, strlen(value)) == 0);
}

static bool own(const void *arg, const char *name)
{
	return streq(arg, name);
}

/* One that is this host's may be said to it, and hides none of another's. */
static void own_and_other(const struct leak_set *s)
{
	struct xhead h = { 0 };
	const char *name = NULL;

	add(&h, "a", "sk-ant-api03-the-value-of-it");
	check(!guard_request_head(s, &h, own, "anthropic", &name) && !name);
	check(guard_request_head(s, &h, own, "github", &name) && streq(name, "anthropic"));
	add(&h, "b", "sk-ant-api03-the-value-of-it ghp_0123456789abcdefghij");
	check(guard_request_head(s, &h, own, "anthropic", &name) && streq(name, "github"));
	xhead_done(&h);
}

static void heads(const struct leak_set *s)
{
	static const char *const bad[][2] = {
		{ "/?k=sk-ant-api03-the-value-of-it", NULL },
		{ "/?k=736b2d616e742d61706930332d7468652d76616c75652d6f662d6974", NULL },
		{ "/", "Bearer sk-ant-api03-the-value-of-it" },
		{ "/", "Basic eC1hY2Nlc3MtdG9rZW46Z2hwXzAxMjM0NTY3ODlhYmNkZWZnaGlq" },
	};
	struct xhead h = { 0 };
	const char *name = NULL;
	size_t i;

	add(&h, "A", "1");
	add(&h, "Location", "/?t=sk-ant-api03-the-value-of-it&u=ghp_0123456789abcdefghij");
	check(!guard_head(NULL, &h, &name) && !name);
	check(guard_head(s, &h, &name) == 2 && streq(name, "github"));
	check(streq(h.fields.v[1].value,
		    "/?t=****************************&u=************************"));
	check(!guard_head(s, &h, &name));
	xhead_done(&h);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		h = (struct xhead) { 0 };
		h.target = strdup(bad[i][0]);
		add(&h, "a", "1");
		if (bad[i][1])
			add(&h, "authorization", bad[i][1]);
		name = NULL;
		check(guard_request_head(s, &h, NULL, NULL, &name) && name);
		check(!guard_request_head(NULL, &h, NULL, NULL, &name));
		xhead_done(&h);
	}
	h.target = strdup("/");
	add(&h, "authorization", "Bearer sk-ant-api03-the-value-of-another");
	check(!guard_request_head(s, &h, NULL, NULL, &name));
	xhead_done(&h);
}

int main(void)
{
	struct leak_set s = set();

	answers(&s);
	holds_back(&s);
	heads(&s);
	own_and_other(&s);
	leak_set_done(&s);
	return 0;
}
