#pragma once
/* A file tree sent and received as a copy stream (docs/protocol/ctl.md, "Copy stream").
 *
 * Used by the guest's init, in a forked child, and by bac cp. The receiver takes every byte of the
 * stream for hostile: whatever comes, nothing outside the destination is touched, memory stays
 * flat, and a file is under its final name as a whole or not at all. Both block until the stream
 * ends; descriptors that do not block are waited for. SIGPIPE must be ignored. */
#include <sys/types.h>

#include "base/err.h"
#include "wire/copy.h"

/* What went over, and what did not. */
struct tree_count {
	uint64_t files, dirs, links; /* hard links count as links */
	uint64_t bytes;              /* of content; holes do not count */
	uint64_t skipped;            /* FIFOs, sockets and devices, which are never copied */
};

/* What a source is called in the stream: 1 and the last component of path in ret_name, or 0 for a
 * path that means the content of a directory ("/", or ending in "/.", "." or ".."). -EINVAL for an
 * empty path, -ENAMETOOLONG. Touches no file. */
int tree_source_name(const char *path, char ret_name[COPY_NAME_MAX + 1]) _must_check_;

struct tree_send_opts {
	bool follow;  /* if path itself is a symbolic link: send what it points to */
	bool content; /* path must be a directory; send what is in it (docker cp's SRC/.), which is
		       * also done if tree_source_name() says so */
};

/* Send path, and everything below it if it is a directory. Links below path are sent as links. An
 * entry that vanishes before its turn is left out. What goes wrong at the source (missing,
 * unreadable, a file that shrinks while it is read, a path in the stream over WIRE_PATH_MAX) is
 * told to the receiver with an ERROR record.
 * 0, or -errno with *e set; -EPIPE: the receiver is gone, and knows better why. *ret_count (may be
 * NULL) is set in any case. */
int tree_send(int out_fd, const char *path, const struct tree_send_opts *o,
	      struct tree_count *ret_count, struct err *e) _must_check_;

/* content and name are what the receiver asked for. A hostile sender that says otherwise could
 * choose which of the user's files is replaced, so its word for them is not taken. */
struct tree_recv_opts {
	bool content;       /* the stream is content only (SRC/.), as tree_source_name() says or as
			   * the user asked; a stream that is not what this says is refused */
	const char *name;   /* what the source is called inside dest, from tree_source_name(), in
			   * place of what the stream says; NULL: trust the stream */
	uint64_t max_bytes; /* of content, all files together; 0: no limit. -EFBIG beyond */
	uint64_t max_entries; /* files, directories and links; 0: no limit. -EFBIG beyond */
	bool to_dir;          /* dest is, or becomes, a directory; also when dest ends in '/' */
	bool set_owner;       /* what is made belongs to uid and gid; needs root */
	uid_t uid;
	gid_t gid;
};

/* Receive a tree to dest, by docker cp's rules:
 *
 *	dest is		file, link			directory		content (SRC/.)
 *	a directory	dest/NAME			dest/NAME		into dest
 *	missing		dest				dest			dest
 *	missing, to_dir	dest/NAME			dest			dest
 *	anything else	replaces it; refused: to_dir	refused			refused
 *
 * If dest is a symbolic link to a directory it stands for that directory; any other link is itself
 * replaced. Missing parents are made. Nothing below dest is followed: a directory of the stream
 * that meets a link or a file is refused, and so is a file or link that meets a directory or a
 * device. Directories that exist are merged and keep mode, owner and time; what is made gets them
 * from the stream (permission bits only, owner from o). With set_owner a file that takes another
 * one's place takes over its owner.
 *
 * A file is written beside its final name, hidden, and takes the name when it is complete and the
 * next record has come; so a copy that fails or is killed leaves every file old or new. What came
 * over whole before the failure stays.
 *
 * 0, or -errno with *e set: -EREMOTEIO: the sender failed, and e has its words; -ENODATA: the
 * stream ended early; -EPROTO: it is malformed. *ret_count (may be NULL) is set in any case. */
int tree_recv(int in_fd, const char *dest, const struct tree_recv_opts *o,
	      struct tree_count *ret_count, struct err *e) _must_check_;
