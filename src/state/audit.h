#pragma once
/* The log of what a sandbox was allowed and refused: a chain of records in files of one directory, state/audit/ID. Each
 * record holds the hash of the one before, so that a change, a removal or another order shows. The format, exactly:
 * docs/protocol/audit.md.
 *
 * One process writes (bac-audit); anybody reads while it does. What is in the files is hostile to readers: texts come from
 * guests, and the files may have been tampered with. */
#include "io/fd.h"
#include "wire/receipt.h"

enum {
	AUDIT_LINE_MAX = 20 * 1024, /* bytes of a record with its newline */
	AUDIT_HASH = 64,            /* hex digits */
	AUDIT_PENDING_MAX = 1024 * 1024,
	AUDIT_TIME = 27, /* 2026-11-29T16:00:00.123456Z */
	AUDIT_NAME_MAX = 63,
};

#define AUDIT_HEAD "head" /* SEQ HASH of the newest record */
#define AUDIT_NAME "name" /* the sandbox's name: the directory outlives it */

/* ---- one record ---- */

struct audit_stamp {
	uint64_t seq;
	uint64_t real_ns;
	const char *sandbox;
	const char *prev; /* AUDIT_HASH digits */
};

/* What bac-audit writes of its own accord: a remark, or that a file went. */
struct audit_word {
	const char *event; /* "note" or "rotate" */
	const char *note;
	uint64_t file, first, last; /* of a file that went; 0: not a rotation */
	const char *last_hash;
};

/* The line with its newline into dst, and its hash with a NUL. Exactly one of r and x is not NULL. Bytes; 0: longer
 * than AUDIT_LINE_MAX, which no record of receipt_get() is. */
size_t audit_line(char dst[static AUDIT_LINE_MAX], const struct audit_stamp *s,
		  const struct receipt *r, const struct audit_word *x,
		  char ret_hash[static AUDIT_HASH + 1]);

/* A record as it is read. Texts are NUL-terminated UTF-8 in `text`, "" where there is none, and may hold control
 * characters: they are for escaping, not for printing. Numbers are 0 where there is none. */
struct audit_record {
	uint64_t seq, port, count, flow, sent, received, duration_ms, file, first, last;
	const char *time, *sandbox, *event, *kind, *via, *decision, *host, *address, *method, *path,
		*rule, *reason, *note, *last_hash, *prev, *hash;
	char text[AUDIT_LINE_MAX];
};

/* A line without its newline. 0 or -EBADMSG: not as audit_line() writes them. Does not judge the hash. */
int audit_record_parse(struct audit_record *ret, const char *line, size_t n) _must_check_;

/* Does the line (without its newline) have the hash that it says? */
bool audit_line_holds(const char *line, size_t n);

/* For people: what is not printable ASCII becomes \uXXXX, as in the file; a text that is too long is cut and ends in "...".
 * Returns dst. */
const char *audit_escape(char *dst, size_t max, const char *s);

/* ---- writing ---- */

struct audit_config {
	const char *sandbox; /* its name; copied */
	uint64_t
		file_size; /* a file is closed before it would become larger; at least AUDIT_LINE_MAX */
	uint64_t total_size; /* the oldest files go above this; at least two files' */
};
struct audit_chain;

/* Go on with the chain in dir (borrowed), or begin one. What the last writer left half-written is cut off, and what is
 * missing is noted in the chain. 0; -EBUSY: another process writes it; -errno. After this nothing but openat2() below dir,
 * fstat, read, write, pwrite, fdatasync, unlinkat and close is called. */
int audit_chain_open(int dir, const struct audit_config *c, struct audit_chain **ret) _must_check_;
/* Settles what it can, and waits until the disk has it. NULL is fine; returns NULL. */
struct audit_chain *audit_chain_close(struct audit_chain *c);
DEFINE_FREEP(struct audit_chain, audit_chain_close)

/* Take a record up, without a system call: it is in no file until audit_chain_flush(). 0; -ENOBUFS: flush first; -ENOMEM;
 * -EMSGSIZE. */
int audit_chain_add(struct audit_chain *c, const struct receipt *r, uint64_t real_ns) _must_check_;
int audit_chain_note(struct audit_chain *c, const char *note, uint64_t real_ns) _must_check_;
bool audit_chain_pending(const struct audit_chain *c);
/* True: a datagram of receipts can be taken up, whatever is in it. */
bool audit_chain_roomy(const struct audit_chain *c);

/* Write all that was taken up. 0: it is in the file, though not on the disk yet (a power cut may take the last half
 * minute; the end of a process does not). -errno (ENOSPC, EIO ...): call it again later; nothing is lost and nothing is
 * written twice. */
int audit_chain_flush(struct audit_chain *c) _must_check_;

/* The same, and head: it may stay behind for a while, at the price that a cut of the tail in that while does not show. */
int audit_chain_settle(struct audit_chain *c) _must_check_;
bool audit_chain_settled(const struct audit_chain *c);

/* ---- reading ---- */

struct audit_reader;
/* All records of the chain in dir (borrowed), oldest file first. 0, -ENOMEM or -errno. */
int audit_reader_new(int dir, struct audit_reader **ret) _must_check_;
struct audit_reader *audit_reader_free(struct audit_reader *r);
DEFINE_FREEP(struct audit_reader, audit_reader_free)

struct audit_place {
	uint64_t file; /* number of the file */
	uint64_t line; /* from 1 */
};
enum {
	AUDIT_END = 0,
	AUDIT_LINE = 1,
	AUDIT_BAD = 2 /* too long, or its file goes on without its end */
};
/* The next line without its newline, borrowed until the next call. AUDIT_LINE, AUDIT_BAD, AUDIT_END (for now: what is added
 * later is found by a later call) or -errno. */
int audit_reader_next(struct audit_reader *r, const char **ret_line, size_t *ret_n,
		      struct audit_place *ret_place);
/* At AUDIT_END: bytes of a line that is not finished. */
size_t audit_reader_rest(const struct audit_reader *r);

/* The file "head". 0, -ENOENT, -EBADMSG or -errno. */
int audit_head_read(int dir, uint64_t *ret_seq, char ret_hash[static AUDIT_HASH + 1]) _must_check_;

/* ---- judging ---- */

struct audit_verdict {
	bool broken;
	uint64_t records, first, last; /* that were read and hold */
	size_t rest;              /* bytes of an unfinished record at the end: no fault by itself */
	struct audit_place place; /* of the first fault; line 0: of the chain as a whole */
	uint64_t seq;             /* of the record there, 0 if it does not say */
	char what[200];           /* for people: plain ASCII */
};
/* 0 with a verdict, or -errno: it could not be read. */
int audit_verify(int dir, struct audit_verdict *ret) _must_check_;
