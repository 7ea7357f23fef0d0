/* agentInstructions: what the kits want their agent to know.
 *
 * They go into a file beside the workspace, in the folder above it: agents read that of every folder on the way up. In the sandbox that folder is the sandbox's own, since
 * only the workspace is shared; so nothing of the user's is touched, and what the user has in the workspace is read as well. Should the folder above be shared too, the home directory takes
 * the file. Agents that look only at a project and at a folder of their own get a link there.
 *
 * A mixin's text has a file of its own, kits-memory/KIT.md, and a line that names it. In the agent's file ours is between two marks, and replaced between them only. */
#include <limits.h>
#include <stdio.h>

#include "cli/kit-apply.h"

#define HOME "/home/agent"

enum { NOTES_MAX = 2 * 1024 * 1024 };

/* Where an agent looks beside the folders above its project. */
static const struct {
	const char *agent, *path;
} own_files[] = {
	{ "codex", HOME "/.codex/AGENTS.md" },
	{ "copilot", HOME "/.copilot/copilot-instructions.md" },
	{ "droid", HOME "/.factory/AGENTS.md" },
	{ "gemini", HOME "/.gemini/GEMINI.md" },
	{ "kiro", HOME "/.kiro/steering/AGENTS.md" },
	{ "opencode", HOME "/.config/opencode/AGENTS.md" },
};

/* $1: the file, $2: what links to it, or "" */
static const char merge[] =
	"set -eu\n"
	"mkdir -p \"${1%/*}/\"\n"
	"new=$(mktemp \"${1%/*}/.bac-XXXXXXXXXX\")\n"
	"trap 'rm -f \"$new\"' EXIT\n"
	"[ ! -f \"$1\" ] || sed '/^<!-- bac: begin/,/^<!-- bac: end/d' \"$1\" >\"$new\"\n"
	"cat >>\"$new\"\n"
	"chmod 644 \"$new\"\n"
	"chown 1000:1000 \"$new\"\n"
	"mv -f \"$new\" \"$1\"\n"
	"[ -n \"$2\" ] || exit 0\n"
	"[ ! -e \"$2\" ] && [ ! -L \"$2\" ] || exit 0\n"
	"cd " HOME "\n"
	"mkdir -p \"${2%/*}\"\n"
	"ln -s \"$1\" \"$2\"\n"
	"p=${2%/*}\n"
	"while [ \"$p\" != " HOME " ]; do chown 1000:1000 \"$p\"; p=${p%/*}; done\n";

static const char write_note[] = "set -eu\n"
				 "mkdir -p \"${1%/*}\"\n"
				 "{ cat; echo; } >\"$1\"\n"
				 "chown 1000:1000 \"${1%/*}\" \"$1\"\n";

static bool is_shared(const struct sandbox *b, const char *dir)
{
	for (size_t i = 0; i < b->shares.n; i++) {
		const char *path = b->shares.v[i].path;
		size_t n = strlen(path);

		if (strncmp(dir, path, n) == 0 && (dir[n] == '\0' || dir[n] == '/'))
			return true;
	}
	return false;
}

static void folder(const struct sandbox *b, char ret[PATH_MAX])
{
	const char *slash = strrchr(b->workdir, '/');
	size_t n = slash ? (size_t)(slash - b->workdir) : 0;

	(void)snprintf(ret, PATH_MAX, "%.*s", (int)n, b->workdir);
	if (is_shared(b, n ? ret : "/"))
		(void)snprintf(ret, PATH_MAX, "%s", HOME);
}

static const char *own_file(const struct kit_box *k)
{
	for (size_t i = 0; i < k->n; i++)
		for (size_t a = 0; k->v[i].builtin && a < ARRAY_SIZE(own_files); a++)
			if (streq(own_files[a].agent, k->v[i].kit.name))
				return own_files[a].path;
	return "";
}

static bool is_mixin(const struct kit_box *k, const struct kit_instructions *one)
{
	for (size_t i = 0; i < k->n; i++)
		if (k->v[i].mixin && streq(k->v[i].kit.name, one->kit))
			return true;
	return false;
}

