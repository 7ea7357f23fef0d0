#pragma once
/* The frame: twelve bytes of header and a payload (docs/protocol/ctl.md). */
#include "base/buf.h"
#include "base/rdwr.h"
#include "wire/limits.h"

/* Answers of the parsers of this room. Everything but WIRE_OK and WIRE_AGAIN ends the
 * conversation. */
enum {
	WIRE_OK = 0,
	WIRE_AGAIN = 1, /* not all of it is there yet */
	WIRE_E_MALFORMED = 2,
	WIRE_E_TOO_LARGE = 3,
};

enum { WIRE_HEADER = 12 };

enum { WIRE_MORE = 1 }; /* flags */

/* Who speaks. */
enum wire_from {
	FROM_GUEST = 1,  /* init to supervisor */
	FROM_HOST = 2,   /* supervisor to init */
	FROM_CLIENT = 4, /* command to supervisor */
	FROM_DOOR = 8,   /* supervisor to command */
	FROM_ALL = 15,
};

/* type, number, who may send it, whether it belongs to the connection (0) or to a stream (1),
 * smallest and largest payload, may use MORE */
#define WIRE_TYPES(X) \
	X(HELLO, 1, FROM_GUEST, 0, 21, 512, 0) \
	X(CONFIG, 2, FROM_HOST, 0, 18, 8192, 0) \
	X(READY, 3, FROM_GUEST, 0, 8, 8, 0) \
	X(TIME, 4, FROM_HOST, 0, 8, 8, 0) \
	X(TIME_ASK, 5, FROM_GUEST, 0, 0, 0, 0) \
	X(PING, 6, FROM_HOST, 0, 8, 8, 0) \
	X(PONG, 7, FROM_GUEST, 0, 8, 8, 0) \
	X(SHUTDOWN, 8, FROM_HOST, 0, 4, 4, 0) \
	X(BYE, 9, FROM_GUEST, 0, 0, 0, 0) \
	X(KLOG, 10, FROM_GUEST, 0, 1, WIRE_FRAME_MAX, 0) \
	X(FAIL, 11, FROM_GUEST, 0, 5, 2048, 0) \
	X(START, 12, FROM_HOST, 0, 0, 0, 0) \
	X(MOUNT, 13, FROM_HOST | FROM_CLIENT, 0, 19, 8448, 0) \
	X(UMOUNT, 14, FROM_HOST | FROM_CLIENT, 0, 19, 8448, 0) \
	X(MOUNTED, 15, FROM_GUEST, 0, 13, 2048, 0) \
	X(EXEC, 16, FROM_HOST | FROM_CLIENT, 1, 0, WIRE_FRAME_MAX, 1) \
	X(COPY_IN, 17, FROM_HOST | FROM_CLIENT, 1, 17, 16384, 0) \
	X(COPY_OUT, 18, FROM_HOST | FROM_CLIENT, 1, 17, 16384, 0) \
	X(STARTED, 19, FROM_GUEST | FROM_DOOR, 1, 4, 4, 0) \
	X(EXIT, 20, FROM_GUEST | FROM_DOOR, 1, 9, 2048, 0) \
	X(DATA, 21, FROM_ALL, 1, 1, WIRE_FRAME_MAX, 0) \
	X(EOF, 22, FROM_ALL, 1, 0, 0, 0) \
	X(CREDIT, 23, FROM_ALL, 1, 4, 4, 0) \
	X(SIGNAL, 24, FROM_HOST | FROM_CLIENT, 1, 1, 1, 0) \
	X(WINSIZE, 25, FROM_HOST | FROM_CLIENT, 1, 4, 4, 0) \
	X(HANGUP, 26, FROM_HOST | FROM_CLIENT, 1, 0, 0, 0) \
	X(CHANGED, 27, FROM_HOST, 0, 14, 8192, 0) \
	X(TRUST, 28, FROM_HOST, 0, 5, 16389, 0) \
	X(ENV, 29, FROM_HOST, 0, 4, WIRE_FRAME_MAX, 0) \
	X(IMAGE, 30, FROM_HOST, 0, 4, WIRE_FRAME_MAX, 0) \
	X(NOTE, 31, FROM_GUEST, 0, 5, 2048, 0) \
	X(DOOR, 64, FROM_DOOR, 0, 13, 256, 0) \
	X(STATUS, 65, FROM_CLIENT, 0, 4, 4, 0) \
	X(STATUS_IS, 66, FROM_DOOR, 0, 37, 2048, 0) \
	X(WAIT, 67, FROM_CLIENT, 0, 0, 0, 0) \
	X(STOP, 68, FROM_CLIENT, 0, 5, 5, 0) \
	X(DONE, 69, FROM_DOOR, 0, 0, 0, 0) \
	X(FAILED, 70, FROM_DOOR, 0, 9, 2048, 0) \
	X(JOBS, 71, FROM_CLIENT, 0, 0, 0, 0) \
	X(JOB, 72, FROM_DOOR, 0, 35, 2048, 0) \
	X(JOB_KILL, 73, FROM_CLIENT, 0, 6, 256, 0) \
	X(ATTACH, 74, FROM_CLIENT, 1, 5, 256, 0) \
	X(JOB_IS, 75, FROM_DOOR, 1, 5, 256, 0) \
	X(POLICY, 76, FROM_CLIENT, 0, 0, 0, 0) \
	X(CREDENTIALS, 77, FROM_CLIENT, 0, 0, 0, 0)

#define X(name, num, from, stream, min, max, more) WIRE_##name = (num),
enum wire_type { WIRE_TYPES(X) };
#undef X

struct wire_frame {
	uint32_t stream;
	uint8_t type; /* enum wire_type, known and permitted */
	uint8_t chan; /* 0 to 2 */
	uint16_t flags;
	const uint8_t *data; /* borrowed from the bytes that were parsed */
	uint32_t len;
};

/* Find the first frame in n bytes that came from `from`. WIRE_OK: *ret and *ret_used (bytes that
 * the frame took) are set. WIRE_AGAIN: nothing is set. Anything else: the conversation ends. A frame
 * that is returned has a known type that this side may send, on a stream of the right sort, and a
 * payload within the type's limits. */
int wire_frame_parse(struct wire_frame *ret, size_t *ret_used, enum wire_from from, const void *p,
		     size_t n);

/* Fill a header. */
void wire_header_put(uint8_t dst[WIRE_HEADER], uint32_t stream, uint8_t type, uint8_t chan,
		     uint16_t flags, uint32_t len);

/* Append a whole frame. 0, -ENOBUFS, -ENOMEM. */
int wire_frame_add(struct buf *out, uint32_t stream, enum wire_type type, uint8_t chan,
		   const void *data, size_t len) _must_check_;

/* Append a message of any length as one or more frames with MORE. 0, -ENOBUFS, -ENOMEM, and then
 * nothing was appended. */
int wire_message_add(struct buf *out, uint32_t stream, enum wire_type type, const void *data,
		     size_t len) _must_check_;

/* "EXEC", or "?" */
const char *wire_type_name(uint8_t type);
