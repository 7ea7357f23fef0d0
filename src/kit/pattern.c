#include "kit/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { STEPS_MAX = 200000, DEPTH_MAX = 2000, HEAP_MAX_KIB = 8192 };

/* "(?:", "(?i)", "(?i:", "(?P<name>" and "(?<name>" are RE2's too. */
static bool is_group(const char *p)
{
	size_t n = strspn(p, "imsU-");

	if (p[n] == ':' || (p[n] == ')' && n))
		return true;
	if (*p == 'P')
		p++;
	return *p == '<' && p[1] != '=' && p[1] != '!';
}

/* Behind a '\\'. */
static const char *foreign_escape(char c)
{
	bool letter = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

	if (!c)
		return "a '\\' at its end";
	if (c == 'Q')
		return "a sequence that begins with '\\' and is not taken here";
	return letter && !strchr("dDwWsSbBaAfnrtvzxpPE", c)
		       ? "a sequence that begins with '\\' and is not of RE2"
		       : NULL;
}

/* At the beginning of a class or group. */
static const char *foreign_open(const char *p)
{
	if (starts_with(p, "[[:<:]]") || starts_with(p, "[[:>:]]"))
		return "a word's edge";
	if (starts_with(p, "(*"))
		return "a verb";
	return starts_with(p, "(?") && !is_group(p + 2) ? "a group that is not of RE2" : NULL;
}

/* The last byte of a class that begins at p; or the text's. */
static const char *skip_class(const char *p, const char **why)
{
	p += p[1] == '^' ? 2 : 1;
	if (*p == ']')
		p++;
	for (; *p && *p != ']'; p++) {
		if (*p == '\\')
			*why = foreign_escape(*++p);
		if (*why || !*p)
			break;
	}
	return *p ? p : p - 1;
}

/* What PCRE2 has and RE2 has not; NULL: nothing. */
static const char *foreign(const char *p)
{
	const char *why = NULL;
	bool repeat = false;

	for (; *p && !why; p++) {
		bool was = repeat;

		repeat = strchr("*+?}", *p) && !was;
		if (*p == '\\') {
			why = foreign_escape(*++p);
		} else if (*p == '[' || *p == '(') {
			why = foreign_open(p);
			if (!why && *p == '[')
				p = skip_class(p, &why);
		} else if (*p == '+' && was) {
			why = "a possessive repeat";
		}
		if (!*p)
			break;
	}
	return why;
}

static int compile(const char *pattern, pcre2_code **ret, struct err *e)
{
	const char *why = strlen(pattern) > PATTERN_MAX ? "more than 512 bytes" : foreign(pattern);
	PCRE2_SIZE at;
	int code;

	if (why)
		return err_set(e, -EINVAL, "it has %s", why);
	*ret = pcre2_compile((PCRE2_SPTR)pattern, strlen(pattern),
			     PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY |
				     PCRE2_NO_AUTO_CAPTURE,
			     &code, &at, NULL);
	if (!*ret) {
		char text[120] = "";

		(void)pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof(text));
		return err_set(e, -EINVAL, "%s", text);
	}
	return 0;
}

int pattern_check(const char *pattern, struct err *e)
{
	pcre2_code *code = NULL;
	int r = compile(pattern, &code, e);

	pcre2_code_free(code);
	return r;
}

int pattern_matches(const char *pattern, const char *value)
{
	pcre2_code *code = NULL;
	struct err none;
	int r = compile(pattern, &code, &none);
	pcre2_match_context *limits = r == 0 ? pcre2_match_context_create(NULL) : NULL;
	pcre2_match_data *data = limits ? pcre2_match_data_create(1, NULL) : NULL;

	if (r == 0 && !data)
		r = -ENOMEM;
	if (r == 0) {
		(void)pcre2_set_match_limit(limits, STEPS_MAX);
		(void)pcre2_set_depth_limit(limits, DEPTH_MAX);
		(void)pcre2_set_heap_limit(limits, HEAP_MAX_KIB);
		r = pcre2_match(code, (PCRE2_SPTR)value, strlen(value), 0,
				PCRE2_ANCHORED | PCRE2_ENDANCHORED, data, limits) >= 0;
	}
	pcre2_match_data_free(data);
	pcre2_match_context_free(limits);
	pcre2_code_free(code);
	return r;
}
