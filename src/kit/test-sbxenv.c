/* sbxenv.yaml: what is taken, how several files become one, and with which words the rest is refused. */
#include <stdio.h>

#include "base/check.h"
#include "kit/sbxenv.h"

#define HEAD "schemaVersion: \"1\"\nagent: shell\n"

struct result {
	struct sbxenv v;
	struct kit_report rep;
	struct kit_args args;
	struct err e;
	int r;
};

static struct result parse(const char *first, const char *second, const char *arg)
{
	const struct sbxenv_file files[] = {
		{ .name = "/p/sbxenv.yaml", .dir = "/p", .text = first, .n = strlen(first) },
		{ .name = "/q/local.yaml",
		  .dir = "/q",
		  .text = second ? second : "",
		  .n = second ? strlen(second) : 0 },
	};
	struct result t = { 0 };

	if (arg)
		check(kit_args_add(&t.args, arg, &t.e) == 0);
	t.r = sbxenv_parse(files, second ? 2 : 1, "/p", &t.args, &t.v, &t.rep, &t.e);
	return t;
}

static void done(struct result *t)
{
	sbxenv_done(&t->v);
	report_done(&t->rep);
	kit_args_done(&t->args);
}

static void everything(void)
{
	static const char text[] = HEAD
		"name: web-app\n"
		"args:\n  chan: {default: stable, enum: [stable, beta], description: d}\n"
		"  n: {default: \"4\", pattern: \"[1-9][0-9]*\"}\n"
		"kits:\n  - docker.io/sbx/x:1\n  - ./kits/a\n  - k.zip\n"
		"  - source: ../b\n    args: {v: \"${{ env.args.chan }}\"}\n"
		"workspace: {path: ./web, clone: false}\n"
		"additionalWorkspaces:\n  - path: ../shared\n  - {path: /abs/x, readOnly: true}\n"
		"env: {A: \"$PATH:/opt\", B: \"${{ env.args.chan }}-${{env.projectDir}}\", C: "
		"'$${{ env.args.chan }}'}\n"
		"sandboxOptions: {template: t, memory: 8g, cpus: \"${{ env.args.n }}\", "
		"pullPolicy: never, gpu: false, usb: [], skills: off}\n"
		"secrets:\n  anthropic: {ref: \"op://a/b\", refresh: 55m}\n  github: {command: gh "
		"auth token, snapshot: true}\n"
		"bindings:\n  github: {apiKey: {domains: [api.github.com]}, oauth: {domains: "
		"[a.b]}}\n"
		"registries:\n  ghcr.io: {secret: {command: x}, username: {value: me}}\n"
		"ports:\n  - {sandbox: 3000, host: 3001, protocol: tcp, hostIP: 127.0.0.1}\n  - "
		"{sandbox: 80}\n"
		"lifecycle:\n  initialize:\n    - {name: Prepare, command: make, timeout: 5m}\n"
		"  postCreate: [{command: ./x, workdir: sub}]\n  preRemove: [{command: y, workdir: "
		"\"${{ env.fileDir }}/z\"}]\n";
	struct result t = parse(text, NULL, "chan=beta");
	const struct sbxenv *v = &t.v;

	if (t.r < 0)
		(void)fprintf(stderr, "%s\n", t.e.msg);
	check(t.r == 0 && streq(v->name, "web-app") && streq(v->agent, "shell"));
	check(v->n_kits == 4 && streq(v->kits[0].source, "docker.io/sbx/x:1"));
	check(streq(v->kits[1].source, "/p/kits/a") && streq(v->kits[2].source, "/p/k.zip"));
	check(streq(v->kits[3].source, "/b") && v->kits[3].n_args == 1 &&
	      streq(v->kits[3].args[0].value, "beta"));
	check(streq(v->workspace, "/p/web") && !v->clone);
	check(v->n_folders == 2 && streq(v->folders[0].path, "/shared") &&
	      !v->folders[0].read_only);
	check(streq(v->folders[1].path, "/abs/x") && v->folders[1].read_only);
	check(v->n_vars == 3 && streq(v->vars[0].value, "$PATH:/opt"));
	check(streq(v->vars[1].value, "beta-/p") &&
	      streq(v->vars[2].value, "${{ env.args.chan }}"));
	check(streq(v->tmpl, "t") && v->memory == (uint64_t)8 << 30 && v->cpus == 4 &&
	      streq(v->pull, "never"));
	check(v->n_secrets == 2 && streq(v->secrets[0].source.refresh, "55m") &&
	      v->secrets[1].source.snapshot);
	check(v->n_bindings == 1 && v->bindings[0].api_key.n == 1 &&
	      streq(v->bindings[0].oauth.v[0], "a.b"));
	check(v->n_registries == 1 && streq(v->registries[0].username.value, "me"));
	check(v->n_ports == 2 && v->ports[0].host == 3001 && v->ports[1].host == 0);
	check(v->n_commands[0] == 1 && v->commands[0][0].timeout_ms == 300000 &&
	      streq(v->commands[0][0].workdir, "/p"));
	check(streq(v->commands[1][0].workdir, "/p/sub") && streq(v->commands[1][0].name, "./x"));
	check(streq(v->commands[2][0].workdir, "/p/z") && t.args.v[0].used);
	done(&t);
}

