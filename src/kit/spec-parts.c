/* sandbox, agentInstructions, permissions, ports, environment. */
#include <stdio.h>

#include "base/text.h"
#include "kit/rules.h"
#include "kit/spec.h"
#include "policy/net.h"

/* ---- sandbox ---- */
static void image(struct take *t, const struct yaml *y, void *into)
{
	const char *s = y->kind == YAML_TEXT ? y->text : "";
	size_t i;

	for (i = 0; s[i] > ' ' && s[i] < 0x7f; i++)
		;
	if (!*s || s[i] || i > 512 || *s == '-')
		take_wrong(t, y, "the name of an image");
	else
		take_text(t, y, into);
}

static void ignore(struct take *t, const struct yaml *y, void *into)
{
	(void)into;
	if (y->kind != YAML_TEXT)
		take_wrong(t, y, "a text");
}

static void ignore_map(struct take *t, const struct yaml *y, void *into)
{
	size_t i;

	for (i = 0; take_is(t, y, YAML_MAP) && i < y->n; i++)
		ignore(t, &y->v[i], into);
}

static void ignore_words(struct take *t, const struct yaml *y, void *into)
{
	struct kit_texts none;

	(void)into;
	take_words(t, y, &none);
}

static void build(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "context", ignore, 0 },         { "dockerfile", ignore, 0 },
		{ "args", ignore_map, 0 },        { "target", ignore, 0 },
		{ "platforms", ignore_words, 0 },
	};

	take_map(t, y, f, ARRAY_SIZE(f), into);
	TAKE_WARN(t, y, "nothing is built: the image is what 'sandbox.image' names");
}

static void entrypoint(struct take *t, const struct yaml *y, void *into)
{
	if (y->kind == YAML_MAP)
		take_wrong(t, y, "a list (run, args and ttyArgs are of schema 1)");
	else
		take_words(t, y, into);
}

static void command_default(struct take *t, const struct yaml *y, void *into)
{
	struct kit *k = into;

	k->has_command = true;
	take_argv(t, y, &k->command);
}

static void command_interactive(struct take *t, const struct yaml *y, void *into)
{
	struct kit *k = into;

	k->has_interactive = true;
	take_argv(t, y, &k->interactive);
}

static void command(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "default", command_default, 0 },
		{ "interactive", command_interactive, 0 },
	};

	if (y->kind == YAML_LIST)
		command_default(t, y, into);
	else if (y->kind == YAML_MAP)
		take_map(t, y, f, ARRAY_SIZE(f), into);
	else
		take_wrong(t, y, "a list, or a map with 'default' and 'interactive'");
}

static void cpu(struct take *t, const struct yaml *y, void *into)
{
	const char *s = y->kind == YAML_TEXT ? y->text : "";
	size_t whole = strspn(s, "0123456789"), n = whole, more = 0, i;
	double v = 0, part = 1;

	if (s[n] == '.') {
		more = strspn(s + n + 1, "0123456789");
		n += 1 + more;
	}
	if (s[n] || !whole || whole > 4 || more > 6 || s[whole] == '.' * !more) {
		take_wrong(t, y, "a number of processors as '2' or '0.5'");
		return;
	}
	for (i = 0; i < whole; i++)
		v = v * 10 + (s[i] - '0');
	for (i = 0; i < more; i++) {
		part /= 10;
		v += part * (s[whole + 1 + i] - '0');
	}
	*(double *)into = v;
}

static void gpu(struct take *t, const struct yaml *y, void *into)
{
	take_text(t, y, into);
	TAKE_WARN(t, y, "a sandbox has no GPU: it is not applied");
}

static void resources(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "cpu", cpu, offsetof(struct kit, cpu) },
		{ "memory", take_size, offsetof(struct kit, memory) },
		{ "gpu", gpu, offsetof(struct kit, gpu) },
	};

	take_map(t, y, f, ARRAY_SIZE(f), into);
}

