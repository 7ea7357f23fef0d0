/* What a command works with. */
#include "cli/ctx.h"

#include <fcntl.h>
#include <jansson.h>
#include <time.h>
#include <unistd.h>

#include "io/fd.h"

static void tell_notes(struct buf *notes)
{
	const char *p = notes->n ? buf_str(notes) : NULL;

	while (p && *p) {
		size_t len = strcspn(p, "\n");

		say("%.*s", (int)len, p);
		p += len + (p[len] == '\n');
	}
}

int ctx_open(struct ctx *c, struct err *e)
{
	struct buf notes = BUF_INIT(STATE_NOTES_MAX);
	int r;

	*c = (struct ctx) { 0 };
	r = dirs_get(&c->dirs, e);
	if (r == 0)
		r = state_open(c->dirs.state, &c->state, &notes, e);
	tell_notes(&notes);
	buf_done(&notes);
	return r;
}

void ctx_done(struct ctx *c)
{
	c->state = state_free(c->state);
	dirs_done(&c->dirs);
}

char *ctx_run_dir(const struct ctx *c, const char *id)
{
	return dirs_join(c->dirs.run, id);
}

int ask(const char *question, struct err *e)
{
	char answer[16] = "";

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return err_set(e, -ENOTTY,
			       "%s needs an answer, and there is no terminal; use --force",
			       question);
	(void)fprintf(stderr, "%s [y/N] ", question);
	(void)fflush(stderr);
	if (!fgets(answer, sizeof(answer), stdin))
		return 0;
	return answer[0] == 'y' || answer[0] == 'Y';
}

int print_json(struct json_t *j, struct err *e)
{
	int r = json_dumpf(j, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII) < 0 ? -1 : 0;

	json_decref(j);
	if (r < 0 || putchar('\n') == EOF)
		return err_set(e, -EIO, "cannot write the output");
	return flush_out(e);
}

const char *utc(char *dst, size_t max, int64_t seconds)
{
	time_t t = seconds;
	struct tm tm;

	(void)strftime(dst, max, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
	return dst;
}

enum { RUN_JSON_MAX = 4096 };

void last_run_read(const struct ctx *c, const char *id, struct last_run *ret)
{
	_free_ char *text = NULL;
	const char *state = NULL, *reason = "";
	char path[64];
	json_int_t at = 0;
	int clean = 0;
	size_t len;
	json_t *j;

	*ret = (struct last_run) { 0 };
	(void)snprintf(path, sizeof(path), "%s/run.json", id);
	if (fd_read_file(state_sandboxes_fd(c->state), path, RUN_JSON_MAX, &text, &len) < 0)
		return;
	j = json_loadb(text, len, 0, NULL);
	if (j && json_unpack(j, "{s:s, s:I, s?b, s?s}", "state", &state, "at", &at, "clean", &clean,
			     "reason", &reason) == 0) {
		ret->known = true;
		ret->running = streq(state, "running");
		ret->clean = clean;
		ret->at = at;
		(void)snprintf(ret->reason, sizeof(ret->reason), "%s", reason);
	} else {
		/* Torn: the last thing that was done to it was not finished. */
		ret->known = ret->running = true;
	}
	json_decref(j);
}

void last_run_settle(const struct ctx *c, const struct sandbox *b)
{
	static const char reason[] = "its supervisor was killed";
	struct last_run last;
	char text[256], path[64];
	int n;

	last_run_read(c, b->id, &last);
	if (!last.running)
		return;
	say("sandbox '%s' was cut off (%s); its files are as they were at that moment", b->name,
	    reason);
	n = snprintf(
		text, sizeof(text),
		"{\"state\": \"stopped\", \"clean\": false, \"at\": %lld, \"reason\": \"%s\"}\n",
		(long long)time(NULL), reason);
	(void)snprintf(path, sizeof(path), "%s/run.json", b->id);
	if (fd_replace_file(state_sandboxes_fd(c->state), path, 0600, text, (size_t)n) < 0)
		return;
}
