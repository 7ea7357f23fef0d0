/* The settings' table, and the value in force. */
#include "state/settings.h"

#include <ctype.h>
#include <stdio.h>

#include "base/text.h"
#include "policy/host.h"
#include "policy/path-file.h"

const struct setting settings[] = {
	{ "audit.fileSize", SET_SIZE, "8m", "size of one file of a sandbox's receipts" },
	{ "audit.keep", SET_BOOL, "true", "keep a sandbox's receipts when it is removed" },
	{ "audit.totalSize", SET_SIZE, "64m", "size of all receipts of one sandbox" },
	{ "env.rememberHostCommands", SET_BOOL, "false",
	  "ask once, not each time, for the same host commands of an sbxenv.yaml" },
	{ "kit.allowLocalKits", SET_BOOL, "true",
	  "take kits from folders and ZIPs of this machine" },
	{ "kit.allowedSources", SET_TEXT, "[\"docker.io/\"]",
	  "where kits may come from, as in '[\"docker.io/\", \"github.com/NAME/\"]'; [\"*\"]: "
	  "anywhere" },
	{ "kit.cacheSize", SET_SIZE, "8g",
	  "size of all that was installed by kits and is kept for the next sandbox; 0: nothing "
	  "is" },
	{ "net.connectTo", SET_TEXT, "",
	  "send names elsewhere: 'HOST:PORT=ADDRESS:PORT', a list with commas" },
	{ "net.noProxy", SET_TEXT, "",
	  "hosts that are reached without net.upstreamProxy; a list with commas" },
	{ "net.upstreamProxy", SET_TEXT, "",
	  "proxy that leads out, http:// or socks5://; empty: http_proxy of the starting command" },
	{ "sandbox.disk.dockerVolume", SET_SIZE, "10g",
	  "room for the Docker Engine of a new sandbox, beside its disk (sparse); 0: on its disk" },
	{ "sandbox.disk.size", SET_SIZE, "20g", "size of a new sandbox's disk (sparse)" },
	{ "sandbox.idleTimeout", SET_MS, "30m",
	  "stop a sandbox that nobody uses after this; 0: never" },
	{ "sandbox.stopTimeout", SET_MS, "10s", "how long an orderly stop may take" },
	{ "secrets.onLeak", SET_TEXT, "flag",
	  "a secret in what leaves a sandbox (files, output, copies): flag (log it) or refuse" },
	{ "secrets.store", SET_TEXT, "auto",
	  "where secrets are kept: auto, service (the desktop's keyring) or file" },
	{ "template.maxSize", SET_SIZE, "0",
	  "limit of all templates and layers on the disk; 0: none. A load or pull that passes it "
	  "removes unused ones" },
	{ "template.mirror", SET_TEXT, "",
	  "Debian mirror for 'bac template build'; empty: the host's" },
	{ "template.suite", SET_TEXT, "trixie", "Debian suite for 'bac template build'" },
	{ "tls.clientCerts", SET_TEXT, "",
	  "certificates to show to servers: 'HOST=CERT:KEY', a list with commas" },
	{ "tls.extraCa", SET_TEXT, "",
	  "files of authorities that are trusted besides the host's; a list with commas" },
	{ "vm.accel", SET_TEXT, "auto", "auto, kvm or tcg (emulation)" },
	{ "vm.bootTimeout", SET_MS, "60s", "how long a guest may take to come up" },
	{ "vm.kernel", SET_TEXT, "auto", "auto, debian, minimal, or a kernel's digest" },
	{ "vm.machine", SET_TEXT, "microvm", "QEMU machine: microvm or q35" },
	{ "vm.qemu", SET_TEXT, "", "path of qemu-system-x86_64; empty: found in PATH" },
	{ "vm.requireKvm", SET_BOOL, "false", "refuse to start without KVM, rather than emulate" },
	{ "workspace.rules", SET_TEXT, "",
	  "path rules of every sandbox, as in 'allow .env; protect Makefile; hide *.key'" },
	{ NULL },
};

const struct setting *setting_find(const char *key, struct err *e)
{
	const struct setting *s;
	const char *near;

	for (s = settings; s->key; s++)
		if (strcasecmp(s->key, key) == 0)
			return s;
	near = text_nearest(key, settings, (size_t)(s - settings), sizeof(*s));
	if (near)
		(void)err_set(e, -EINVAL, "unknown setting '%.80s' (did you mean '%s'?)", key,
			      near);
	else
		(void)err_set(e, -EINVAL, "unknown setting '%.80s' (see 'bac settings ls')", key);
	return NULL;
}