void spec_sandbox(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "image", image, offsetof(struct kit, image) },
		{ "build", build, 0 },
		{ "entrypoint", entrypoint, offsetof(struct kit, entrypoint) },
		{ "command", command, 0 },
		{ "resources", resources, 0 },
	};
	const struct kit *k = t->kit;

	(void)into;
	if (k->kind == KIT_MIXIN) {
		struct yaml at = take_key(y);

		TAKE_FAULT(t, &at, "found it in a mixin, expected it in kind 'sandbox' only");
		return;
	}
	take_map(t, y, f, ARRAY_SIZE(f), t->kit);
	if (y->kind == YAML_MAP && !take_get(y, "image") && (!k->extends || take_get(y, "build")))
		take_missing(t, y, "image", "the name of an image");
}

/* ---- agentInstructions ---- */
static void filename(struct take *t, const struct yaml *y, void *into)
{
	if (y->kind != YAML_TEXT || !rules_is_below(y->text))
		take_wrong(t, y, "the name of a file as 'AGENTS.md'");
	else
		take_text(t, y, into);
}

void spec_instructions(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "filename", filename, offsetof(struct kit_instructions, filename) },
		{ "content", take_any, offsetof(struct kit_instructions, content) },
	};
	struct kit_instructions *one = pool_zero(t->pool, 1, sizeof(*one));
	const struct yaml *name = yaml_get(y, "filename");

	(void)into;
	if (!one)
		return;
	take_map(t, y, f, ARRAY_SIZE(f), one);
	if (one->filename && t->kit->kind == KIT_MIXIN) {
		TAKE_WARN(t, name, "a mixin adds to the sandbox's own file: the name is not used");
		one->filename = NULL;
	}
	if (t->kit->kind == KIT_SANDBOX && one->content && *one->content && !one->filename &&
	    !t->kit->extends)
		TAKE_WARN(t, y, "content without 'filename' is written nowhere");
	if (!one->filename && !one->content)
		return;
	t->kit->instructions = one;
	t->kit->n_instructions = 1;
}

/* ---- permissions.network ---- */
/* Names without ports are for HTTPS; "**" is everything, and an address is not said to be a server of the web. */
static bool is_bare(const char *written, const char *resource)
{
	struct net_span span;
	size_t n = strlen(written);

	return !strchr(resource, ':') && !(n > 2 && streq(written + n - 2, ":*")) &&
	       !streq(resource, "**") && net_resource_span(resource, &span) == 0 && !span.n_addr;
}

/* How policy/net.h writes it, but for ":*": that is kept where it was written, since nothing means something else here. */
static void resource(struct take *t, const struct yaml *y, void *into, bool https)
{
	char text[NET_RESOURCE_MAX + 1];
	struct buf out = BUF_INIT(NET_RESOURCE_MAX + 8);
	const char *ports = "";
	struct err e;

	if (y->kind != YAML_TEXT || yaml_is_null(y)) {
		take_wrong(t, y, "HOST or HOST:PORT");
		return;
	}
	if (net_resource_check(y->text, text, sizeof(text), &e) < 0) {
		TAKE_FAULT(t, y, "found '%.60s', expected HOST or HOST:PORT: %s", y->text, e.msg);
		return;
	}
	if (https)
		ports = is_bare(y->text, text)                       ? ":443"
			: is_bare(text, text) && strlen(y->text) > 2 ? ":*"
								     : "";
	if (buf_printf(&out, "%s%s", text, ports) < 0 || !buf_str(&out))
		t->pool->failed = true;
	else
		*(char **)into = pool_text(t->pool, buf_str(&out), out.n);
	buf_done(&out);
}

static void allowed(struct take *t, const struct yaml *y, void *into)
{
	resource(t, y, into, true);
}

static void denied(struct take *t, const struct yaml *y, void *into)
{
	resource(t, y, into, false);
}