static void merged(void)
{
	struct result t =
		parse(HEAD
		      "env: {A: a, B: b}\nworkspace: ./w\nsandboxOptions: {cpus: 4, memory: 8g}\n"
		      "ports: [{sandbox: 1}]\nargs: {x: {default: one}}\n"
		      "secrets: {s: {ref: \"op://x\"}}\n",
		      "env: {B: c, C: \"${{ env.args.x }} ${{ env.fileDir }}\"}\n"
		      "sandboxOptions: {memory: 12g}\nports: [{sandbox: 2}]\nkits: [./k]\n"
		      "secrets: {s: {refresh: 5m}}\nargs: {x: {default: two}}\n",
		      NULL);

	if (t.r < 0)
		(void)fprintf(stderr, "%s\n", t.e.msg);
	check(t.r == 0 && t.v.n_vars == 3 && streq(t.v.vars[1].value, "c"));
	check(streq(t.v.vars[2].value, "two /q") && t.v.memory == (uint64_t)12 << 30 &&
	      t.v.cpus == 4);
	check(t.v.n_ports == 2 && t.v.ports[1].sandbox == 2 && streq(t.v.workspace, "/p/w"));
	check(streq(t.v.kits[0].source, "/q/k") && streq(t.v.secrets[0].source.refresh, "5m"));
	done(&t);
	t = parse(HEAD "workspace: ./w\n", "workspace: {path: ./v}\nagent: ./kits/mine\n", NULL);
	check(t.r == 0 && streq(t.v.workspace, "/q/v") && streq(t.v.agent, "/q/kits/mine"));
	done(&t);
}