static int parse(const struct setting *s, const char *v, uint64_t *ret)
{
	static const struct {
		const char *word;
		uint64_t value;
	} bools[] = { { "true", 1 }, { "false", 0 }, { "on", 1 },
		      { "off", 0 },  { "1", 1 },     { "0", 0 } };
	size_t i;

	switch (s->kind) {
	case SET_BOOL:
		for (i = 0; i < ARRAY_SIZE(bools); i++)
			if (streq(bools[i].word, v)) {
				*ret = bools[i].value;
				return 0;
			}
		return -EINVAL;
	case SET_INT:
		return text_u64(v, INT64_MAX, ret);
	case SET_SIZE:
		return text_size(v, ret);
	case SET_MS:
		return text_duration_ms(v, ret);
	case SET_TEXT:
		break;
	}
	*ret = 0;
	return 0;
}

static const struct {
	const char *key;
	const char *words[5];
} choices[] = {
	{ "secrets.store", { "auto", "service", "file" } },
	{ "vm.accel", { "auto", "kvm", "tcg" } },
	{ "secrets.onLeak", { "flag", "refuse" } },
	{ "vm.machine", { "microvm", "q35" } },
};

static int check_choice(const struct setting *s, const char *value, struct err *e)
{
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(choices); i++) {
		if (!streq(choices[i].key, s->key))
			continue;
		for (k = 0; choices[i].words[k]; k++)
			if (streq(choices[i].words[k], value))
				return 0;
		return err_set(e, -EINVAL, "%s: '%.80s' is not one of its values (%s)", s->key,
			       value, s->help);
	}
	return 0;
}

/* "allow .env; hide *.key": as a file of rules with ';' for the ends of lines. */
static int check_rules(const char *value, struct err *e)
{
	_cleanup_(path_builder_freep) struct path_builder *b = NULL;
	_free_ char *text = strdup(value);
	int r = path_builder_new(&b);

	if (!text || r < 0)
		return err_errno(e, -ENOMEM, "workspace.rules");
	setting_rules_lines(text);
	r = path_file_add(b, text, strlen(text), "setting", e);
	return r < 0 ? err_ctx(e, "workspace.rules") : 0;
}

void setting_rules_lines(char *text)
{
	char *to = text, *line = text;
	bool word = true; /* in the line's first word, or before it */

	for (;; text++) {
		char c = *text;

		if (c == ';' || c == '\n' || !c) {
			while (to > line && to[-1] == ' ')
				to--;
			*to++ = c ? '\n' : '\0';
			line = to;
			word = true;
			if (!c)
				return;
		} else if (c != ' ' || (to > line && to[-1] != ' ') || !word) {
			word = word && !(to > line && to[-1] == ' ');
			*to++ = c;
		}
	}
}

/* A log that holds nothing would stop all traffic. */
static const struct {
	const char *key;
	uint64_t least;
} minima[] = { { "audit.fileSize", 64UL * 1024 }, { "audit.totalSize", 128UL * 1024 } };

static int check_least(const struct setting *s, uint64_t value, struct err *e)
{
	char least[32];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(minima); i++)
		if (streq(minima[i].key, s->key) && value < minima[i].least)
			return err_set(e, -EINVAL, "%s: at least %s", s->key,
				       text_from_size(least, sizeof(least), minima[i].least));
	return 0;
}

/* "a.example:443=192.0.2.7:8443, ..." */
static int check_connect(const char *value, struct err *e)
{
	_free_ char *text = strdup(value);
	char *entry, *rest = NULL, *equal;
	struct host h;
	uint16_t from, to;
	int r = 0;

	if (!text)
		return err_errno(e, -ENOMEM, "net.connectTo");
	for (entry = strtok_r(text, ", ", &rest); entry && r == 0;
	     entry = strtok_r(NULL, ", ", &rest)) {
		from = to = 0;
		equal = strchr(entry, '=');
		if (equal)
			r = host_port_parse(&h, &from, entry, (size_t)(equal - entry), e);
		if (equal && r == 0)
			r = host_port_parse(&h, &to, equal + 1, strlen(equal + 1), e);
		if (r == 0 && (!from || !to))
			r = err_set(e, -EINVAL, "it is written HOST:PORT=ADDRESS:PORT");
		if (r < 0)
			return err_ctx(e, "net.connectTo: '%.80s'", entry);
	}
	return r;
}

