/* The draft as a specification. What is quoted are texts of printable ASCII (draft_put()). */
#include <strings.h>

#include "kit/draft-priv.h"

static int quoted(struct buf *out, const char *s, size_t n)
{
	int r = buf_add(out, "\"", 1);

	for (size_t i = 0; i < n && r == 0; i++) {
		if (s[i] == '"' || s[i] == '\\')
			r = buf_add(out, "\\", 1);
		if (r == 0)
			r = buf_add(out, s + i, 1);
	}
	return r == 0 ? buf_add(out, "\"", 1) : r;
}

static int item(struct buf *out, const char *before, const char *s)
{
	int r = buf_add(out, before, strlen(before));

	if (r == 0)
		r = quoted(out, s, strlen(s));
	return r == 0 ? buf_add(out, "\n", 1) : r;
}

static int head(const struct draft *d, const char *name, struct buf *out)
{
	int r = buf_printf(out,
			   "# Drafted by 'bac kit init' from the files of this folder. Read it, "
			   "change it, then\n"
			   "#   bac kit validate .\n"
			   "#   bac run --kit . AGENT\n"
			   "schemaVersion: \"2\"\nkind: mixin\nname: %s\n",
			   name);

	if (r == 0)
		r = buf_printf(out, "description: \"What %s needs%s", name,
			       d->languages.n ? ": " : "");
	for (size_t i = 0; i < d->languages.n && r == 0; i++)
		r = buf_printf(out, "%s%s", i ? ", " : "", d->languages.v[i]);
	return r == 0 ? buf_add(out, "\"\n", 2) : r;
}

static int network(const struct draft *d, struct buf *out)
{
	static const char *const debian[] = { "deb.debian.org:80", "deb.debian.org:443" };
	bool npm = d->npm.n != 0, registry = false;
	int r = 0;

	if (!d->hosts.n && !d->apt.n && !npm)
		return 0;
	r = buf_printf(out, "\npermissions:\n  network:\n    allow:\n");
	for (size_t i = 0; i < d->hosts.n && r == 0; i++) {
		registry = registry || streq(d->hosts.v[i], "**.npmjs.org");
		r = item(out, "      - ", d->hosts.v[i]);
	}
	if (r == 0 && npm && !registry)
		r = item(out, "      - ", "**.npmjs.org");
	for (size_t i = 0; i < ARRAY_SIZE(debian) && d->apt.n && r == 0; i++)
		r = item(out, "      - ", debian[i]);
	return r;
}

static int ports(const struct draft *d, struct buf *out)
{
	int r = d->ports.n ? buf_printf(out, "\nports:\n") : 0;

	for (size_t i = 0; i < d->ports.n && r == 0; i++) {
		const char *udp = strstr(d->ports.v[i], "/udp");

		r = buf_printf(out, "  - container: %.*s\n", (int)strcspn(d->ports.v[i], "/"),
			       d->ports.v[i]);
		if (r == 0 && udp)
			r = buf_printf(out, "    protocol: udp\n");
	}
	return r;
}

static int variables(const struct draft *d, struct buf *out)
{
	int r = d->vars.n ? buf_printf(out, "\nenvironment:\n  variables:\n") : 0;

	for (size_t i = 0; i < d->vars.n && r == 0; i++) {
		const char *s = d->vars.v[i], *equal = strchr(s, '=');
		bool again = false;

		for (size_t k = 0; k < i; k++)
			again = again || !strncmp(d->vars.v[k], s, (size_t)(equal - s) + 1);
		if (again)
			continue;
		r = buf_printf(out, "    %.*s: ", (int)(equal - s), s);
		if (r == 0)
			r = quoted(out, equal + 1, strlen(equal + 1));
		if (r == 0)
			r = buf_add(out, "\n", 1);
	}
	return r;
}

static int words(struct buf *out, const struct draft_set *s)
{
	int r = 0;

	for (size_t i = 0; i < s->n && r == 0; i++)
		r = buf_printf(out, " %s", s->v[i]);
	return r;
}

static int install(const struct draft *d, struct buf *out)
{
	int r = d->apt.n || d->npm.n ? buf_printf(out, "\nsetup:\n  install:\n") : 0;

	if (r == 0 && d->apt.n) {
		r = buf_printf(
			out,
			"    - description: packages of Debian\n      command: >-\n"
			"        apt-get update && apt-get install -y --no-install-recommends");
		if (r == 0)
			r = words(out, &d->apt);
		if (r == 0)
			r = buf_add(out, "\n", 1);
	}
	if (r == 0 && d->npm.n) {
		r = buf_printf(out, "    - description: programs from npm\n      command: >-\n"
				    "        npm install -g");
		if (r == 0)
			r = words(out, &d->npm);
		if (r == 0)
			r = buf_add(out, "\n", 1);
	}
	return r;
}

static int comments(const struct draft *d, struct buf *out)
{
	int r = d->hints.n ? buf_printf(out, "\n# Also seen; what installs a project's own "
					     "packages is for the agent to run:\n")
			   : 0;

	for (size_t i = 0; i < d->hints.n && r == 0; i++)
		r = buf_printf(out, "#   %s\n", d->hints.v[i]);
	if (r == 0 && d->secrets.n)
		r = buf_printf(out, "\n# These look like secrets. Those that go into requests to "
				    "one host can be kept outside of the\n"
				    "# sandbox: say which service and host, and store the value "
				    "with 'bac secret set SERVICE'.\n"
				    "#credentials:\n");
	for (size_t i = 0; i < d->secrets.n && r == 0; i++)
		r = buf_printf(out,
			       "#  - service: my-service-%zu\n#    apiKey:\n#      name: %s\n#     "
			       " proxyManaged: true\n"
			       "#      inject:\n#        - domain: api.example.com\n#          "
			       "scheme: bearer\n",
			       i + 1, d->secrets.v[i]);
	return r;
}

int draft_write(const struct draft *d, const char *name, struct buf *out)
{
	int (*const parts[])(const struct draft *d, struct buf *out) = { network, ports, variables,
									 install, comments };
	int r = d->failed ? -ENOMEM : head(d, name, out);

	for (size_t i = 0; i < ARRAY_SIZE(parts) && r == 0; i++)
		r = parts[i](d, out);
	return r;
}
