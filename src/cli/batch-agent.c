#include "cli/batch-agent.h"

#include <jansson.h>

static const struct batch_agent agents[] = {
	{ .name = "pi",
	  .words = { "--mode", "json", "-p", BATCH_PROMPT },
	  .event = "message_end",
	  .adds = true,
	  .in = { "message.usage.input", "message.usage.cacheRead", "message.usage.cacheWrite" },
	  .out = { "message.usage.output" } },
	{ .name = "claude",
	  .words = { "--dangerously-skip-permissions", "--output-format", "stream-json",
		     "--verbose", "-p", BATCH_PROMPT },
	  .event = "result",
	  .in = { "usage.input_tokens", "usage.cache_read_input_tokens",
		  "usage.cache_creation_input_tokens" },
	  .out = { "usage.output_tokens" } },
	{ .name = "codex",
	  .words = { "exec", "--dangerously-bypass-approvals-and-sandbox", "--json", BATCH_PROMPT },
	  .event = "turn.completed",
	  .adds = true,
	  .in = { "usage.input_tokens" },
	  .out = { "usage.output_tokens" } },
	{ .name = "gemini",
	  .words = { "--yolo", "-o", "stream-json", "-p", BATCH_PROMPT },
	  .event = "result",
	  .in = { "stats.input_tokens" },
	  .out = { "stats.output_tokens" } },
	{ .name = "opencode",
	  .words = { "run", "--auto", "--format", "json", BATCH_PROMPT },
	  .event = "step_finish",
	  .adds = true,
	  .in = { "part.tokens.input", "part.tokens.cache.read", "part.tokens.cache.write" },
	  .out = { "part.tokens.output" } },
	{ .name = "copilot",
	  .words = { "--yolo", "--output-format", "json", "-p", BATCH_PROMPT },
	  .event = "session.usage_checkpoint",
	  .in = { "data.providerModelMetrics.*.metrics.usage.inputTokens" },
	  .out = { "data.providerModelMetrics.*.metrics.usage.outputTokens" } },
	{ .name = "bash", .words = { "-lc", BATCH_PROMPT } },
};

const struct batch_agent *batch_agent_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(agents); i++)
		if (streq(agents[i].name, name))
			return &agents[i];
	return NULL;
}

/* The sum of the numbers at a path; "*" is each of a list. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the paths of the table above */
static uint64_t sum_at(const json_t *j, const char *path)
{
	const size_t n = strcspn(path, ".");
	uint64_t sum = 0;
	char name[64];

	if (!*path)
		return json_is_integer(j) && json_integer_value(j) > 0
			       ? (uint64_t)json_integer_value(j)
			       : 0;
	if (n == 1 && *path == '*') {
		for (size_t i = 0; i < json_array_size(j); i++)
			sum += sum_at(json_array_get(j, i), path + n + (path[n] == '.'));
		return sum;
	}
	(void)snprintf(name, sizeof(name), "%.*s", (int)n, path);
	return sum_at(json_object_get(j, name), path + n + (path[n] == '.'));
}

static uint64_t sum_all(const json_t *j, const char *const *paths, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n && paths[i]; i++)
		sum += sum_at(j, paths[i]);
	return sum;
}

static void take_line(const struct batch_agent *a, const char *line, size_t n,
		      struct batch_tokens *t)
{
	json_t *j = json_loadb(line, n, 0, NULL);
	const char *type = json_string_value(json_object_get(j, "type"));

	if (type && streq(type, a->event)) {
		const uint64_t in = sum_all(j, a->in, ARRAY_SIZE(a->in));
		const uint64_t out = sum_all(j, a->out, ARRAY_SIZE(a->out));

		t->in = a->adds ? t->in + in : in;
		t->out = a->adds ? t->out + out : out;
		t->known = t->in || t->out;
	}
	json_decref(j);
}

struct batch_tokens batch_tokens(const struct batch_agent *a, const char *text, size_t n)
{
	struct batch_tokens t = { 0 };

	while (a && a->event && n) {
		const char *end = memchr(text, '\n', n);
		const size_t len = end ? (size_t)(end - text) : n;

		/* the word is looked for first: most lines are something else, and parsing costs */
		if (len <= BATCH_LINE_MAX && memmem(text, len, a->event, strlen(a->event)))
			take_line(a, text, len, &t);
		text += len + (end != NULL);
		n -= len + (end != NULL);
	}
	return t;
}
