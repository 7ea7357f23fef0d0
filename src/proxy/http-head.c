/* Heads, line by line: a line is judged when it is whole, by what stands in it and before it. So the result for some bytes
 * is the result for every longer run of bytes, however they come. What the fields say together (framing, host) is judged
 * when the head is whole. */
#include "proxy/http.h"

#include "proxy/http-priv.h"

static const char digits[] = "HTTP/1.";
static const char tchars[] = "!#$%&'*+-.^_`|~";
static const char *const known[] = { "GET",     "HEAD",  "POST",    "PUT",  "DELETE",
				     "OPTIONS", "PATCH", "CONNECT", "TRACE" };

char http_lower(uint8_t c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

static bool is_alnum(uint8_t c)
{
	return (c >= '0' && c <= '9') || (http_lower(c) >= 'a' && http_lower(c) <= 'z');
}

bool http_is_token(uint8_t c)
{
	return is_alnum(c) || (c && strchr(tchars, c));
}

bool http_word_is(const uint8_t *p, size_t n, const char *word)
{
	if (n != strlen(word))
		return false;
	for (size_t i = 0; i < n; i++)
		if (http_lower(p[i]) != word[i])
			return false;
	return true;
}

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r';
}

/* A method that everybody knows, and what follows looks like a target. */
static bool is_known(const uint8_t *p, size_t n, size_t word)
{
	const uint8_t next = p[word + (word + 1 < n)];

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (word == strlen(known[i]) && !memcmp(p, known[i], word))
			return next == '/' || next == '*' || http_lower(next) == 'h' ||
			       (next > ' ' && streq(known[i], "CONNECT"));
	return false;
}

/* " HTTP/" somewhere in the rest of the line. */
static enum http_result sniff_rest(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t k = 1;

		if (!is_blank(p[i])) {
			if (p[i] < ' ' || p[i] == 0x7f)
				return HTTP_NOT; /* also the end of the line */
			continue;
		}
		while (k < 6 && i + k < n && http_lower(p[i + k]) == "?http/"[k])
			k++;
		if (k == 6)
			return HTTP_OK;
	}
	return HTTP_MORE;
}

enum http_result http_sniff(const uint8_t *p, size_t n)
{
	const size_t max = HTTP_TARGET_MAX + 256;
	enum http_result res;
	bool cut = n >= max;
	size_t word = 0;

	n = MIN(n, max);
	while (n && (is_blank(*p) || *p == '\n')) {
		p++;
		n--;
	}
	while (word < n && http_is_token(p[word]))
		word++;
	if (word == n)
		return word > 64 || cut ? HTTP_NOT : HTTP_MORE;
	if (!word || word > 64 || !is_blank(p[word]))
		return HTTP_NOT;
	if (word + 1 < n && p[word] == ' ' && is_known(p, n, word))
		return HTTP_OK;
	res = sniff_rest(p + word, n - word);
	return res == HTTP_MORE && cut ? HTTP_NOT : res;
}

/* ---- lines ---- */

static const char *control_fault(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if ((p[i] >= ' ' && p[i] != 0x7f) || p[i] == '\t')
			continue;
		return !p[i] ? "a NUL" : p[i] == '\r' ? "a CR within a line" : "a control byte";
	}
	return NULL;
}

/* One line without its CRLF. HTTP_OK, HTTP_MORE or HTTP_BAD with *ret_why. */
static enum http_result line_take(const uint8_t *p, size_t n, size_t at, size_t *ret_end,
				  const char **ret_why)
{
	const uint8_t *nl = n > at ? memchr(p + at, '\n', n - at) : NULL;
	size_t end;

	if (!nl)
		return HTTP_MORE;
	end = (size_t)(nl - p);
	*ret_why = end == at || p[end - 1] != '\r' ? "a line ends in LF alone"
						   : control_fault(p + at, end - 1 - at);
	if (*ret_why)
		return HTTP_BAD;
	*ret_end = end - 1;
	return HTTP_OK;
}

static const char *field_take(struct http_head *h, const uint8_t *p, size_t at, size_t end)
{
	struct http_field *f = &h->fields[h->n_fields];
	size_t colon = at;

	if (p[at] == ' ' || p[at] == '\t')
		return "a folded field";
	while (colon < end && http_is_token(p[colon]))
		colon++;
	if (colon == at || colon == end || p[colon] != ':')
		return colon < end && (p[colon] == ' ' || p[colon] == '\t')
			       ? "a space before the colon"
			       : "a field's name is not a token";
	f->name = (struct http_text) { (uint32_t)at, (uint32_t)(colon - at) };
	at = colon + 1;
	while (at < end && (p[at] == ' ' || p[at] == '\t'))
		at++;
	while (end > at && (p[end - 1] == ' ' || p[end - 1] == '\t'))
		end--;
	f->value = (struct http_text) { (uint32_t)at, (uint32_t)(end - at) };
	h->n_fields++;
	return NULL;
}

/* Everything behind the first line, which ended before at. */
static enum http_result fields_take(struct http_head *h, const uint8_t *p, size_t n, size_t at)
{
	enum http_result res;
	size_t end;

	h->n_fields = 0;
	for (;;) {
		res = line_take(p, n, at, &end, &h->why);
		if (res != HTTP_OK)
			return res;
		if (end == at)
			break;
		if (h->n_fields == HTTP_FIELDS_MAX)
			return HTTP_TOO_LARGE;
		h->why = field_take(h, p, at, end);
		if (h->why)
			return HTTP_BAD;
		at = end + 2;
	}
	h->size = (uint32_t)end + 2;
	return HTTP_OK;
}

