#pragma once
/* The conversation between those who decide (bac-proxy, bac-supervisor) and bac-audit, which writes the receipts.
 *
 * A SEQPACKET socket each. A datagram is 1 to RECEIPT_BATCH records, at most RECEIPT_DATAGRAM_MAX bytes, and is answered by an ACK
 * (how many records of this socket have been written, in all) once they are in the file; one ACK may answer for several
 * datagrams. Who decides "allow" waits for the ACK before it acts on it: no record, no traffic. If the log cannot be written
 * (disk full), bac-audit answers nothing until it can, and says so to the supervisor (ALARM on its socket; code 0: it is
 * well again). A datagram that is not understood ends the conversation: bac-audit hangs up, and what came before it in the
 * same datagram is not written.
 *
 * Everything in a record is hostile to bac-audit: the sender may have been taken over. bac-audit sets time, sequence and hash
 * itself. Both sides are built from the same tree: the format is not kept compatible. */
#include "base/buf.h"
#include "base/rdwr.h"

enum receipt_event { RECEIPT_DECISION = 1, RECEIPT_END = 2, RECEIPT_NOTE = 3 };
enum receipt_kind {
	RK_DNS = 1,
	RK_TCP,
	RK_TLS,
	RK_HTTP,
	RK_UDP,
	RK_ICMP,
	RK_IP,
	RK_FILE,
	RK_POLICY,
	RK_SANDBOX,
};
/* How it came: as sbx names it in the PROXY column. */
enum receipt_via {
	RV_NONE = 0,
	RV_TRANSPARENT,
	RV_FORWARD,
	RV_FORWARD_BYPASS,
	RV_NETWORK,
	RV_DNS,
};

/* The words for these in the log; NULL: there is no such number. "" for RV_NONE. */
const char *receipt_event_name(uint8_t event);
const char *receipt_kind_name(uint8_t kind);
const char *receipt_via_name(uint8_t via);

/* Bytes of one record; records of one datagram; bytes of each text. */
enum {
	RECEIPT_MAX = 4096,
	RECEIPT_BATCH = 32,
	RECEIPT_DATAGRAM_MAX = 64 * 1024,
	RECEIPT_HOST_MAX = 255,
	RECEIPT_ADDRESS_MAX = 63,
	RECEIPT_METHOD_MAX = 31,
	RECEIPT_TEXT_MAX = 1024, /* path, note */
	RECEIPT_RULE_MAX = 255,
	RECEIPT_REASON_MAX = 63,
};

struct receipt {
	uint8_t event, kind, via;
	bool allowed;
	uint16_t port;
	uint32_t count; /* how many alike are folded into this one (1 and more) */
	uint64_t flow;  /* joins a DECISION with its END; 0: none */
	uint64_t sent, received, duration_us; /* END: bytes from the guest, to the guest */
	const char *host;                     /* canonical, or the address */
	const char *address;                  /* dialled, as text; "" */
	const char *method, *path;            /* "" where unknown */
	const char *rule;                     /* id; "" */
	const char *reason;
	const char *note; /* what does not fit elsewhere: the SNI that did not match ... */
};

/* Append one record. 0, -ENOBUFS or -ENOMEM; *out is as before then. Texts that are too long are cut, NULL is "", a count
 * of 0 is 1. */
int receipt_put(struct buf *out, const struct receipt *r) _must_check_;

/* The next record of a datagram. WIRE_OK, WIRE_E_MALFORMED; texts are NUL-terminated and borrow from the bytes. *ret is set
 * only on WIRE_OK. */
int receipt_get(struct rd *in, struct receipt *ret);

/* ---- what bac-audit says: a datagram of 8 bytes is an ACK, a longer one an ALARM ---- */

enum { RECEIPT_ALARM_TEXT_MAX = 500, RECEIPT_ANSWER_MAX = 8 + 4 + RECEIPT_ALARM_TEXT_MAX + 1 };

struct receipt_answer {
	bool alarm;
	uint64_t count;   /* ACK: records of this socket that are written, in all */
	uint32_t code;    /* ALARM: errno, positive; 0: well again */
	const char *text; /* ALARM: for people; borrowed */
};

/* Bytes written into p, which has RECEIPT_ANSWER_MAX; a text that is too long is cut. */
size_t receipt_answer_put(const struct receipt_answer *a, uint8_t p[static RECEIPT_ANSWER_MAX]);
/* WIRE_OK or WIRE_E_MALFORMED. */
int receipt_answer_get(struct receipt_answer *ret, const void *p, size_t n);

/* ---- what bac-audit is told at its start ---- */

struct receipt_order {
	const char *sandbox; /* its name */
	uint64_t file_size;  /* bytes of one file of the log */
	uint64_t total_size; /* and of all */
};
enum { RECEIPT_ORDER_MAX = 256 };
int receipt_order_put(struct buf *out, const struct receipt_order *o) _must_check_;
int receipt_order_get(struct receipt_order *ret, const void *p, size_t n);

/* A datagram to bac-audit on the supervisor's socket that is this one byte, with one descriptor beside it: the socket of
 * a new proxy, in the place of the old one. Its count of records begins at 0. Not answered. */
enum { RECEIPT_NEW_PROXY = 0 };