static void resources_of(struct take *t, const struct yaml *y, struct kit_texts *into,
			 void (*one)(struct take *t, const struct yaml *y, void *into))
{
	size_t n = 0, i, k;
	char **v = take_list(t, y, sizeof(*v), one, &n), **all;

	all = pool_zero(t->pool, n + 1, sizeof(*all));
	*into = (struct kit_texts) { .v = all };
	for (i = 0; all && i < n; i++) {
		for (k = 0; v[i] && k < into->n && !streq(all[k], v[i]); k++)
			;
		if (v[i] && k == into->n)
			all[into->n++] = v[i];
	}
}

static void allow(struct take *t, const struct yaml *y, void *into)
{
	resources_of(t, y, into, allowed);
}

static void deny(struct take *t, const struct yaml *y, void *into)
{
	resources_of(t, y, into, denied);
}

static void network(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "allow", allow, offsetof(struct kit, allow) },
		{ "deny", deny, offsetof(struct kit, deny) },
	};

	take_map(t, y, f, ARRAY_SIZE(f), into);
}

void spec_permissions(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = { { "network", network, 0 } };

	(void)into;
	take_map(t, y, f, ARRAY_SIZE(f), t->kit);
}

/* ---- ports ---- */
static void container(struct take *t, const struct yaml *y, void *into)
{
	uint64_t n;

	if (y->kind != YAML_TEXT || text_u64(y->text, 65535, &n) < 0 || !n)
		take_wrong(t, y, "a port from 1 to 65535");
	else
		*(uint16_t *)into = (uint16_t)n;
}

static void protocol(struct take *t, const struct yaml *y, void *into)
{
	const char *s = y->kind == YAML_TEXT ? y->text : "?";

	if (*s && !streq(s, "tcp") && !streq(s, "udp"))
		take_wrong(t, y, "tcp or udp");
	else
		*(uint8_t *)into = !*s ? KIT_TCP4 : *s == 't' ? KIT_TCP : KIT_UDP;
}

static void port(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = {
		{ "container", container, offsetof(struct kit_port, container) },
		{ "protocol", protocol, offsetof(struct kit_port, protocol) },
		{ "name", take_any, offsetof(struct kit_port, name) },
	};

	((struct kit_port *)into)->kit = t->kit->name;
	take_map(t, y, f, ARRAY_SIZE(f), into);
	if (y->kind == YAML_MAP && !take_get(y, "container"))
		take_missing(t, y, "container", "a port");
}

void spec_ports(struct take *t, const struct yaml *y, void *into)
{
	struct kit *k = t->kit;
	size_t i, j;

	(void)into;
	k->ports = take_list(t, y, sizeof(*k->ports), port, &k->n_ports);
	for (i = 0; i < k->n_ports; i++)
		for (j = 0; j < i; j++)
			if (k->ports[i].container &&
			    k->ports[i].container == k->ports[j].container &&
			    (k->ports[i].protocol == KIT_UDP) == (k->ports[j].protocol == KIT_UDP))
				TAKE_FAULT(t, &y->v[i], "found port %u a second time",
					   k->ports[i].container);
}

/* ---- environment ---- */
/* What a kit says of PATH comes in front of what is there; "${PATH}" says where that is. */
static bool is_there(const char *p, size_t n)
{
	return (n == 5 && !memcmp(p, "$PATH", n)) || (n == 7 && !memcmp(p, "${PATH}", n));
}

/* A folder that every system has there. */
static bool is_common(const char *p, size_t n)
{
	static const char *const common[] = { "/bin",      "/sbin",          "/usr/bin",
					      "/usr/sbin", "/usr/local/bin", "/usr/local/sbin" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(common); i++)
		if (strlen(common[i]) == n && !memcmp(common[i], p, n))
			return true;
	return false;
}

/* How often it says where; what is no folder is told. */
static unsigned check_path(struct take *t, const struct yaml *y)
{
	const char *p = y->text;
	unsigned times = 0;

	for (;;) {
		size_t n = strcspn(p, ":");

		if (is_there(p, n))
			times++;
		else if (n && (*p != '/' || memchr(p, '$', n)))
			TAKE_FAULT(t, y, "found '%.*s' in it, expected a path from the root",
				   (int)MIN(n, 60U), p);
		if (!p[n])
			break;
		p += n + 1;
	}
	if (times > 1)
		TAKE_FAULT(t, y, "found '${PATH}' in it %u times, expected it once", times);
	return times;
}

