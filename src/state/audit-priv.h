#pragma once
/* What the files of the log share. */
#include "state/audit.h"

/* "000001.jsonl" */
enum { AUDIT_FILE_MAX = 32 };
const char *audit_file_name(char dst[static AUDIT_FILE_MAX], uint64_t number);

/* The numbers of all files in dir, ascending, on the heap. 0 or -errno. */
int audit_files(int dir, uint64_t **ret, size_t *ret_n);

/* Below dir and through no link. A descriptor or -errno. */
int audit_open(int dir, const char *name, int flags);

/* SHA-256 in hex, with a NUL. */
void audit_hash(const void *p, size_t n, const void *q, size_t m, char ret[static AUDIT_HASH + 1]);

extern const char audit_zeros[AUDIT_HASH + 1]; /* prev of the first record */
