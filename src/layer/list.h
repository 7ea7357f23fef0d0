#pragma once
/* What an archive holds: files with the places of their contents, directories, symbolic links. */
#include "layer/source.h"

/* Members go to out, as layer_member records. If the archive is compressed or fd is a pipe, its plain bytes go to plain, where the
 * places count then, and *ret_unpacked is set. *ret_n members, *ret_size plain bytes. 0 or -errno with *e. */
struct list_result {
	bool unpacked;
	uint64_t n, size;
};
int list_archive(int fd, int out, int plain, const struct layer_limits *limits,
		 void (*on_progress)(struct source *s), struct list_result *ret, struct err *e)
	_must_check_;
