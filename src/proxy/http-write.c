#include "proxy/http-write.h"

#include <strings.h>

/* Fields that end here (RFC 9110 7.6.1); what Connection names ends here too. */
static const char *const hop[] = { "connection", "keep-alive", "proxy-connection",
				   "upgrade",    "te",         "http2-settings" };
static const char *const ours[] = { "proxy-authorization", "proxy-authenticate" };

static bool is(const uint8_t *p, struct http_text t, const char *name)
{
	return strlen(name) == t.len && strncasecmp((const char *)p + t.at, name, t.len) == 0;
}

static bool among(const uint8_t *p, struct http_text t, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is(p, t, list[i]))
			return true;
	return false;
}

/* Is name one of the options of this Connection field? */
static bool listed(const uint8_t *p, struct http_text value, struct http_text name)
{
	const char *s = (const char *)p + value.at, *end = s + value.len;

	while (s < end) {
		const char *word;

		while (s < end && (*s == ' ' || *s == '\t' || *s == ','))
			s++;
		for (word = s; s < end && *s != ',' && *s != ' ' && *s != '\t';)
			s++;
		if ((size_t)(s - word) == name.len && name.len &&
		    strncasecmp(word, (const char *)p + name.at, name.len) == 0)
			return true;
	}
	return false;
}

static bool named_by_connection(const struct http_rewrite *w, struct http_text name)
{
	for (uint16_t i = 0; i < w->head->n_fields; i++)
		if (is(w->bytes, w->head->fields[i].name, "connection") &&
		    listed(w->bytes, w->head->fields[i].value, name))
			return true;
	return false;
}

static bool dropped(const struct http_rewrite *w, struct http_text name)
{
	if (w->upgrade && is(w->bytes, name, "upgrade"))
		return false;
	return among(w->bytes, name, hop, ARRAY_SIZE(hop)) ||
	       (w->forward && among(w->bytes, name, ours, ARRAY_SIZE(ours))) ||
	       named_by_connection(w, name);
}

static int add_field(struct buf *out, const uint8_t *p, const struct http_field *f)
{
	int r = buf_add(out, p + f->name.at, f->name.len);

	if (r == 0)
		r = buf_add(out, ": ", 2);
	if (r == 0)
		r = buf_add(out, p + f->value.at, f->value.len);
	return r < 0 ? r : buf_add(out, "\r\n", 2);
}

static int add_fields(struct buf *out, const struct http_rewrite *w, bool host)
{
	const struct http_head *h = w->head;
	int r = 0;

	for (uint16_t i = 0; i < h->n_fields && r == 0; i++)
		if (!dropped(w, h->fields[i].name) &&
		    !(host && is(w->bytes, h->fields[i].name, "host")))
			r = add_field(out, w->bytes, &h->fields[i]);
	return r;
}

static int add_end(struct buf *out, const struct http_rewrite *w)
{
	const char *connection = w->upgrade  ? "Connection: Upgrade\r\n"
				 : !w->keep  ? "Connection: close\r\n"
				 : w->http10 ? "Connection: keep-alive\r\n"
					     : "";

	return buf_printf(out, "%s\r\n", connection);
}

static int add_authority(struct buf *out, const struct http_head *h, uint16_t port)
{
	const bool v6 = h->host.kind == HOST_V6;
	int r = buf_printf(out, "%s%s%s", v6 ? "[" : "", h->host.text, v6 ? "]" : "");

	if (r == 0 && port)
		r = buf_printf(out, ":%u", port);
	return r;
}

/* The target as it stands, or the part of an absolute one behind its authority. */
static int add_target(struct buf *out, const struct http_rewrite *w)
{
	const char *s = (const char *)w->bytes + w->head->target.at;
	size_t n = w->head->target.len;
	int r = 0;

	if (w->head->form == TARGET_ABSOLUTE) {
		const char *slash = memmem(s, n, "//", 2);
		const char *path = slash ? slash + 2 : s;
		const char *end = s + n;

		while (path < end && *path != '/' && *path != '?')
			path++;
		n = (size_t)(end - path);
		s = path;
	}
	if (w->absolute) {
		r = buf_printf(out, "http://");
		if (r == 0)
			r = add_authority(out, w->head, w->port == 80 ? 0 : w->port);
	}
	if (r == 0 && (!n || *s == '?') && w->head->form == TARGET_ABSOLUTE)
		r = buf_add(out, "/", 1);
	return r < 0 || !n ? r : buf_add(out, s, n);
}

int http_write_request(struct buf *out, const struct http_rewrite *w)
{
	const struct http_head *h = w->head;
	int r = buf_printf(out, "%s ", h->method);

	if (r == 0)
		r = add_target(out, w);
	if (r == 0)
		r = buf_printf(out, " HTTP/1.%u\r\n", h->minor);
	if (r == 0 && h->has_host) {
		r = buf_printf(out, "Host: ");
		if (r == 0)
			r = add_authority(out, h, h->port);
		if (r == 0)
			r = buf_add(out, "\r\n", 2);
	}
	if (r == 0)
		r = add_fields(out, w, true);
	if (r == 0 && w->absolute && w->basic[0])
		r = buf_printf(out, "Proxy-Authorization: %s\r\n", w->basic);
	return r < 0 ? r : add_end(out, w);
}

int http_write_response(struct buf *out, const struct http_rewrite *w)
{
	const uint8_t *end = memchr(w->bytes, '\r', w->head->size);
	int r = end ? buf_add(out, w->bytes, (size_t)(end - w->bytes)) : -EPROTO;

	if (r == 0)
		r = buf_add(out, "\r\n", 2);
	if (r == 0)
		r = add_fields(out, w, false);
	return r < 0 ? r : add_end(out, w);
}
