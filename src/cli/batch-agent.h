#pragma once
/* Agents without a terminal: which words make each do one task and end, and what its transcript says of tokens. */
#include "base/base.h"

enum { BATCH_WORDS_MAX = 12 };

/* A word that is this text stands for the prompt. */
#define BATCH_PROMPT "{prompt}"

struct batch_agent {
	const char *name; /* of its program: the first word of a kit's entrypoint */
	const char *words[BATCH_WORDS_MAX]; /* behind the entrypoint; NULL-terminated */
	/* The transcript has a JSON object a line. The events of this type say how many tokens were used: each adds to them, or the last has all. */
	const char *event;
	bool adds;
	const char *in[4], *out[2]; /* members, "a.b.*.c"; NULL-terminated */
};

/* NULL: not one that is known. */
const struct batch_agent *batch_agent_find(const char *name);

struct batch_tokens {
	bool known;
	uint64_t in, out;
};

/* Tokens of a transcript, hostile bytes: lines of more than BATCH_LINE_MAX bytes and what is no JSON do not count. */
enum { BATCH_LINE_MAX = 4 * 1024 * 1024 };
struct batch_tokens batch_tokens(const struct batch_agent *a, const char *text, size_t n);
