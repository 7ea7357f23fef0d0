#pragma once
/* DNS messages (RFC 1035 4.1, RFC 6891 EDNS, RFC 8914 extended errors): the questions of a guest, which are hostile, and our
 * answers. Nothing here makes a system call. */
#include "base/base.h"

enum { DNS_QUERY_MAX = 4096, DNS_ANSWER_MAX = 4096, DNS_UDP_MAX = 1232 };
enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16 /* said in the OPT record (RFC 6891 6.1.3) */
};
/* A name as text: at most 255 bytes, each of which may need four. */
enum { DNS_TEXT_MAX = 1024 };
enum dns_type {
	DNS_A = 1,
	DNS_NS = 2,
	DNS_CNAME = 5,
	DNS_SOA = 6,
	DNS_PTR = 12,
	DNS_MX = 15,
	DNS_TXT = 16,
	DNS_AAAA = 28,
	DNS_SRV = 33,
	DNS_SVCB = 64,
	DNS_HTTPS = 65,
	DNS_ANY = 255
};

struct dns_query {
	uint16_t id, type, class;
	uint8_t opcode;
	bool rd, edns;
	uint16_t udp_size; /* what the asker takes over UDP: 512 to DNS_UDP_MAX */
	char name
		[DNS_TEXT_MAX]; /* as asked, labels joined by '.', no trailing dot; bytes other than letters, digits, '-', '_' are
	                        written \DDD, so that host_parse() refuses them */
	uint8_t question[260];
	uint16_t question_len; /* to be repeated in the answer, case and all (0x20) */
};

/* One whole message. 0; -EINVAL: not worth an answer (too short, a response, no header); positive: an enum dns_rcode with which
 * to answer: ret may be handed to dns_answer() then too, its question_len may be 0, its name "". Exactly one question, and
 * nothing but it and one OPT record; compression in a question is FORMERR; a class other than IN is REFUSED. */
int dns_parse(struct dns_query *ret, const uint8_t *p, size_t n) _must_check_;

struct dns_answer {
	uint8_t rcode;
	const uint8_t *addr; /* 4 or 16 bytes: an A or AAAA record; NULL: none */
	uint8_t addr_len;
	const char *ptr; /* a PTR record; NULL: none */
	uint32_t ttl;
	const char *
		why; /* EDNS extended error 15 (Blocked) with this text, if the asker speaks EDNS; NULL: none */
	bool tcp; /* else cut to udp_size with TC set */
};
/* Bytes written into p (max at least DNS_ANSWER_MAX), never 0. What has no room over UDP goes in this order: the text of the
 * error, then the record (TC is set). */
size_t dns_answer(const struct dns_query *q, const struct dns_answer *a, uint8_t *p, size_t max);
