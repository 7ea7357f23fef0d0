#pragma once
/* Files and directories by names that somebody else chose, and by names that nobody has. */
#include <sys/types.h>

#include "base/base.h"

/* Open what path names below dir. No link is followed and nothing outside dir is reached, whatever
 * path says and whoever moves things meanwhile. A descriptor, or -errno: -ELOOP or -ENOTDIR for
 * a link where a directory should be. */
int tree_open_beneath(int dir, const char *path, int flags) _must_check_;

enum { TREE_TMP_MAX = 24 };

/* Another name that is not taken, most likely: ".bac-cp-" and six letters. */
void tree_tmp_name(char dst[TREE_TMP_MAX]);

/* A new file in dir, for writing, for us alone. Without a name (*tmp is "") if it can be given one
 * later, with tree_tmp_place(). A descriptor or -errno. */
int tree_tmp_open(int dir, char tmp[TREE_TMP_MAX]) _must_check_;

/* Give the nameless file fd a name, in place of whatever file has it. 0 or -errno. */
int tree_tmp_place(int fd, int dir, const char *name) _must_check_;

/* A file in dir that will never have a name. A descriptor or -errno. */
int tree_tmp_nameless(int dir) _must_check_;