/* "/etc/a.pem,/etc/b.pem" */
static int check_extra_ca(const char *value, struct err *e)
{
	_free_ char *text = strdup(value);
	char *one, *rest = NULL;

	if (!text)
		return err_errno(e, -ENOMEM, "tls.extraCa");
	for (one = strtok_r(text, ", ", &rest); one; one = strtok_r(NULL, ", ", &rest))
		if (*one != '/')
			return err_set(e, -EINVAL, "tls.extraCa: '%.80s' is not an absolute path",
				       one);
	return 0;
}

/* "a.example=/etc/cert.pem:/etc/key.pem, ..." */
static int check_client_certs(const char *value, struct err *e)
{
	_free_ char *text = strdup(value);
	char *one, *rest = NULL, *equal, *colon;
	struct host h;

	if (!text)
		return err_errno(e, -ENOMEM, "tls.clientCerts");
	for (one = strtok_r(text, ", ", &rest); one; one = strtok_r(NULL, ", ", &rest)) {
		equal = strchr(one, '=');
		colon = equal ? strchr(equal, ':') : NULL;
		if (!colon || equal[1] != '/' || colon[1] != '/')
			return err_set(e, -EINVAL,
				       "tls.clientCerts: '%.80s' is not HOST=/CERT:/KEY", one);
		if (host_parse(&h, one, (size_t)(equal - one), e) < 0)
			return err_ctx(e, "tls.clientCerts: '%.80s'", one);
	}
	return 0;
}

static const struct {
	const char *key;
	int (*check)(const char *value, struct err *e);
} checks[] = {
	{ "net.connectTo", check_connect },
	{ "tls.clientCerts", check_client_certs },
	{ "tls.extraCa", check_extra_ca },
	{ "workspace.rules", check_rules },
};

int setting_check(const struct setting *s, const char *value, struct err *e)
{
	static const char *const what[] = {
		[SET_BOOL] = "true or false",
		[SET_INT] = "a number",
		[SET_SIZE] = "a size (as in 512m or 20g)",
		[SET_MS] = "a duration (as in 90s or 1h30m)",
		[SET_TEXT] = "text",
	};
	uint64_t v;
	size_t i;

	if (parse(s, value, &v) < 0)
		return err_set(e, -EINVAL, "%s: '%.80s' is not %s", s->key, value, what[s->kind]);
	if (strlen(value) > 1023)
		return err_set(e, -EINVAL, "%s: the value is too long (1023 bytes)", s->key);
	for (i = 0; i < ARRAY_SIZE(checks); i++)
		if (streq(checks[i].key, s->key))
			return checks[i].check(value, e);
	if (check_least(s, v, e) < 0)
		return e->code;
	return check_choice(s, value, e);
}

/* vm.requireKvm -> BAC_VM_REQUIRE_KVM */
static const char *from_env(const char *key)
{
	char var[128] = "BAC_";
	size_t n = 4;

	for (; *key && n + 2 < sizeof(var); key++) {
		if (isupper((unsigned char)*key))
			var[n++] = '_';
		var[n++] = (char)(*key == '.' ? '_' : toupper((unsigned char)*key));
	}
	var[n] = '\0';
	return getenv(var);
}

int setting_get(struct state *st, const char *key, char **ret, const char **ret_source,
		struct err *e)
{
	const struct setting *s = setting_find(key, e);
	const char *source = "default", *env;
	char *v = NULL;
	int r;

	if (!s)
		return e->code;
	env = from_env(s->key);
	if (env) {
		r = setting_check(s, env, e);
		if (r < 0)
			return err_ctx(e, "environment");
		source = "env";
	} else {
		r = state_setting(st, s->key, &v, e);
		if (r < 0)
			return r;
		if (v)
			source = "override";
	}
	if (!v)
		v = strdup(env ? env : s->standard);
	if (!v)
		return err_errno(e, -ENOMEM, "setting %s", s->key);
	*ret = v;
	if (ret_source)
		*ret_source = source;
	return 0;
}

int setting_number(struct state *st, const char *key, uint64_t *ret, struct err *e)
{
	const struct setting *s = setting_find(key, e);
	_free_ char *v = NULL;
	int r;

	if (!s)
		return e->code;
	r = setting_get(st, key, &v, NULL, e);
	if (r < 0)
		return r;
	if (parse(s, v, ret) < 0)
		return err_set(e, -EINVAL,
			       "%s: '%.80s' is not a valid value; run 'bac settings unset %s'",
			       s->key, v, s->key);
	return 0;
}
