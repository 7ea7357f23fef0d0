/* bac-commands, behind bac (front.c): finds the command, parses its options, runs it, and says in one line what went wrong. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cmds.h"
#include "cli/ctx.h"

enum { HELP_MAX = 256 * 1024 };

static int show(struct buf *text, struct err *e)
{
	if (fwrite(buf_data(text), 1, text->n, stdout) != text->n)
		return err_set(e, -EIO, "cannot write the output");
	return flush_out(e);
}

static int help(const char *path, const struct cmd *c, struct err *e)
{
	struct buf out = BUF_INIT(HELP_MAX);
	int r = cmd_help(&out, path, c);

	r = r < 0 ? err_errno(e, r, "cannot print the help") : show(&out, e);
	buf_done(&out);
	return r;
}

static const struct cmd *top(void)
{
	static struct cmd c = {
		.name = "",
		.usage = "COMMAND",
		.brief = "run coding agents, each in a micro virtual machine of its own",
		.text = "'bac COMMAND --help' tells about one command. To see a first sandbox:\n\n"
			"  bac template build\n  bac create --name first shell\n  bac exec -it "
			"first bash",
	};

	c.subs = cmds_all();
	return &c;
}

/* An option that sbx has and bac has not yet is refused by its name. */
static void explain_unknown(struct err *e)
{
	char name[64];
	const char *p = strstr(e->msg, "unknown option '");
	size_t len;

	if (!p)
		return;
	p += strlen("unknown option '");
	len = strcspn(p, "'");
	if (len >= sizeof(name))
		return;
	memcpy(name, p, len);
	name[len] = '\0';
	(void)cmds_not_built(name, e);
}

static int parse_and_run(const char *path, const struct cmd *c, char **argv, struct err *e)
{
	struct cmd named = *c;
	struct args args;
	_free_ void *opts = NULL;
	int r;

	named.name = path + strlen("bac "); /* messages say 'bac policy init', not 'bac init' */
	if (opts_wants_help(c, argv))
		return help(path, c, e);
	opts = calloc(1, c->size ? c->size : 1);
	if (!opts)
		return err_errno(e, -ENOMEM, "%s", path);
	r = opts_parse(&named, opts, argv, &args, e);
	if (r < 0) {
		explain_unknown(e);
		r = -EINVAL;
	} else {
		r = c->run(opts, &args, e);
	}
	opts_done(c, opts);
	return r;
}

/* Walk down to the command that the words name. */
static int dispatch(char **argv, const struct cmd **ret_used, struct err *e)
{
	const struct cmd *c = top();
	char path[128] = "bac", parent[128] = "", full[256];

	while (c->subs) {
		const char *word = *argv;
		size_t n = strlen(path);

		if (!word || streq(word, "-h") || streq(word, "--help") || streq(word, "help"))
			return help(path, c, e);
		if (streq(word, "--version"))
			word = "version";
		(void)snprintf(full, sizeof(full), "%s%s", parent, word);
		if (cmds_not_built(full, e) < 0)
			return e->code;
		if (word[0] == '-')
			return err_set(e, -EINVAL, "unknown option '%.60s' (see '%s --help')", word,
				       path);
		c = cmd_find(c->subs, word, parent, e);
		if (!c)
			return e->code;
		(void)snprintf(path + n, sizeof(path) - n, " %s", c->name);
		(void)snprintf(parent, sizeof(parent), "%s ", path + 4);
		argv++;
	}
	*ret_used = c;
	return parse_and_run(path, c, argv, e);
}

static int status_of(int r, const struct cmd *c)
{
	if (r >= 0)
		return r;
	if (c && (c->run == exec_cmd.run || c->run == run_cmd.run))
		return STATUS_BAC;
	return r == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
}

int main(int argc, char **argv)
{
	const struct cmd *used = NULL;
	struct err e = { 0 };
	int r;

	(void)argc;
	(void)signal(SIGPIPE, SIG_IGN); /* as front.c has done, should it be called by itself */
	r = dispatch(argv + 1, &used, &e);
	if (r < 0)
		say("%s", e.msg);
	return status_of(r, used);
}
