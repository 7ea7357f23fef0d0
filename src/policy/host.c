/* One parser for every place where a destination is written.
 *
 * The order matters. What is not ASCII is turned into ASCII first (IDNA maps full-width digits and
 * ideographic dots to plain ones), and only the result is looked at: so there is no spelling that
 * one reader takes for a name and another for an address. Whether a text is an IPv4 address is
 * settled by its last label, as browsers do (WHATWG URL, "ends in a number checker"): if that is a
 * number, the whole must be an address in one of the forms of inet_aton(3), or it is refused. No name in
 * DNS ends in a number. */
#include "policy/host.h"

#include <arpa/inet.h>
#include <idn2.h>
#include <stdio.h>

#include "base/text.h"

enum { INPUT_MAX = 1024, PARTS_MAX = 4 };

static const char localhost[] = "localhost";

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char lower(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return c;
}

static int digit_of(char c, unsigned base)
{
	int d = -1;

	c = lower(c);
	if (is_digit(c))
		d = c - '0';
	else if (c >= 'a' && c <= 'f')
		d = c - 'a' + 10;
	return d < (int)base ? d : -1;
}

static bool is_number(const char *s, size_t n)
{
	size_t i;

	if (n >= 2 && s[0] == '0' && lower(s[1]) == 'x') {
		for (i = 2; i < n; i++)
			if (digit_of(s[i], 16) < 0)
				return false;
		return true;
	}
	for (i = 0; i < n; i++)
		if (!is_digit(s[i]))
			return false;
	return n > 0;
}

/* One part of an address in the forms of inet_aton(3): decimal, 0 octal, 0x hexadecimal. */
static bool part_value(const char *s, size_t n, uint64_t *ret)
{
	unsigned base = 10;
	uint64_t v = 0;
	size_t i = 0;

	if (!is_number(s, n))
		return false;
	if (n >= 2 && s[0] == '0') {
		base = lower(s[1]) == 'x' ? 16 : 8;
		i = base == 16 ? 2 : 1;
	}
	for (; i < n; i++) {
		int d = digit_of(s[i], base);

		if (d < 0 || v > UINT32_MAX)
			return false;
		v = v * base + (uint64_t)d;
	}
	*ret = v;
	return v <= UINT32_MAX;
}

/* 1 to 4 parts; the last fills what the others leave. */
static bool v4_value(const char *s, size_t n, uint32_t *ret)
{
	uint64_t parts[PARTS_MAX], sum = 0;
	size_t i, n_parts = 0;
	const char *end = s + n;

	for (;;) {
		const char *dot = memchr(s, '.', (size_t)(end - s));
		const char *stop = dot ? dot : end;

		if (n_parts == PARTS_MAX || !part_value(s, (size_t)(stop - s), &parts[n_parts++]))
			return false;
		if (!dot)
			break;
		s = dot + 1;
	}
	for (i = 0; i + 1 < n_parts; i++) {
		if (parts[i] > 255)
			return false;
		sum |= parts[i] << (24 - 8 * i);
	}
	if (parts[i] > UINT32_MAX >> (8 * i))
		return false;
	*ret = (uint32_t)(sum | parts[i]);
	return true;
}

static bool ends_in_number(const char *s, size_t n)
{
	const char *dot = memrchr(s, '.', n);
	size_t at = dot ? (size_t)(dot - s) + 1 : 0;

	return is_number(s + at, n - at);
}

static void set_name(struct host *h, const char *s, size_t n)
{
	h->kind = HOST_NAME;
	memset(h->addr, 0, sizeof(h->addr));
	memcpy(h->text, s, n);
	h->text[n] = '\0';
}

static void set_localhost(struct host *h)
{
	set_name(h, localhost, strlen(localhost));
}

