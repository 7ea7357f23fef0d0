/* Any text as credentials, and any destination: "HOST:PORT\n", then the file. What is taken is written back the same. */
#include "base/check.h"
#include "policy/cred-priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void write_back(const struct cred_set *set, const char *text, size_t n)
{
	struct buf out = BUF_INIT(CRED_TEXT_MAX);
	const struct cred_use *u;
	struct err e;
	size_t i;

	check(cred_text_begin(&out) == 0);
	for (i = 0; (u = cred_at(set, i)); i++) {
		check(cred_text_use(&out, u, &e) == 0);
		check(cred_find(set, u->id) == u);
	}
	check(cred_text_end(&out, i) == 0);
	check(out.n == n && !memcmp(buf_data(&out), text, n));
	buf_done(&out);
}

static void ask(const struct cred_set *set, const char *where, size_t n)
{
	const struct cred_use *u, *next;
	size_t at = 0, i;
	uint16_t port;
	struct host h;
	struct err e;

	if (host_port_parse(&h, &port, where, n, &e) < 0)
		return;
	next = cred_next(set, &h, port, &at);
	check(cred_opens(set, &h, port) == (next != NULL));
	for (i = 0; (u = cred_at(set, i)); i++) {
		check(cred_matches(u, &h, port) == (u == next));
		if (u == next)
			next = cred_next(set, &h, port, &at);
	}
	check(!next);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	const char *s = (const char *)p, *eol = n ? memchr(s, '\n', n) : NULL, *text;
	_cleanup_(cred_set_freep) struct cred_set *set = NULL;
	size_t len, text_n;
	struct err e;

	if (!eol)
		return 0;
	text = eol + 1;
	len = n - (size_t)(text - s);
	if (cred_file_split(text, len, &text_n) == 0)
		len = text_n;
	if (cred_text_parse(text, len, &set, &e) < 0) {
		check(starts_with(e.msg, "line ") || len > CRED_TEXT_MAX);
		return 0;
	}
	write_back(set, text, len);
	ask(set, s, (size_t)(eol - s));
	return 0;
}
