#pragma once
/* What runc is told of a container (config.json of the OCI runtime specification, version 1) or of one more process in it: a list of
 * mounts and an environment, which get entries at their end. All else of the text stays as it is, byte for byte. */
#include "base/buf.h"

enum {
	SPEC_MAX = 4 * 1024 * 1024, /* longer texts are not read */
	SPEC_DEPTH = 64,
	SPEC_PATH_MAX = 4096,
	SPEC_NAMES_MAX = 32,
};

enum spec_kind { SPEC_CONTAINER, SPEC_PROCESS };

/* An array of the text. */
struct spec_list {
	bool there, empty;
	size_t end; /* offset of its "]" */
};

struct spec {
	struct spec_list mounts, env;
	char root[SPEC_PATH_MAX]; /* "" if the text does not say it, or it is too long */
	uint32_t has;             /* bit i: the environment has names[i] */
	bool dev;                 /* /dev is a file system of the container's own (tmpfs) */
	bool taken;               /* something is mounted at `where` */
};

/* names: of variables, at most SPEC_NAMES_MAX. where: an absolute path, as mounts are written. 0; -EFBIG; -EBADMSG: not JSON, or one of the
 * parts that are looked at is not what it must be, or is there twice. */
int spec_read(struct spec *ret, enum spec_kind kind, const char *text, size_t n,
	      const char *const *names, size_t n_names, const char *where) _must_check_;

/* The text with these entries more. mount: a JSON object; env: JSON strings with commas between them; NULL or "": none. A list that is not there gets
 * none. 0 or what buf_add() said. */
int spec_write(struct buf *out, const struct spec *s, const char *text, size_t n, const char *mount,
	       const char *env) _must_check_;

/* Append a JSON string. */
int spec_quote(struct buf *out, const char *s) _must_check_;
