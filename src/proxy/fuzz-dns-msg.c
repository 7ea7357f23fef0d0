/* Any bytes as a question: what is read is written back in the answer, and our own answers are no questions. */
#include "base/check.h"
#include "proxy/dns-msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void answer(const struct dns_query *q, const struct dns_answer *a)
{
	uint8_t out[DNS_ANSWER_MAX];
	struct dns_query again;
	size_t n = dns_answer(q, a, out, sizeof(out));

	check(n >= 12 && (a->tcp || n <= q->udp_size));
	check(12U + q->question_len <= n);
	check(!memcmp(out + 12, q->question, q->question_len));
	check(dns_parse(&again, out, n) == -EINVAL); /* a response */
	out[2] &= 0x7f;
	if (!q->opcode && q->question_len && !out[7] && !(out[2] & 2) && !a->why && q->class == 1) {
		check(dns_parse(&again, out, n) == 0);
		check(again.type == q->type && streq(again.name, q->name));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const uint8_t addr[16] = { 1, 2, 3, 4 };
	static char why[900];
	struct dns_query q;
	int r = dns_parse(&q, p, n);

	if (r < 0)
		return 0;
	check(q.id == (p[0] << 8 | p[1]) && q.udp_size >= 512 && q.udp_size <= DNS_UDP_MAX);
	check(q.question_len <= 259 && strlen(q.name) < DNS_TEXT_MAX);
	check(q.question_len || (r && !q.name[0]));
	memset(why, 'w', sizeof(why) - 1);
	answer(&q, &(struct dns_answer) { .rcode = (uint8_t)r });
	answer(&q, &(struct dns_answer) { .addr = addr, .addr_len = 4, .ttl = 30 });
	answer(&q, &(struct dns_answer) { .addr = addr, .addr_len = 16, .why = why });
	answer(&q, &(struct dns_answer) { .ptr = q.name, .why = why });
	answer(&q, &(struct dns_answer) { .ptr = q.name, .why = why, .tcp = true });
	return 0;
}
