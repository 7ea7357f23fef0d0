/* Input: a byte that says which kind, then the text. What was read once is read again after the change, and has what was added. */
#include "base/check.h"
#include "guest/init/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = { "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS" };

#define WHERE "/dev/bac-trust"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum spec_kind kind = size && *data & 1 ? SPEC_PROCESS : SPEC_CONTAINER;
	size_t n = size ? size - 1 : 0;
	_free_ char *text = malloc(n ? n : 1);
	struct buf out = BUF_INIT(SPEC_MAX);
	struct spec s, again;

	check(text);
	if (n)
		memcpy(text, data + 1, n);
	if (n < 64 * 1024 && spec_read(&s, kind, text, n, names, 2, WHERE) == 0) {
		check(memchr(s.root, '\0', sizeof(s.root)));
		check(s.mounts.end < n && s.env.end < n);
		check(spec_write(&out, &s, text, n, "{\"destination\":\"" WHERE "\"}",
				 "\"SSL_CERT_FILE=x\"") == 0);
		check(spec_read(&again, kind, (const char *)buf_data(&out), out.n, names, 2,
				WHERE) == 0);
		check(again.taken == (s.taken || s.mounts.there));
		check((again.has & 1) == ((s.has & 1) | s.env.there));
		check(streq(s.root, again.root) && s.dev == again.dev);
	}
	buf_done(&out);
	return 0;
}