/* Nobody has put anything there: the folder is there only because the workspace is. */
static bool is_empty(const struct sandbox *b, const char *dir)
{
	return *dir && !starts_with(dir, HOME) && streq(b->tmpl_tag, "default");
}

static int note_of(struct ctx *c, const struct sandbox *b, const char *dir,
		   const struct kit_instructions *one, struct kit_stage *stage, struct err *e)
{
	char path[PATH_MAX + 128];
	const char *words[] = { path, NULL };
	const struct kit_script s = { .user = "0",
				      .script = write_note,
				      .what = "agentInstructions",
				      .words = words,
				      .in = one->content,
				      .n_in = strlen(one->content) };

	(void)snprintf(path, sizeof(path), "%s/kits-memory/%.64s.md", dir, one->kit);
	if (is_empty(b, dir)) {
		int r = kit_stage_put(c, b, stage, path, 0644, s.in, s.n_in);

		return r < 0 ? err_errno(e, r, "agentInstructions") : 0;
	}
	return kit_apply_script(c, b, &s, e);
}

/* The part between the marks. */
static int put_all(struct ctx *c, const struct sandbox *b, const struct kit_box *k, const char *dir,
		   struct kit_stage *stage, struct buf *out, struct err *e)
{
	bool title = false;
	int r = buf_printf(out, "<!-- bac: begin. What is between these marks is bac's and is "
				"written anew. -->\n");

	for (size_t i = 0; i < k->kit.n_instructions && r == 0; i++) {
		const struct kit_instructions *one = &k->kit.instructions[i];

		if (!one->content || !*one->content)
			continue;
		if (!is_mixin(k, one)) {
			r = buf_printf(out, "%s\n", one->content);
			continue;
		}
		if (!title)
			r = buf_printf(
				out, "\n## Kits\n\nThese files say how to use what was added to "
				     "this sandbox; read one before you use what it is about:\n\n");
		title = true;
		if (r == 0)
			r = buf_printf(out, "- %s/kits-memory/%s.md\n", dir, one->kit);
		if (r == 0 && note_of(c, b, dir, one, stage, e) < 0)
			return e->code;
	}
	if (r == 0)
		r = buf_printf(out, "<!-- bac: end -->\n");
	return r < 0 ? err_errno(e, r, "agentInstructions") : 0;
}

static int stage_profile(struct ctx *c, const struct sandbox *b, const struct kit_script *s,
			 struct kit_stage *stage, struct err *e)
{
	int r = kit_stage_put(c, b, stage, s->words[0], 0644, s->in, s->n_in);

	if (r == 0 && *s->words[1])
		r = kit_stage_link(c, b, stage, s->words[1], s->words[0]);
	return r < 0 ? err_errno(e, r, "agentInstructions") : 0;
}

int kit_apply_notes(struct ctx *c, const struct sandbox *b, const struct kit_box *k,
		    struct kit_stage *stage, struct err *e)
{
	struct buf text = BUF_INIT(NOTES_MAX);
	char dir[PATH_MAX], path[PATH_MAX + 128];
	const char *words[] = { path, own_file(k), NULL }, *name = NULL;
	struct kit_script s = {
		.user = "0", .script = merge, .what = "agentInstructions", .words = words
	};
	bool any = false;
	int r;

	for (size_t i = 0; i < k->kit.n_instructions; i++) {
		const struct kit_instructions *one = &k->kit.instructions[i];

		any |= one->content && *one->content;
		if (!name && !is_mixin(k, one))
			name = one->filename;
	}
	if (!any || !name)
		return 0;
	folder(b, dir);
	(void)snprintf(path, sizeof(path), "%s/%.100s", dir, name);
	r = put_all(c, b, k, dir, stage, &text, e);
	s.in = buf_data(&text);
	s.n_in = text.n;
	if (r == 0)
		r = is_empty(b, dir) ? stage_profile(c, b, &s, stage, e)
				     : kit_apply_script(c, b, &s, e);
	buf_done(&text);
	return r;
}
