/* roff has three traps: a dash that is to be typed must be written \-, a backslash \e, and a line of
 * text may not begin with a dot or an apostrophe. put_text() is the only way for text from a table
 * into the page. */
#include "cli/manual.h"

#include "cli/put.h"
#include "cli/walk.h"
#include "config.h"

static void put_char(struct put *p, char c, bool first)
{
	if (first && (c == '.' || c == '\''))
		PUT(p, "\\&");
	if (c == '-')
		PUT(p, "\\-");
	else if (c == '\\')
		PUT(p, "\\e");
	else
		PUT(p, "%c", c);
}

static void put_text(struct put *p, const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		put_char(p, s[i], i == 0);
}

static void put_line(struct put *p, const char *s)
{
	put_text(p, s, strlen(s));
	PUT(p, "\n");
}

/* Paragraphs are parted by empty lines; a line that begins with a space or a tab is shown as it
 * is, as an example. */
static void put_paragraphs(struct put *p, const char *text)
{
	bool example = false, due = true; /* due: a new paragraph begins with the next line */

	while (*text) {
		size_t len = strcspn(text, "\n"), lead = strspn(text, " \t");
		bool indented = lead > 0;

		if (len && indented != example) {
			PUT(p, indented ? ".PP\n.nf\n.RS 4\n" : ".RE\n.fi\n.PP\n");
			example = indented;
		} else if (len && due) {
			PUT(p, example ? "\n" : ".PP\n");
		}
		due = !len;
		if (len) {
			put_text(p, text + lead, len - lead);
			PUT(p, "\n");
		}
		text += len + (text[len] == '\n');
	}
	if (example)
		PUT(p, ".RE\n.fi\n");
}

static void put_option(struct put *p, const struct opt *o)
{
	PUT(p, ".TP\n");
	if (o->letter)
		PUT(p, "\\fB\\-%c\\fR, ", o->letter);
	PUT(p, "\\fB\\-\\-");
	put_text(p, o->name, strlen(o->name));
	PUT(p, "\\fR");
	if (o->arg) {
		PUT(p, " \\fI");
		put_text(p, o->arg, strlen(o->arg));
		PUT(p, "\\fR");
	}
	PUT(p, "\n");
	put_line(p, o->help);
}

static void put_command(struct put *p, const char *path, const struct cmd *c)
{
	char first = c->brief[0];
	size_t i;

	PUT(p, ".SS \"bac ");
	put_text(p, path, strlen(path));
	PUT(p, "\"\n.B bac ");
	put_text(p, path, strlen(path));
	PUT(p, "\n");
	if (c->usage && c->usage[0])
		put_line(p, c->usage);
	PUT(p, ".PP\n%c", first >= 'a' && first <= 'z' ? first - 'a' + 'A' : first);
	put_text(p, c->brief + 1, strlen(c->brief + 1));
	PUT(p, ".\n");
	if (c->text)
		put_paragraphs(p, c->text);
	for (i = 0; i < c->n_opts; i++)
		put_option(p, &c->opts[i]);
}

static const char head[] =
	".\\\" printed by bac from its option tables\n"
	".TH BAC 1 \"\" \"bac " BAC_VERSION "\" \"User Commands\"\n"
	".SH NAME\n"
	"bac \\- run a coding agent in a micro virtual machine\n"
	".SH SYNOPSIS\n"
	".B bac\n"
	".I COMMAND\n"
	".RI [ OPTIONS ]\n"
	".RI [ ARG ...]\n"
	".SH DESCRIPTION\n"
	"A sandbox is a small virtual machine with a kernel and a root file system\n"
	"of its own. It is made from a template, keeps its files while it is stopped,\n"
	"and is gone when it is removed.\n"
	"Each running sandbox has one supervisor, a process of the user who started\n"
	"it; there is no daemon and no account.\n"
	".PP\n"
	"Every command answers\n"
	".B \\-\\-help\n"
	"with what is below.\n"
	".SH COMMANDS\n";

static const char tail[] =
	".SH EXIT STATUS\n"
	"0 on success, 1 where a command could not do what it was told, 2 where it was\n"
	"not told rightly; one line on standard error says what, why, and what to do\n"
	"about it.\n"
	".B bac exec\n"
	"and\n"
	".B bac run\n"
	"end with the status of the command that they ran:\n"
	".TP\n.B 124\nthe command ran into\n.B \\-\\-timeout\n"
	".TP\n.B 125\nbac itself refused or failed\n"
	".TP\n.B 126\nthe command was found but cannot be run\n"
	".TP\n.B 127\nthe command was not found\n"
	".TP\n.BI 128+ N\nthe command was ended by signal\n.I N\n"
	".SH ENVIRONMENT\n"
	".TP\n.BI BAC_ SETTING\na setting for this one command, as in\n"
	".IR BAC_VM_REQUIRE_KVM=true ;\n.B bac settings ls\nlists them\n"
	".TP\n.B XDG_STATE_HOME\nwhere sandboxes, their disks and logs, and settings are kept; "
	"else\n"
	".I ~/.local/state\n"
	".TP\n.B XDG_CACHE_HOME\nwhere templates and kernels are kept; else\n.I ~/.cache\n"
	".TP\n.B XDG_RUNTIME_DIR\nwhere the sockets of running sandboxes are; else\n"
	".IR /run/user/ UID\nor\n.IR /tmp/bac\\- UID\n"
	".SH FILES\n"
	".TP\n.I $XDG_STATE_HOME/bac\nthe sandboxes\n"
	".TP\n.I $XDG_CACHE_HOME/bac\ntemplates and kernels, named by what they were made from\n"
	".TP\n.I /etc/sandbox\\-persistent.sh\n"
	"inside a sandbox: read by every bash, for what is to last\n"
	".SH SEE ALSO\n"
	".BR qemu (1),\n"
	".BR mmdebstrap (1)\n";

int manual_page(struct buf *out, const struct cmd *cmds)
{
	struct put p = { .out = out };
	const struct cmd *c;
	struct walk w;

	PUT(&p, "%s", head);
	walk_init(&w, cmds);
	while ((c = walk_next(&w)))
		if (!c->subs)
			put_command(&p, w.path, c);
	PUT(&p, "%s", tail);
	return p.r;
}
