#pragma once
/* The three ways in which a kit comes from elsewhere. Each puts its files below an empty directory, for kit_tree_take() to check: nothing that comes is run or followed. */
#include "base/err.h"
#include "kit/kit-ref.h"

/* What they work with. */
struct kit_fetch {
	const struct kit_ref *ref;
	const char *work; /* an empty directory for their own files, removed by the caller */
	const char *raw;  /* another, that takes the kit's */
	int raw_fd;       /* the same, open */
	const char *const *
		env; /* the way out, by settings: NAME=VALUE over our environment, NULL-terminated */
	const char *const *
		ca; /* files with authorities to trust besides the host's, NULL-terminated; not git */
};

/* *ret_text: the reference that names what was fetched, on the heap. */
int kit_fetch_git(const struct kit_fetch *f, char **ret_text, struct err *e) _must_check_;
int kit_fetch_oci(const struct kit_fetch *f, char **ret_text, struct err *e) _must_check_;
/* The ZIP that fd has. */
int kit_fetch_zip(int fd, const char *raw, struct err *e) _must_check_;
/* The tar archive that fd has, compressed or not. */
int kit_fetch_tar(int fd, const char *raw, struct err *e) _must_check_;
