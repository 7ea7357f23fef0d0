#pragma once
/* Which paths below a shared folder a guest may not change, or may not even open.
 *
 * Life: a builder collects rules, path_rules_freeze() turns it into rules, and rules never change
 * again. Nothing here makes a system call: paths are text that the caller got by walking real
 * directories from the share's root and following no symlink, so that a rule belongs to the real
 * file.
 *
 * A pattern is a path relative to the share's root, of components separated by '/':
 *     *            any run of bytes within one component, also none, also leading dots
 *     ?            one byte within a component (not one character)
 *     **           as a whole component: any number of directories, also none;
 *                  as the last one: everything below ("a/" + "**" is not "a" itself)
 * All other bytes stand for themselves: no sets, no braces, no escapes. A pattern without '/'
 * is a name and matches at any depth (".env" is "**" + "/.env"); "./.env" is the one at the root.
 * A rule that matches a directory covers everything below it, whatever exists there.
 * Refused: an empty pattern or component, '.' and '..' (but for the leading "./"), a leading or
 * trailing '/', a leading '~' or '!', '**' beside other bytes, and what is over a limit.
 *
 * Precedence
 *   1. Of the rules that match, the strictest holds: HIDE, then PROTECT.
 *   2. An exception (PATH_ALLOW) frees a path from a rule if it matches too, was added later
 *      than the rule, and is part of it: whatever the exception names, the rule names as well.
 *      ".env.example" frees from ".env.*" and from "*", not from "secrets/" + "**": who hides a
 *      folder hides it whole. A rule that is added later stands whatever was freed before it, so
 *      that defaults come first, then settings, then what is said on the command line.
 *   3. An exception with the very pattern of an earlier rule switches that rule off.
 *
 * Case: HIDE and PROTECT match letters of ASCII in either case always, since the share's file
 * system may do so and ".ENV" would otherwise be a way round ".env"; exceptions match as written.
 * Folding thus only ever makes a decision stricter. Other alphabets are compared byte by byte.
 *
 * Cost: a decision is linear in the path for any one set of rules, never backtracks over
 * components, allocates nothing, and takes some 60 KiB of stack at most. */
#include "base/base.h"
#include "base/err.h"

#define PATH_RULES_MAX   4096  /* rules in one set */
#define PATH_PATTERN_MAX 1024  /* bytes of one pattern */
#define PATH_PART_MAX    255   /* bytes of one component: no file has a longer name */
#define PATH_PARTS_MAX   8192  /* different beginnings of patterns, counted in components */
#define PATH_TEXT_MAX    65536 /* bytes of all patterns together */

enum path_rule_kind {
	PATH_FREE = 0,
	PATH_PROTECT, /* cannot be created, changed, removed, renamed, replaced or linked */
	PATH_HIDE,    /* moreover cannot be opened; its name may be listed */
	PATH_ALLOW,   /* an exception; only for path_builder_add(), never an answer */
};

struct path_builder;
struct path_rules;

struct path_answer {
	enum path_rule_kind kind;
	const char *rule;   /* the pattern that decided, as it was added; NULL if FREE */
	const char *origin; /* as it was added; NULL if FREE. Both owned by the rules */
};

/* 0 or -ENOMEM. */
int path_builder_new(struct path_builder **ret) _must_check_;
struct path_builder *path_builder_free(struct path_builder *b); /* NULL is fine; returns NULL */
DEFINE_FREEP(struct path_builder, path_builder_free)

/* Both texts are copied; origin ("default", "--hide") is cut after 31 bytes. 0; -EINVAL: the
 * pattern is refused, and the error names the column (from 1, in bytes) and what to write
 * instead; -E2BIG: over a limit of the set; -ENOMEM. After an error the builder is as before. */
int path_builder_add(struct path_builder *b, enum path_rule_kind kind, const char *pattern,
		     const char *origin, struct err *e) _must_check_;

/* The builder stays the caller's and may be freed at once. No rules is fine: all is FREE. 0,
 * -E2BIG (PATH_PARTS_MAX) or -ENOMEM. */
int path_rules_freeze(struct path_builder *b, struct path_rules **ret) _must_check_;
struct path_rules *path_rules_free(struct path_rules *r); /* NULL is fine; returns NULL */
DEFINE_FREEP(struct path_rules, path_rules_free)

/* Cannot fail. rel is len bytes, components separated by single '/', none at either end; len 0 is
 * the share's root, which no rule matches. What is no such path ("a//b", "../x", a NUL) is
 * hidden, and so is everything under rules of zeros. Safe for many threads at once. */
struct path_answer path_rules_decide(const struct path_rules *r, const char *rel, size_t len);

/* The strictest kind that a rule could give to something strictly below rel because of where rel
 * is; at least the kind of rel itself. Rules that hold at any depth (".env") are left out: they
 * hold wherever things go. For the root: the strictest of all rules.
 *
 * If it is not FREE, rel is on the way to something ruled (".git" and ".git/hooks" are on the way
 * to ".git/hooks/" + "**"): a directory may be made there, but no symlink may be created, linked
 * or renamed onto rel, since programs on the host would follow it, and no directory may be renamed
 * to or from there (path_rules_may_move() says the latter exactly). */
enum path_rule_kind path_rules_below(const struct path_rules *r, const char *rel, size_t len);

/* True if a directory may be renamed from one path to the other as far as what is inside is
 * concerned: each path below it gets the same answer at both places. Whether the directory itself
 * may move is path_rules_decide() of both ends. If not, EXDEV is the kind answer: mv(1) then
 * copies file by file and each is judged for itself. Not for use with files, whose two
 * decisions suffice. */
bool path_rules_may_move(const struct path_rules *r, const char *from, size_t from_len,
			 const char *to, size_t to_len);
