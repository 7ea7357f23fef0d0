/* Walking the tables of commands, for whatever prints all of them. */
#include "cli/walk.h"

#include <stdio.h>

void walk_init(struct walk *w, const struct cmd *cmds)
{
	*w = (struct walk) { .depth = 1 };
	w->at[0] = cmds;
}

const struct cmd *walk_next(struct walk *w)
{
	while (w->depth) {
		size_t level = w->depth - 1, len = w->len[level];
		const struct cmd *c = w->at[level];

		if (!c->name) {
			w->depth--;
			continue;
		}
		w->at[level]++;
		if (c->hidden)
			continue;
		(void)snprintf(w->path + len, sizeof(w->path) - len, "%s%s", len ? " " : "",
			       c->name);
		if (c->subs && w->depth < WALK_DEPTH) {
			w->at[w->depth] = c->subs;
			w->len[w->depth++] = strlen(w->path);
		}
		return c;
	}
	return NULL;
}

const char *walk_usage(const char **p, char *dst, bool *ret_more)
{
	for (;;) {
		const char *word = *p + strspn(*p, " []");
		size_t len = strcspn(word, " ");
		char *dots;

		*p = word + len;
		if (!len || starts_with(word, "--"))
			return NULL;
		(void)snprintf(dst, WALK_WORD_MAX, "%.*s", (int)len, word);
		dst[strcspn(dst, "]")] = '\0';
		if (streq(dst, "OPTIONS"))
			continue;
		dots = strstr(dst, "...");
		*ret_more = dots;
		if (dots)
			*dots = '\0';
		if (dst[0])
			return dst;
	}
}
