/* Each script is a fixed engine and a table. The engine reads the words before the cursor: it goes
 * down into sub commands, skips options and their values, counts the other words, and so knows what
 * is due at the cursor. The table answers, for the name of a command:
 *
 *   subs    what may follow as a sub command
 *   flags   options without a value
 *   valued  options with one, each as "--name:KIND"
 *   args    the kinds of the other words in order; the last one repeats if it ends with a star
 *   first   set if options end at the first other word (exec)
 *
 * A KIND is s (sandbox), f (file), c (side of a copy), - (nothing we know), or the choices
 * themselves ("kvm|tcg"). fish has its own way to declare options and gets its table as
 * "complete" lines.
 *
 * The engines are data/completion/engine.*, where they can be read and linted as what they are. */
#include "cli/completion.h"

#include <stdio.h>

#include "cli/engines.h" /* made by tools/embed.py out of data/completion */
#include "cli/put.h"
#include "cli/walk.h"

static bool is_choice(const char *word)
{
	return strchr(word, '|') &&
	       word[strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-|")] == '\0';
}

/* The KIND of a word that the tables call name. */
static const char *kind(const char *name)
{
	if (!name)
		return "-";
	if (is_choice(name))
		return name;
	if (strstr(name, "SRC") || strstr(name, "DST"))
		return "c";
	if (starts_with(name, "SANDBOX"))
		return "s";
	if (starts_with(name, "FILE") || starts_with(name, "PATH"))
		return "f";
	return "-";
}

static void put_args(struct put *p, const struct cmd *c)
{
	const char *usage = c->usage ? c->usage : "";
	char word[WALK_WORD_MAX];
	const char *sep = "";
	bool more;

	while (walk_usage(&usage, word, &more)) {
		PUT(p, "%s%s%s", sep, kind(word), more ? "*" : "");
		sep = " ";
	}
}

/* Text inside single quotes. bash and zsh know no escape there, fish does. */
static void put_quoted(struct put *p, const char *s, bool fish)
{
	for (; *s; s++) {
		if (*s == '\'')
			PUT(p, fish ? "\\'" : "'\\''");
		else if (*s == '\\' && fish)
			PUT(p, "\\\\");
		else
			PUT(p, "%c", *s);
	}
}

static void bash_subs(struct put *p, const struct cmd *subs)
{
	const char *sep = "";

	PUT(p, " subs='");
	for (; subs->name; subs++) {
		if (subs->hidden)
			continue;
		PUT(p, "%s%s", sep, subs->name);
		sep = " ";
	}
	PUT(p, "'");
}

static void bash_options(struct put *p, const struct cmd *c, bool valued)
{
	const char *sep = "";
	size_t i;

	PUT(p, valued ? " valued='" : " flags='");
	for (i = 0; i < c->n_opts; i++) {
		const struct opt *o = &c->opts[i];
		const char *colon = valued ? ":" : "", *what = valued ? kind(o->arg) : "";

		if (valued == (o->kind == OPT_FLAG))
			continue;
		PUT(p, "%s--%s%s%s", sep, o->name, colon, what);
		if (o->letter)
			PUT(p, " -%c%s%s", o->letter, colon, what);
		sep = " ";
	}
	PUT(p, "'");
}

int completion_bash(struct buf *out, const struct cmd *cmds)
{
	struct put p = { .out = out };
	const struct cmd *c;
	struct walk w;

	PUT(&p, "%s\n_bac_table() {\n\tsubs='' flags='' valued='' args='' first=''\n", engine_bash);
	PUT(&p, "\tcase $1 in\n\t'')");
	bash_subs(&p, cmds);
	PUT(&p, " ;;\n");
	walk_init(&w, cmds);
	while ((c = walk_next(&w))) {
		PUT(&p, "\t'%s')", w.path);
		if (c->subs) {
			bash_subs(&p, c->subs);
		} else {
			bash_options(&p, c, false);
			bash_options(&p, c, true);
			PUT(&p, " args='");
			put_args(&p, c);
			PUT(&p, "' first=%s", c->stop_at_first ? "1" : "");
		}
		PUT(&p, " ;;\n");
	}
	PUT(&p, "\tesac\n}\n");
	return p.r;
}

static void zsh_subs(struct put *p, const struct cmd *subs)
{
	PUT(p, "\t\tsubs=(\n");
	for (; subs->name; subs++) {
		if (subs->hidden)
			continue;
		PUT(p, "\t\t\t'%s:", subs->name);
		put_quoted(p, subs->brief, false);
		PUT(p, "'\n");
	}
	PUT(p, "\t\t)\n");
}

static void zsh_option(struct put *p, const struct opt *o)
{
	const char *list = o->kind == OPT_FLAG ? "flags" : "valued";

	PUT(p, "\t\t%s+=('--%s:", list, o->name);
	put_quoted(p, o->help, false);
	if (o->letter) {
		PUT(p, "' '-%c:", o->letter);
		put_quoted(p, o->help, false);
	}
	PUT(p, "')\n");
	if (o->kind == OPT_FLAG)
		return;
	PUT(p, "\t\ttakes+=(--%s '%s'", o->name, kind(o->arg));
	if (o->letter)
		PUT(p, " -%c '%s'", o->letter, kind(o->arg));
	PUT(p, ")\n");
}

int completion_zsh(struct buf *out, const struct cmd *cmds)
{
	struct put p = { .out = out };
	const struct cmd *c;
	struct walk w;
	size_t i;

	PUT(&p, "%s\n_bac_table() {\n\tsubs=() flags=() valued=() takes=() args='' first=''\n",
	    engine_zsh);
	PUT(&p, "\tcase $1 in\n\t('')\n");
	zsh_subs(&p, cmds);
	PUT(&p, "\t\t;;\n");
	walk_init(&w, cmds);
	while ((c = walk_next(&w))) {
		PUT(&p, "\t('%s')\n", w.path);
		if (c->subs)
			zsh_subs(&p, c->subs);
		for (i = 0; i < c->n_opts; i++)
			zsh_option(&p, &c->opts[i]);
		PUT(&p, "\t\targs='");
		if (!c->subs)
			put_args(&p, c);
		PUT(&p, "' first=%s\n\t\t;;\n", c->stop_at_first ? "1" : "");
	}
	PUT(&p, "\tesac\n}\nif [[ $funcstack[1] == _bac ]]; then _bac \"$@\"; else compdef _bac "
		"bac; fi\n");
	return p.r;
}

/* "-a ..." or what else makes fish offer words of this kind. */
static void fish_kind(struct put *p, const char *k)
{
	if (streq(k, "s"))
		PUT(p, " -x -a '(__bac_sandboxes)'");
	else if (streq(k, "c"))
		PUT(p, " -F -a '(__bac_sides)'");
	else if (streq(k, "f"))
		PUT(p, " -r -F");
	else if (streq(k, "-"))
		PUT(p, " -x");
	else
		PUT(p, " -x -a '(string split \"|\" \"%s\")'", k);
}

static void fish_subs(struct put *p, const char *path, const struct cmd *subs)
{
	for (; subs->name; subs++) {
		if (subs->hidden)
			continue;
		PUT(p, "complete -c bac -n '__bac_at \"%s\" 0' -a %s -d '", path, subs->name);
		put_quoted(p, subs->brief, true);
		PUT(p, "'\n");
	}
}

static void fish_command(struct put *p, const char *path, const struct cmd *c)
{
	const char *usage = c->usage ? c->usage : "";
	char word[WALK_WORD_MAX];
	unsigned n = 0;
	bool more;
	size_t i;

	for (i = 0; i < c->n_opts; i++) {
		const struct opt *o = &c->opts[i];

		PUT(p, "complete -c bac -n '__bac_at \"%s\"%s' -l %s", path,
		    c->stop_at_first ? " 0" : "", o->name);
		if (o->letter)
			PUT(p, " -s %c", o->letter);
		if (o->kind != OPT_FLAG)
			fish_kind(p, kind(o->arg));
		PUT(p, " -d '");
		put_quoted(p, o->help, true);
		PUT(p, "'\n");
	}
	for (; walk_usage(&usage, word, &more); n++) {
		if (streq(kind(word), "-"))
			continue;
		PUT(p, "complete -c bac -n '__bac_at \"%s\" %u%s'", path, n, more ? "+" : "");
		fish_kind(p, kind(word));
		PUT(p, "\n");
	}
}

static void fish_valued(struct put *p, const struct cmd *cmds)
{
	const struct cmd *c;
	struct walk w;
	size_t i;

	PUT(p, "\nfunction __bac_valued\n    switch $argv[1]\n");
	walk_init(&w, cmds);
	while ((c = walk_next(&w))) {
		PUT(p, "        case '%s'\n            printf '%%s\\n' ''", w.path);
		for (i = 0; i < c->n_opts; i++) {
			const struct opt *o = &c->opts[i];

			if (o->kind == OPT_FLAG)
				continue;
			PUT(p, " --%s", o->name);
			if (o->letter)
				PUT(p, " -%c", o->letter);
		}
		PUT(p, "\n");
	}
	PUT(p, "    end\nend\n");
}

int completion_fish(struct buf *out, const struct cmd *cmds)
{
	struct put p = { .out = out };
	const struct cmd *c;
	struct walk w;

	PUT(&p, "%s", engine_fish);
	fish_valued(&p, cmds);
	PUT(&p, "\n");
	fish_subs(&p, "", cmds);
	walk_init(&w, cmds);
	while ((c = walk_next(&w))) {
		if (c->subs)
			fish_subs(&p, w.path, c->subs);
		else
			fish_command(&p, w.path, c);
	}
	return p.r;
}
