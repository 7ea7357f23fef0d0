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

/* What PCRE2 has and RE2 has not; NULL: nothing. */
static const char *foreign(const char *p)
{
	bool in_class = false, repeat = false;

	for (; *p; p++) {
		bool was = repeat;

		repeat = false;
		if (*p == '\\') {
			p++;
			if (!*p)
				return "a '\\' at its end";
			if (!strchr("dDwWsSbBaAfnrtvzxpPQE", *p) &&
			    ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') ||
			     (*p >= 'A' && *p <= 'Z')))
				return "a sequence that begins with '\\' and is not of RE2";
			if (*p == 'Q')
				return "a sequence that begins with '\\' and is not taken here";
			continue;
		}
		if (in_class) {
			in_class = *p != ']';
			continue;
		}
		if (*p == '[') {
			in_class = true;
			p += p[1] == '^' ? 1 : 0;
			p += p[1] == ']' ? 1 : 0;
			if (strstr(p, "[[:<:]]") == p || strstr(p, "[[:>:]]") == p)
				return "a word's edge";
		} else if (*p == '(' && p[1] == '*') {
			return "a verb";
		} else if (*p == '(' && p[1] == '?' && !is_group(p + 2)) {
			return "a group that is not of RE2";
		} else if (strchr("*+?}", *p)) {
			if (was && *p == '+')
				return "a possessive repeat";
			repeat = !was;
		}
	}
	return NULL;
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