static char *path_value(struct take *t, const struct yaml *y)
{
	struct buf out = BUF_INIT(YAML_MAX);
	bool there = check_path(t, y) > 0;
	const char *p = y->text;
	char *text = NULL;
	int r = 0;

	while (r == 0) {
		size_t n = strcspn(p, ":");

		if (is_there(p, n))
			r = buf_printf(&out, "%s${PATH}", out.n ? ":" : "");
		else if (n && (there || !is_common(p, n)))
			r = buf_printf(&out, "%s%.*s", out.n ? ":" : "", (int)n, p);
		if (!p[n])
			break;
		p += n + 1;
	}
	if (r == 0 && !there) {
		r = buf_printf(&out, "%s${PATH}", out.n ? ":" : "");
		TAKE_WARN(t, y, "it adds to what is there: read as '%.200s'",
			  buf_str(&out) ? buf_str(&out) : "");
	}
	if (r == 0 && buf_str(&out))
		text = pool_text(t->pool, buf_str(&out), out.n);
	else
		t->pool->failed = true;
	buf_done(&out);
	return text;
}

/* What the sandbox sets itself where it has an authority of its own (guest/init/trust.c): a bundle that has that one beside all others. */
static bool names_bundle(const char *name)
{
	static const char *const names[] = {
		"SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",      "REQUESTS_CA_BUNDLE",
		"PIP_CERT",      "AWS_CA_BUNDLE",  "NODE_EXTRA_CA_CERTS", "CARGO_HTTP_CAINFO",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (streq(names[i], name))
			return true;
	return false;
}

static void variable(struct take *t, const struct yaml *y, struct kit_var *into)
{
	const char *why = rules_variable_fault(y->key);
	struct yaml at = take_key(y);

	if (!rules_is_variable(y->key))
		TAKE_FAULT(t, &at, "found '%.60s', expected the name of a variable", y->key);
	else if (why)
		TAKE_FAULT(t, &at, "found '%.60s', expected another variable: %s", y->key, why);
	else if (y->kind != YAML_TEXT)
		take_wrong(t, y, "a text");
	else
		*into = (struct kit_var) {
			.name = pool_text(t->pool, y->key, strlen(y->key)),
			.value = streq(y->key, "PATH")
					 ? path_value(t, y)
					 : pool_text(t->pool, yaml_is_null(y) ? "" : y->text,
						     yaml_is_null(y) ? 0 : strlen(y->text)),
			.kit = t->kit->name
		};
	if (into->name && names_bundle(into->name))
		TAKE_WARN(t, y,
			  "it takes the place of a bundle that has the sandbox's own authority: "
			  "where a credential "
			  "is used, servers will not be trusted; add certificates with "
			  "update-ca-certificates instead");
}

static void variables(struct take *t, const struct yaml *y, void *into)
{
	struct kit *k = t->kit;
	size_t i;

	(void)into;
	if (!take_is(t, y, YAML_MAP))
		return;
	if (y->n > KIT_ITEMS_MAX) {
		TAKE_FAULT(t, y, "found %zu items, expected %d at most", y->n, KIT_ITEMS_MAX);
		return;
	}
	k->vars = pool_zero(t->pool, y->n, sizeof(*k->vars));
	for (i = 0; k->vars && i < y->n; i++) {
		variable(t, &y->v[i], &k->vars[k->n_vars]);
		if (k->vars[k->n_vars].name && k->vars[k->n_vars].value)
			k->n_vars++;
	}
}

void spec_environment(struct take *t, const struct yaml *y, void *into)
{
	static const struct take_field f[] = { { "variables", variables, 0 } };

	take_map(t, y, f, ARRAY_SIZE(f), into);
}
