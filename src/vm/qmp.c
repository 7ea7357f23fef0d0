/* QMP lines, read as if QEMU had been taken by its guest: a line has a maximum, its nesting is counted
 * before the parser recurses into it, and whatever is not an object of the protocol ends the
 * conversation. */
#include "vm/qmp.h"

#include <jansson.h>
#include <stdio.h>

enum { DEPTH_MAX = 32, NAME_MAX_LEN = 64 };

static const struct {
	const char *name;
	enum qmp_event event;
} events[] = {
	{ "SHUTDOWN", QMP_SHUTDOWN },
	{ "RESET", QMP_RESET },
	{ "GUEST_PANICKED", QMP_PANICKED },
	{ "GUEST_CRASHLOADED", QMP_PANICKED },
	{ "STOP", QMP_STOPPED },
	{ "RESUME", QMP_RESUMED },
};

static enum qmp_event event_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (streq(events[i].name, name))
			return events[i].event;
	return QMP_NOTHING;
}

/* True if brackets are nested no deeper than we want to recurse. Strings are passed over; whether the
 * rest is JSON is the parser's business. */
static bool is_shallow(const char *s, size_t n)
{
	bool in_string = false;
	unsigned depth = 0;

	for (size_t i = 0; i < n; i++) {
		if (in_string) {
			if (s[i] == '\\')
				i++;
			else if (s[i] == '"')
				in_string = false;
		} else if (s[i] == '"') {
			in_string = true;
		} else if (s[i] == '{' || s[i] == '[') {
			if (++depth > DEPTH_MAX)
				return false;
		} else if ((s[i] == '}' || s[i] == ']') && depth) {
			depth--;
		}
	}
	return true;
}

/* Text of an error, cut to fit and without control characters: it will reach a log. */
static void copy_text(char *dst, size_t max, const char *src)
{
	size_t n = 0;

	for (; src && *src && n + 1 < max; src++)
		dst[n++] = (char)((unsigned char)*src < 0x20 || *src == 0x7f ? '?' : *src);
	if (max)
		dst[n] = '\0';
}

static int understand(const json_t *o, enum qmp_event *ret, char *text, size_t max)
{
	const json_t *event = json_object_get(o, "event"), *error = json_object_get(o, "error");

	if (json_is_string(event)) {
		*ret = event_of(json_string_value(event));
		return 0;
	}
	if (json_is_object(error)) {
		const char *desc = json_string_value(json_object_get(error, "desc"));

		copy_text(text, max, desc ? desc : "no reason given");
		*ret = QMP_ERROR;
		return 0;
	}
	if (json_object_get(o, "return")) {
		*ret = QMP_NOTHING;
		return 0;
	}
	if (json_is_object(json_object_get(o, "QMP"))) {
		*ret = QMP_GREETING;
		return 0;
	}
	return -EPROTO;
}

static int read_line(const char *line, size_t n, enum qmp_event *ret, char *text, size_t max)
{
	json_error_t unused;
	json_t *o;
	int r;

	if (!is_shallow(line, n))
		return -EPROTO;
	o = json_loadb(line, n, JSON_REJECT_DUPLICATES, &unused);
	r = json_is_object(o) ? understand(o, ret, text, max) : -EPROTO;
	json_decref(o);
	return r;
}

int qmp_next(struct buf *in, enum qmp_event *ret, char *text, size_t max)
{
	for (;;) {
		const char *line = (const char *)buf_data(in), *nl;
		size_t n;
		int r;

		nl = in->n ? memchr(line, '\n', MIN(in->n, (size_t)QMP_LINE_MAX)) : NULL;
		if (!nl)
			return in->n >= QMP_LINE_MAX ? -EPROTO : 0;
		n = (size_t)(nl - line);
		while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' '))
			n--;
		if (n == 0) {
			buf_consume(in, (size_t)(nl - line) + 1);
			continue;
		}
		r = read_line(line, n, ret, text, max);
		if (r < 0)
			return r;
		buf_consume(in, (size_t)(nl - line) + 1);
		return 1;
	}
}

int qmp_command(struct buf *out, const char *name)
{
	/* names are ours: letters, digits, '-' and '_' */
	if (strlen(name) > NAME_MAX_LEN)
		return -EINVAL;
	return buf_printf(out, "{\"execute\":\"%s\"}\n", name);
}