void host_from_addr(struct host *ret, const uint8_t *addr, size_t n)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	static const uint8_t zero[16];

	memset(ret, 0, sizeof(*ret));
	if (n == 16 && !memcmp(addr, mapped, sizeof(mapped))) {
		addr += sizeof(mapped);
		n = 4;
	}
	if ((n == 4 && (addr[0] == 127 || !memcmp(addr, zero, 4))) ||
	    (n == 16 && !memcmp(addr, zero, 15) && addr[15] <= 1)) {
		set_localhost(ret);
	} else if (n == 4 || n == 16) {
		ret->kind = n == 4 ? HOST_V4 : HOST_V6;
		memcpy(ret->addr, addr, n);
		(void)inet_ntop(n == 4 ? AF_INET : AF_INET6, addr, ret->text, sizeof(ret->text));
	}
}

static int parse_v6(struct host *ret, const char *s, size_t n, struct err *e)
{
	char text[INET6_ADDRSTRLEN + 1];
	uint8_t addr[16];

	if (n >= sizeof(text))
		return err_set(e, -EINVAL, "column 1: too long for an IPv6 address");
	memcpy(text, s, n);
	text[n] = '\0';
	if (inet_pton(AF_INET6, text, addr) != 1)
		return err_set(e, -EINVAL, "column 1: '%s' is not an IPv6 address", text);
	host_from_addr(ret, addr, sizeof(addr));
	return 0;
}

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

static int check_label(const char *s, size_t at, size_t n, struct err *e)
{
	if (!n)
		return err_set(e, -EINVAL, "column %zu: an empty label", at + 1);
	if (n > HOST_LABEL_MAX)
		return err_set(e, -EINVAL, "column %zu: a label has %d bytes at most", at + 1,
			       HOST_LABEL_MAX);
	if (s[at] == '-' || s[at + n - 1] == '-')
		return err_set(e, -EINVAL, "column %zu: a label neither begins nor ends with '-'",
			       s[at] == '-' ? at + 1 : at + n);
	return 0;
}

/* s is lower case. */
static int check_name(const char *s, size_t n, struct err *e)
{
	size_t i, at = 0;
	int r;

	if (n > HOST_NAME_MAX_LEN)
		return err_set(e, -EINVAL, "column %d: a name has %d bytes at most",
			       HOST_NAME_MAX_LEN + 1, HOST_NAME_MAX_LEN);
	for (i = 0; i <= n; i++) {
		if (i < n && s[i] != '.') {
			if (!is_name_byte(s[i]))
				return err_set(e, -EINVAL, "column %zu: '%c' is part of no name",
					       i + 1, s[i]);
			continue;
		}
		r = check_label(s, at, i - at, e);
		if (r < 0)
			return r;
		at = i + 1;
	}
	return 0;
}

static bool is_localhost(const char *s)
{
	size_t n = strlen(s), tail = strlen(localhost);

	return streq(s, "host.docker.internal") || (n >= tail && streq(s + n - tail, localhost) &&
						    (n == tail || s[n - tail - 1] == '.'));
}

/* ASCII, a name or an IPv4 address. */
static int parse_plain(struct host *ret, const char *s, size_t n, struct err *e)
{
	char name[INPUT_MAX];
	uint32_t v4;
	size_t i;
	int r;

	if (n > 1 && s[n - 1] == '.')
		n--;
	if (n && ends_in_number(s, n)) {
		uint8_t addr[4];

		if (!v4_value(s, n, &v4))
			return err_set(e, -EINVAL,
				       "column 1: '%.*s' ends in a number and is no IPv4 address",
				       (int)MIN(n, (size_t)60), s);
		for (i = 0; i < sizeof(addr); i++)
			addr[i] = (uint8_t)(v4 >> (24 - 8 * i));
		host_from_addr(ret, addr, sizeof(addr));
		return 0;
	}
	for (i = 0; i < n; i++)
		name[i] = lower(s[i]);
	r = check_name(name, n, e);
	if (r < 0)
		return r;
	set_name(ret, name, n);
	if (is_localhost(ret->text))
		set_localhost(ret);
	return 0;
}