static bool version_take(struct http_head *h, const uint8_t *p, size_t n)
{
	const size_t len = sizeof(digits) - 1;

	if (n != len + 1 || memcmp(p, digits, len) != 0 || (p[len] != '0' && p[len] != '1'))
		return false;
	h->minor = p[len] - '0';
	return true;
}

static enum http_result bad(struct http_head *h, const char *why)
{
	h->why = why;
	return why ? HTTP_BAD : HTTP_OK;
}

/* All but the fields, of which n_fields says how many count. */
static void clear(struct http_head *h)
{
	memset(h, 0, offsetof(struct http_head, fields));
	memset(&h->form, 0, sizeof(*h) - offsetof(struct http_head, form));
}

/* ---- requests ---- */

static enum http_result request_line(struct http_head *h, const uint8_t *p, size_t end)
{
	const char *const h2 = "PRI * HTTP/2.0";
	size_t m = 0, t, v;

	while (m < end && http_is_token(p[m]))
		m++;
	if (!m || m == end || p[m] != ' ')
		return bad(h, "the method is not followed by one space");
	if (m >= sizeof(h->method))
		return bad(h, "the method is too long");
	if (end == strlen(h2) && !memcmp(p, h2, end))
		return bad(h, "HTTP/2 without TLS: its requests cannot be read");
	for (t = m + 1; t < end && p[t] != ' ' && p[t] != '\t' && p[t] != '#'; t++)
		;
	if (t < end && p[t] == '#')
		return bad(h, "a fragment in the target");
	if (t == m + 1 || t == end || p[t] != ' ')
		return bad(h, "the target is not followed by one space and a version");
	v = t + 1;
	if (!version_take(h, p + v, end - v))
		return bad(h, "a version other than HTTP/1.0 and HTTP/1.1");
	if (t - m - 1 > HTTP_TARGET_MAX)
		return HTTP_TOO_LARGE;
	memcpy(h->method, p, m);
	h->method[m] = '\0';
	h->target = (struct http_text) { (uint32_t)m + 1, (uint32_t)(t - m - 1) };
	return HTTP_OK;
}

static const char *judge_request(struct http_head *h, const uint8_t *p)
{
	const struct http_field *host = http_find(h, p, "host");
	const char *why = NULL;

	for (uint16_t i = 0; host && i < h->n_fields; i++)
		if (&h->fields[i] != host &&
		    http_word_is(p + h->fields[i].name.at, h->fields[i].name.len, "host"))
			return "two Host fields";
	if (!host && h->minor)
		return "no Host field";
	why = http_target(h, p + h->target.at, h->target.len, host ? p + host->value.at : NULL,
			  host ? host->value.len : 0);
	return why ? why : http_framing(h, p, h->method);
}

/* HTTP_MORE at the limit is too much. */
static enum http_result limited(enum http_result res, size_t n)
{
	return res == HTTP_MORE && n >= HTTP_HEAD_MAX ? HTTP_TOO_LARGE : res;
}

/* As a server that is asked: whatever begins like a request is one, and may be a bad one. */
enum http_result http_request(struct http_head *ret, const uint8_t *p, size_t n)
{
	enum http_result res = http_sniff(p, n);
	size_t end;

	clear(ret);
	if (res != HTTP_OK)
		return res;
	n = MIN(n, HTTP_HEAD_MAX);
	res = line_take(p, n, 0, &end, &ret->why);
	if (res != HTTP_OK)
		return limited(res, n);
	res = request_line(ret, p, end);
	if (res != HTTP_OK)
		return res;
	res = fields_take(ret, p, n, end + 2);
	if (res != HTTP_OK)
		return limited(res, n);
	return bad(ret, judge_request(ret, p));
}

/* ---- responses ---- */

static enum http_result status_line(struct http_head *h, const uint8_t *p, size_t end)
{
	const size_t v = sizeof(digits); /* of the version */

	if (end < v + 4 || !version_take(h, p, v) || p[v] != ' ')
		return bad(h, "not a status line of HTTP/1.0 or HTTP/1.1");
	for (size_t i = v + 1; i < v + 4; i++) {
		if (p[i] < '0' || p[i] > '9')
			return bad(h, "the status is not a number");
		h->status = (uint16_t)(h->status * 10 + (p[i] - '0'));
	}
	if (h->status < 100 || (end > v + 4 && p[v + 4] != ' '))
		return bad(h, "the status is not a number of three digits");
	return HTTP_OK;
}

enum http_result http_response(struct http_head *ret, const uint8_t *p, size_t n,
			       const char *method)
{
	enum http_result res;
	size_t end;

	clear(ret);
	for (size_t i = 0; i < MIN(n, sizeof(digits) - 1); i++)
		if (p[i] != (uint8_t)digits[i])
			return HTTP_NOT;
	n = MIN(n, HTTP_HEAD_MAX);
	res = line_take(p, n, 0, &end, &ret->why);
	if (res != HTTP_OK)
		return limited(res, n);
	res = status_line(ret, p, end);
	if (res != HTTP_OK)
		return res;
	res = fields_take(ret, p, n, end + 2);
	if (res != HTTP_OK)
		return limited(res, n);
	return bad(ret, http_framing(ret, p, method ? method : "GET"));
}

const struct http_field *http_find(const struct http_head *h, const uint8_t *p, const char *name)
{
	for (uint16_t i = 0; i < h->n_fields; i++) {
		const struct http_text *t = &h->fields[i].name;
		size_t k = 0;

		while (k < t->len && http_lower(p[t->at + k]) == http_lower((uint8_t)name[k]))
			k++;
		if (k == t->len && !name[k])
			return &h->fields[i];
	}
	return NULL;
}
