#pragma once
/* A text file of path rules: one rule a line, "hide PATTERN", "protect PATTERN", "allow PATTERN".
 *
 * The pattern is the rest of the line, without blanks at its end; patterns and precedence are in
 * policy/path.h. Lines that are blank or begin with '#' say nothing. Lines end with LF or CR LF. */
#include "policy/path.h"

#define PATH_FILE_MAX (256UL * 1024) /* bytes */

/* Add the rules of n bytes of text. 0, or what path_builder_add() answers, with line and column
 * in the error; -EINVAL too for an unknown word or a NUL. After an error the rules of the lines
 * before it have been added: give the builder up. */
int path_file_add(struct path_builder *b, const char *text, size_t n, const char *origin,
		  struct err *e) _must_check_;

/* The rules that hold if nobody says otherwise: data/policy/paths, origin "default". Add them first. */
int path_file_add_defaults(struct path_builder *b, struct err *e) _must_check_;