static int parse_idna(struct host *ret, const char *s, size_t n, struct err *e)
{
	char text[INPUT_MAX + 1];
	uint8_t *ascii = NULL;
	size_t len;
	int r;

	if (!text_is_utf8(s, n))
		return err_set(e, -EINVAL, "column 1: not UTF-8");
	memcpy(text, s, n);
	text[n] = '\0';
	r = idn2_lookup_u8((const uint8_t *)text, &ascii, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
	if (r != IDN2_OK)
		return err_set(e, r == IDN2_MALLOC ? -ENOMEM : -EINVAL,
			       "column 1: not a name that IDNA allows: %s", idn2_strerror(r));
	len = strlen((const char *)ascii);
	if (len > INPUT_MAX)
		r = err_set(e, -EINVAL, "column 1: the name is too long");
	else
		r = parse_plain(ret, (const char *)ascii, len, e);
	idn2_free(ascii);
	return r;
}

static int check_bytes(const char *s, size_t n, bool *ret_ascii, struct err *e)
{
	size_t i;

	if (!n)
		return err_set(e, -EINVAL, "column 1: the name is empty");
	if (n > INPUT_MAX)
		return err_set(e, -EINVAL, "column %d: the name is too long", INPUT_MAX + 1);
	*ret_ascii = true;
	for (i = 0; i < n; i++) {
		uint8_t c = (uint8_t)s[i];

		if (c <= ' ' || c == 0x7f || c == '%')
			return err_set(e, -EINVAL, "column %zu: %s is part of no name", i + 1,
				       c == '%'    ? "'%'"
				       : c == ' '  ? "a space"
				       : c == '\0' ? "a NUL"
						   : "a control byte");
		*ret_ascii &= c < 0x80;
	}
	return 0;
}

int host_parse(struct host *ret, const char *text, size_t n, struct err *e)
{
	struct host h = { 0 };
	bool ascii = false;
	int r;

	r = check_bytes(text, n, &ascii, e);
	if (r < 0)
		return r;
	if (text[0] == '[') {
		if (text[n - 1] != ']')
			return err_set(e, -EINVAL, "column %zu: ']' is missing", n + 1);
		r = parse_v6(&h, text + 1, n - 2, e);
	} else if (memchr(text, ':', n)) {
		r = parse_v6(&h, text, n, e);
	} else {
		r = ascii ? parse_plain(&h, text, n, e) : parse_idna(&h, text, n, e);
	}
	if (r == 0)
		*ret = h;
	return r;
}

/* Where the port's colon is, or n. */
static size_t find_colon(const char *s, size_t n)
{
	const char *first, *end;

	if (n && s[0] == '[') {
		end = memchr(s, ']', n);
		if (!end)
			return n;
		return end + 1 < s + n && end[1] == ':' ? (size_t)(end + 1 - s) : n;
	}
	first = memchr(s, ':', n);
	if (!first || memrchr(s, ':', n) != first)
		return n;
	return (size_t)(first - s);
}

static int parse_port(const char *s, size_t n, size_t column, uint16_t *ret, struct err *e)
{
	uint32_t v = 0;
	size_t i;

	for (i = 0; i < n && is_digit(s[i]) && v <= UINT16_MAX; i++)
		v = 10 * v + (uint32_t)(s[i] - '0');
	if (i < n || !v || v > UINT16_MAX)
		return err_set(e, -EINVAL, "column %zu: a port is a number from 1 to 65535",
			       column);
	*ret = (uint16_t)v;
	return 0;
}

int host_port_parse(struct host *ret, uint16_t *ret_port, const char *text, size_t n, struct err *e)
{
	size_t colon = find_colon(text, n);
	uint16_t port = 0;
	struct host h;
	int r;

	if (colon < n) {
		r = parse_port(text + colon + 1, n - colon - 1, colon + 2, &port, e);
		if (r < 0)
			return r;
	}
	r = host_parse(&h, text, colon, e);
	if (r < 0)
		return r;
	*ret = h;
	*ret_port = port;
	return 0;
}

bool host_same(const struct host *a, const struct host *b)
{
	if (a->kind != b->kind || a->kind == HOST_NONE)
		return false;
	return a->kind == HOST_NAME ? streq(a->text, b->text)
				    : !memcmp(a->addr, b->addr, a->kind == HOST_V4 ? 4 : 16);
}
