/* What a client is told when its request is not passed on. It is written for an agent that reads it: that this is policy and not a
 * fault of the network, which rule, what a human may do, and that other routes end here too. Names and paths come from
 * the guest; they go back to it without control bytes. */
#include <stdarg.h>
#include <stdio.h>

#include "base/rdwr.h"
#include "base/text.h"
#include "proxy/http-priv.h"

enum { BODY_MAX = 6 * 1024, TEXT_MAX = 512 };

static const struct {
	uint16_t status;
	const char *phrase, *first;
} kinds[] = {
	{ 400, "Bad Request", "not passed on, since it can be read in two ways" },
	{ 403, "Forbidden", "refused by network policy" },
	{ 413, "Content Too Large", "not passed on, since it is too large" },
	{ 421, "Misdirected Request", "not passed on, since it names another host" },
	{ 431, "Request Header Fields Too Large", "not passed on, since its head is too large" },
	{ 502, "Bad Gateway", "allowed by network policy, but not reached" },
	{ 503, "Service Unavailable", "not passed on for now" },
	{ 504, "Gateway Timeout", "allowed by network policy, but no answer in time" },
};

_printf_(2, 3) static void put(struct wr *w, const char *fmt, ...)
{
	size_t room = w->max - w->n;
	va_list ap;
	int n;

	if (w->bad)
		return;
	va_start(ap, fmt);
	n = vsnprintf((char *)w->p + w->n, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room)
		w->bad = true;
	else
		w->n += (size_t)n;
}

/* For a line of text: what is not printable ASCII becomes '?'. Cut. */
static void put_plain(struct wr *w, const char *s)
{
	for (size_t i = 0; i < TEXT_MAX && s[i]; i++)
		wr_u8(w, s[i] >= ' ' && s[i] < 0x7f ? (uint8_t)s[i] : '?');
}

static void put_string(struct wr *w, const char *s)
{
	const bool utf8 = text_is_utf8(s, strlen(s)) && strlen(s) <= TEXT_MAX;

	put(w, "\"");
	for (size_t i = 0; i < TEXT_MAX && s[i]; i++) {
		const uint8_t c = (uint8_t)s[i];

		if (c < ' ' || c == 0x7f)
			put(w, "\\u%04x", c);
		else if (c == '"' || c == '\\')
			put(w, "\\%c", c);
		else if (c >= 0x80 && !utf8)
			put(w, "\\ufffd");
		else
			wr_u8(w, c);
	}
	put(w, "\"");
}

static void put_member(struct wr *w, const char *name, const char *value)
{
	put(w, ", \"%s\": ", name);
	if (value && value[0])
		put_string(w, value);
	else
		put(w, "null");
}

static void body_json(struct wr *w, const struct http_refusal *r, const char *first)
{
	put(w, "{\"error\": ");
	put_string(w, first);
	put(w, ", \"by\": \"bac\", \"status\": %u, \"port\": %u", r->status, r->port);
	put_member(w, "host", r->host);
	put_member(w, "method", r->method);
	put_member(w, "path", r->path);
	put_member(w, "rule", r->rule);
	put_member(w, "reason", r->reason);
	put_member(w, "detail", r->detail);
	put_member(w, "sandbox", r->sandbox);
	put_member(w, "remedy", r->remedy);
	if (r->status == 403)
		put_member(
			w, "advice",
			"A human can allow it on the host with the command in 'remedy'. Do not try "
			"another route: every route ends here.");
	put(w, "}\n");
}

static void put_line(struct wr *w, const char *before, const char *value)
{
	if (!value || !value[0])
		return;
	put(w, "%s", before);
	put_plain(w, value);
	put(w, "\n");
}

static void body_text(struct wr *w, const struct http_refusal *r, const char *first)
{
	put(w, "bac: %s", first);
	if (r->host && r->host[0]) {
		const bool v6 = strchr(r->host, ':');

		put(w, v6 ? ": [" : ": ");
		put_plain(w, r->host);
		put(w, v6 ? "]:%u" : ":%u", r->port);
	}
	put(w, "\n");
	if (r->method && r->method[0] && r->path && r->path[0]) {
		put(w, "The request was ");
		put_plain(w, r->method);
		put_line(w, " ", r->path);
	}
	put_line(w, "", r->detail);
	if (r->rule && r->rule[0])
		put_line(w, "The rule that decided: ", r->rule);
	else if (r->status == 403 && !r->first)
		put(w, "No rule allows it.\n");
	put_line(w, "A human can allow it on the host with:  ", r->remedy);
	if (r->status == 403)
		put(w, "Do not try another route: every route ends here.\n");
}

size_t http_refusal(const struct http_refusal *r, char *p, size_t max)
{
	uint8_t text[BODY_MAX];
	struct wr body = wr_init(text, sizeof(text)), w = wr_init(p, max);
	size_t k = 0;

	while (k < ARRAY_SIZE(kinds) - 1 && kinds[k].status != r->status)
		k++;
	if (kinds[k].status != r->status)
		return 0;
	if (r->json)
		body_json(&body, r, r->first ? r->first : kinds[k].first);
	else
		body_text(&body, r, r->first ? r->first : kinds[k].first);
	if (!wr_ok(&body))
		return 0;
	put(&w, "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n", r->status,
	    kinds[k].phrase, r->json ? "application/json" : "text/plain; charset=utf-8", body.n);
	put(&w, "Cache-Control: no-store\r\nX-Bac-Refused: ");
	put_plain(&w, r->reason && r->reason[0] ? r->reason : "unknown");
	put(&w, "\r\nConnection: %s\r\n\r\n", r->keep_alive ? "keep-alive" : "close");
	if (!r->head_only)
		wr_bytes(&w, text, body.n);
	return wr_ok(&w) ? w.n : 0;
}

/* ---- Accept ---- */

/* q in thousandths, RFC 9110 12.4.2; anything odd is 0. */
static unsigned quality(const uint8_t *p, size_t n)
{
	unsigned q = 0, unit = 100;

	for (size_t i = 0; i + 2 < n; i++) {
		if (p[i] != ';' && p[i] != ' ' && p[i] != '\t')
			continue;
		if (http_lower(p[i + 1]) != 'q' || p[i + 2] != '=')
			continue;
		i += 3;
		q = i < n && p[i] == '1' ? 1000 : 0;
		for (i += 2; i < n && p[i] >= '0' && p[i] <= '9' && !(q / 1000); i++, unit /= 10)
			q += (unsigned)(p[i] - '0') * unit;
		return q;
	}
	return 1000;
}

static bool ends_json(const uint8_t *p, size_t n)
{
	return n > 12 && http_word_is(p, 12, "application/") && http_word_is(p + n - 4, 4, "json");
}

bool http_wants_json(const struct http_head *h, const uint8_t *p)
{
	const struct http_field *f = http_find(h, p, "accept");
	unsigned json = 0, text = 0, q;

	if (!f)
		return false;
	p += f->value.at;
	for (size_t at = 0, end, type; at < f->value.len; at = end + 1) {
		for (end = at; end < f->value.len && p[end] != ','; end++)
			;
		while (at < end && (p[at] == ' ' || p[at] == '\t'))
			at++;
		for (type = at; type < end && p[type] != ';' && p[type] != ' '; type++)
			;
		q = quality(p + type, end - type);
		if (ends_json(p + at, type - at))
			json = MAX(json, q);
		else if (type - at > 5 && http_word_is(p + at, 5, "text/"))
			text = MAX(text, q);
	}
	return json && json >= text;
}
