#include "cli/batch-agent.h"

#include <stdio.h>

#include "base/check.h"

static void is(const char *agent, const char *text, bool known, uint64_t in, uint64_t out)
{
	const struct batch_agent *a = batch_agent_find(agent);
	struct batch_tokens t;

	check(a);
	t = batch_tokens(a, text, strlen(text));
	check(t.known == known && t.in == in && t.out == out);
}

int main(void)
{
	check(!batch_agent_find("") && !batch_agent_find("vi"));
	is("pi", "", false, 0, 0);
	is("pi", "hello\n{\"type\":\"message_end\"\n", false, 0, 0);
	is("pi",
	   "{\"type\":\"message_end\",\"message\":{\"usage\":{\"input\":10,\"cacheRead\":5,"
	   "\"output\":2}}}\n"
	   "{\"type\":\"message_update\",\"message\":{\"usage\":{\"input\":10,\"output\":2}}}\n"
	   "{\"type\":\"message_end\",\"message\":{\"usage\":{\"input\":20,\"output\":3}}}",
	   true, 35, 5);
	is("claude",
	   "{\"type\":\"result\",\"usage\":{\"input_tokens\":1,\"cache_read_input_tokens\":2,"
	   "\"output_tokens\":4}}\n"
	   "{\"type\":\"result\",\"usage\":{\"input_tokens\":7,\"output_tokens\":8}}\n",
	   true, 7, 8); /* the last has all */
	is("codex",
	   "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}\n",
	   true, 9, 1);
	is("gemini", "{\"type\":\"result\",\"stats\":{\"input_tokens\":9,\"output_tokens\":1}}\n",
	   true, 9, 1);
	is("opencode",
	   "{\"type\":\"step_finish\",\"part\":{\"tokens\":{\"input\":1,\"output\":2,\"cache\":{"
	   "\"read\":3,\"write\":4}}}}\n",
	   true, 8, 2);
	is("copilot",
	   "{\"type\":\"session.usage_checkpoint\",\"data\":{\"providerModelMetrics\":["
	   "{\"metrics\":{\"usage\":{\"inputTokens\":5,\"outputTokens\":1}}},{\"metrics\":{"
	   "\"usage\":{\"inputTokens\":6}}}]}}\n",
	   true, 11, 1);
	/* what an agent might say to be counted wrong, or to end us */
	is("claude",
	   "{\"type\":\"result\",\"usage\":[1,2]}\n{\"type\":\"result\",\"usage\":{\"input_"
	   "tokens\":-5,\"output_tokens\":\"9\"}}\n",
	   false, 0, 0);
	is("claude", "[[[[[[[\"result\"", false, 0, 0);
	is("bash", "{\"type\":\"result\",\"usage\":{\"input_tokens\":1}}\n", false, 0, 0);
	return 0;
}
