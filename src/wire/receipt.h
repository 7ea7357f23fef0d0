#pragma once
/* The conversation between those who decide (bac-proxy, bac-supervisor) and bac-audit, which writes the receipts.
 *
 * A SEQPACKET socket each. A datagram is 1 to RECEIPT_BATCH records, and answered by one ACK datagram (8 bytes, big endian:
 * how many records of this socket have been written, in all) once they are in the file. Who decides "allow" waits for the ACK before it
 * acts on it: no record, no traffic. If the log cannot be written (disk full), bac-audit answers nothing until it can, and says so to the supervisor
 * (ALARM on its socket: code and text; code 0: it is well again).
 * Everything in a record is hostile to bac-audit: the sender may have been taken over. bac-audit sets time, sequence and hash itself. */
#include "base/rdwr.h"
#include "base/buf.h"

enum receipt_event { RECEIPT_DECISION = 1, RECEIPT_END = 2, RECEIPT_NOTE = 3 };
enum receipt_kind { RK_DNS = 1, RK_TCP, RK_TLS, RK_HTTP, RK_UDP, RK_ICMP, RK_IP, RK_FILE, RK_POLICY, RK_SANDBOX };
/* How it came: as sbx names it in the PROXY column. */
enum receipt_via { RV_NONE = 0, RV_TRANSPARENT, RV_FORWARD, RV_FORWARD_BYPASS, RV_NETWORK, RV_DNS };

enum { RECEIPT_MAX = 4096, RECEIPT_BATCH = 32, RECEIPT_TEXT_MAX = 1024, RECEIPT_HOST_MAX = 255 };

struct receipt {
	uint8_t event, kind, via;
	bool allowed;
	uint64_t flow;       /* joins a DECISION with its END; 0: none */
	uint16_t port;
	uint32_t count;      /* how many alike are folded into this one (1 and more) */
	uint64_t sent, received, duration_us; /* END: bytes from the guest, to the guest */
	const char *host;    /* canonical, or the address */
	const char *address; /* dialled, as text; "" */
	const char *method, *path; /* "" where unknown */
	const char *rule;    /* id; "" */
	const char *reason;
	const char *note;    /* what does not fit elsewhere: the SNI that did not match ... */
};

/* Append one record. 0 or -ENOBUFS. Texts that are too long are cut. */
int receipt_put(struct buf *out, const struct receipt *r) _must_check_;
/* The next record of a datagram. WIRE_OK, WIRE_E_*; texts are NUL-terminated and borrow from the bytes. */
int receipt_get(struct rd *in, struct receipt *ret);