static const struct {
	const char *text, *arg, *message;
} bad[] = {
	{ "agent: shell\n", NULL, "found no 'schemaVersion', expected \"1\"" },
	{ "schemaVersion: \"1\"\n", NULL, "found no 'agent'" },
	{ "schemaVersion: \"2\"\nagent: shell\n", NULL,
	  "/p/sbxenv.yaml:1:17: schemaVersion: found '2', expected \"1\"" },
	{ "- a\n", NULL, "expected a map" },
	{ HEAD "agnt: x\n", NULL,
	  "/p/sbxenv.yaml:3:1: agnt: found an unknown field, expected 'agent'" },
	{ HEAD "name: -x\n", NULL, "name: found '-x', which" },
	{ HEAD "mcp: {servers: [{name: x, url: y}]}\n", NULL, "'mcp' is not built yet" },
	{ HEAD "sandboxOptions: {gpu: true}\n", NULL, "'gpu' is not built yet" },
	{ HEAD "sandboxOptions: {usb: [a]}\n", NULL, "'usb' is not built yet" },
	{ HEAD "sandboxOptions: {display: true}\n", NULL, "'display' is not built yet" },
	{ HEAD "sandboxOptions: {profile: p}\n", NULL, "'profile' is not built yet" },
	{ HEAD "sandboxOptions: {skills: readonly}\n", NULL, "'skills' is not built yet" },
	{ HEAD "sandboxOptions: {cpus: x}\n", NULL,
	  "sandboxOptions.cpus: found 'x', expected a number" },
	{ HEAD "sandboxOptions: {memory: x}\n", NULL,
	  "sandboxOptions.memory: found 'x', expected a size" },
	{ HEAD "sandboxOptions: {pullPolicy: x}\n", NULL, "expected always, missing or never" },
	{ HEAD "sandboxOptions: [a]\n", NULL, "sandboxOptions: found a list, expected a map" },
	{ HEAD "secrets: {s: {ref: a, backend: sdk}}\n", NULL,
	  "the backend 'sdk' is not built yet" },
	{ HEAD "secrets: {s: {}}\n", NULL,
	  "secrets.s: expected exactly one of value, ref and command" },
	{ HEAD "secrets: {s: {value: a, ref: b}}\n", NULL, "expected exactly one of" },
	{ HEAD "secrets: {s: {value: a, snapshot: true}}\n", NULL, "'snapshot' goes with" },
	{ HEAD "secrets: {s: {command: a, snapshot: true, refresh: 5m}}\n", NULL,
	  "goes with neither" },
	{ HEAD "secrets: {s: a}\n", NULL, "secrets.s: found 'a', expected a map" },
	{ HEAD "registries: {r: {}}\n", NULL, "registries.r: expected exactly one of" },
	{ HEAD "workspace: {clone: true, path: .}\n", NULL,
	  "workspace.clone: it is not built yet" },
	{ HEAD "workspace: {clone: false}\n", NULL, "workspace: found no 'path'" },
	{ HEAD "additionalWorkspaces: [a]\n", NULL,
	  "additionalWorkspaces[0]: found 'a', expected a map" },
	{ HEAD "additionalWorkspaces: [{readOnly: true}]\n", NULL, "found no 'path'" },
	{ HEAD "env: {1A: b}\n", NULL, "expected the name of a variable" },
	{ HEAD "env: {A: [b]}\n", NULL, "env.A: found a list, expected a text" },
	{ HEAD "ports: [{sandbox: 0}]\n", NULL, "expected a port from 1 to 65535" },
	{ HEAD "ports: [{sandbox: 65536}]\n", NULL, "expected a port from 1 to 65535" },
	{ HEAD "ports: [{host: 1}]\n", NULL, "found no 'sandbox'" },
	{ HEAD "ports: [{sandbox: 1, protocol: icmp}]\n", NULL, "expected tcp, tcp4" },
	{ HEAD "kits: [{args: {}}]\n", NULL, "found no 'source'" },
	{ HEAD "lifecycle: {start: []}\n", NULL, "found an unknown field" },
	{ HEAD "lifecycle: {initialize: [{name: x}]}\n", NULL, "found no 'command'" },
	{ HEAD "lifecycle: {initialize: [{command: x, timeout: soon}]}\n", NULL,
	  "expected a time as" },
	{ HEAD "bindings: {s: {apiKey: [a]}}\n", NULL,
	  "bindings.s.apiKey: found a list, expected a map" },
	{ HEAD "env: {A: \"${{ env.args.x }}\"}\n", NULL, "found a reference to 'env.args.x'" },
	{ HEAD "env: {A: \"${{ kit.args.x }}\"}\n", NULL, "found a reference to 'kit.args.x'" },
	{ HEAD "env: {A: \"${{ env.args.x\"}\n", NULL, "found '${{' without '}}'" },
	{ HEAD "env: {\"${{ env.projectDir }}\": x}\n", NULL, "in the name of a field" },
	{ HEAD "args: {x: {}}\n", NULL, "expected either 'default' or 'required: true'" },
	{ HEAD "args: {x: {required: true}}\n", NULL, "expected --env-arg x=VALUE" },
	{ HEAD "args: {x: {default: a, enum: [a], pattern: a}}\n", NULL,
	  "found both 'enum' and 'pattern'" },
	{ HEAD "args: {x: {default: a, enum: [a]}}\n", "x=b",
	  "found the value 'b', expected one of: a" },
	{ HEAD "args: {1x: {default: a}}\n", NULL, "expected a name of letters" },
	{ HEAD "a: 1\na: 2\n", NULL, "a" },
};

static void refused(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct result t = parse(bad[i].text, NULL, bad[i].arg);
		bool there = false;

		for (size_t k = 0; k < t.rep.n; k++)
			there = there || strstr(t.rep.v[k].text, bad[i].message);
		if (t.r == 0 || !there)
			(void)fprintf(stderr, "%s -> %d '%s', not '%s'\n", bad[i].text, t.r,
				      t.e.msg, bad[i].message);
		check(t.r == -EINVAL && there);
		done(&t);
	}
}

static void of_the_user(void)
{
	static const struct {
		const char *text;
		bool fine;
	} rows[] = {
		{ HEAD "workspace: ${{ env.projectDir }}\n", true },
		{ HEAD "workspace: ${{ env.projectDir }}/src\n", true },
		{ HEAD "workspace: ${{ env.projectDir }}x\n", false },
		{ HEAD "workspace: ${{ env.projectDir }}/../x\n", false },
		{ HEAD "workspace: ./x\n", false },
		{ HEAD "name: x\n", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct sbxenv_file f = { .name = "/h/.sbxenv.yaml",
					       .dir = "/h",
					       .text = rows[i].text,
					       .n = strlen(rows[i].text),
					       .user = true };
		struct kit_report rep = { 0 };
		struct sbxenv v = { 0 };
		struct err e = { 0 };

		check((sbxenv_parse(&f, 1, "/p", NULL, &v, &rep, &e) == 0) == rows[i].fine);
		sbxenv_done(&v);
		report_done(&rep);
	}
}

int main(void)
{
	everything();
	merged();
	refused();
	of_the_user();
	return 0;
}
