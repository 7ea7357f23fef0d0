#include "kit/rules.h"

#include <strings.h>

#include "base/text.h"
#include "kit/kit.h"

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return is_lower(c) || (c >= 'A' && c <= 'Z');
}

bool rules_is_name(const char *s)
{
	size_t n = strlen(s), i;

	for (i = 0; i < n; i++)
		if (!is_lower(s[i]) && !is_digit(s[i]) && (s[i] != '-' || i == 0 || i + 1 == n))
			return false;
	return n > 0 && n <= KIT_NAME_MAX;
}

bool rules_is_dotted(const char *s)
{
	for (;;) {
		if (!is_lower(*s))
			return false;
		while (is_letter(*s) || is_digit(*s))
			s++;
		if (!*s)
			return true;
		if (*s++ != '.')
			return false;
	}
}

bool rules_is_variable(const char *s)
{
	size_t n = 0;

	while (is_letter(s[n]) || s[n] == '_' || (n > 0 && is_digit(s[n])))
		n++;
	return n > 0 && n < 128 && !s[n];
}

/* Parts, separated by one '/' each. */
static bool are_parts(const char *s)
{
	size_t all = strlen(s), n, i;

	if (all > 1024)
		return false;
	for (i = 0; i < all; i++)
		if ((unsigned char)s[i] < ' ' || s[i] == 0x7f)
			return false;
	for (;;) {
		n = strcspn(s, "/");
		if (n == 0 || n > 255 || (n <= 2 && !strncmp(s, "..", n)))
			return false;
		if (!s[n])
			return true;
		s += n + 1;
	}
}

bool rules_is_path(const char *s)
{
	return *s == '/' && are_parts(s + 1);
}

bool rules_is_below(const char *s)
{
	return are_parts(s);
}

bool rules_is_user(const char *s)
{
	uint64_t n;
	size_t i;

	if (text_u64(s, 65535, &n) == 0)
		return true;
	for (i = 0; s[i]; i++)
		if (!is_letter(s[i]) && s[i] != '_' && (i == 0 || (!is_digit(s[i]) && s[i] != '-')))
			return false;
	return i > 0 && i <= 32;
}

/* ---- variables that are not a kit's to set ---- */
const char *rules_variable_fault(const char *name)
{
	static const char *const prefixes[] = { "BAC_", "DASH_", "DOCKER_", "SBX_" };
	static const char *const own[] = { "HOME",    "LD_LIBRARY_PATH", "LD_PRELOAD",
					   "LOGNAME", "SHELL",           "USER" };
	static const char *const proxy[] = { "all_proxy", "ftp_proxy", "http_proxy", "https_proxy",
					     "no_proxy" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (starts_with(name, prefixes[i]))
			return "what begins with BAC_, DASH_, DOCKER_ or SBX_ is reserved";
	for (i = 0; i < ARRAY_SIZE(own); i++)
		if (streq(name, own[i]))
			return "it is the sandbox's own";
	for (i = 0; i < ARRAY_SIZE(proxy); i++)
		if (!strcasecmp(name, proxy[i]))
			return "the sandbox sets its proxy itself";
	return NULL;
}

/* ---- files that belong to one agent ---- */
const char *kit_reserved(const char *below_home)
{
	static const struct {
		const char *path, *agent;
	} t[] = {
		{ ".claude.json", "claude" },
		{ ".claude/.config.json", "claude" },
		{ ".claude/settings.json", "claude" },
		{ ".codex/config.toml", "codex" },
		{ ".config/devin/config.json", "devin" },
		{ ".config/devin/mcp_config.json", "devin" },
		{ ".config/opencode/opencode.json", "opencode" },
		{ ".copilot/config.json", "copilot" },
		{ ".cursor/cli-config.json", "cursor" },
		{ ".gemini/settings.json", "gemini" },
		{ ".kiro/settings/mcp.json", "kiro" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++)
		if (streq(below_home, t[i].path))
			return t[i].agent;
	return NULL;
}
