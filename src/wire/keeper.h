#pragma once
/* The conversations of bac-keeper, which alone sees the store's values and the CA's key: with its supervisor (descriptor 3), its minder (4), and, received from
 * the minder, bac-fetch and one proxy. All SEQPACKET; a datagram is a message; built from one tree.
 *
 * What the proxy says is hostile. It may ask for two things, and only what keeper's own copies of credentials (policy/cred.h) and network policy
 * (policy/net.h) allow, the ones in force or the ones before: anything else ends the conversation, and the proxy is replaced. A name that the earlier copy opened and
 * the later does not is answered with NO.
 *
 * bac-fetch runs as the user, not caged: it opens the store and runs its commands; it is asked by keys that are in the credentials only.
 *
 * The tokens of an OAuth service are two keys, SERVICE.access and SERVICE.refresh (secrets/store.h): a use of kind OAUTH has the one, one of kind TOKEN the
 * other. TOKENS, by a use of kind TOKEN, writes both, or only the first. When they expire is the guest's to know.
 *
 * A provider may take a refresh token once, and end the whole login when it comes twice. So the VALUE of a use of kind TOKEN is a turn: what is told is
 * what the store has then, and until OVER no other request of this sandbox or another is told it. */
#include <sys/types.h>

#include "wire/msg.h"
#include "wire/proxy.h"

/* type, number, sender (S supervisor, M minder, P proxy, F fetch, K keeper), descriptors */
#define KEEPER_TYPES(X) \
	X(CONFIG, 1, 'S', 0) /* text sandbox name, text sandbox id */ \
	X(CREDENTIALS, 2, 'S', \
	  1) /* number; memory file: cred_text. Every value that was kept is forgotten */ \
	X(POLICY, 3, 'S', 1) /* number; memory file: net_text */ \
	X(PING, 4, 'S', 0)   /* number */ \
	X(PROXY, 16, 'M', 1) /* the socket of a new proxy; the one before is closed */ \
	X(FETCH, 17, 'M', \
	  1) /* the socket of a new bac-fetch, likewise: what the one before had not answered has failed */ \
	X(LEAF, 32, 'P', 0) /* number, text host, be16 port: a certificate for that name */ \
	X(VALUE, 33, 'P', \
	  0) /* number, text use (id), text host, be16 port: the value of that use's key */ \
	X(TOKENS, 34, 'P', \
	  0) /* number, text use, text host, be16 port, bytes access, bytes refresh ("": as before), be64 expires (s since 1970, 0: not said), text scope: answered by KEPT */ \
	X(OVER, 35, 'P', \
	  0) /* number of a VALUE of kind TOKEN: that turn is over, or is not wanted any more. Others mean nothing */ \
	X(GOT, 48, 'F', \
	  0) /* number, bytes value, be64 seconds that it is good for: UINT64_MAX: until forgotten, 0: once */ \
	X(NOT, 49, 'F', 0)      /* number, text why */ \
	X(PUT_DONE, 50, 'F', 0) /* number */ \
	X(PONG, 64, 'K', 0)     /* to S: number */ \
	X(APPLIED, 65, 'K', \
	  0) /* to S: number of the credentials or policy, be32 0 or -errno, text: with an error there is no use, no rule */ \
	X(READY, 66, 'K', 0) /* to S: sealed */ \
	X(SAY, 67, 'K', 0)   /* to S: a line for the log */ \
	X(CA, 68, 'K', 0)    /* to S: text PEM of the CA's certificate, whenever it is new */ \
	X(MARKS, 69, 'K', 0) /* to S: bytes of a leak_set, whenever it is new */ \
	X(BREACH, 70, 'K', \
	  0) /* to S: what the proxy did that it must not: it was hung up on, and is to be replaced */ \
	X(LEAF_IS, 80, 'K', \
	  0) /* to P: number, bytes chain (DER certificates, each with be32 length), bytes key (DER, PKCS 8), be64 not after */ \
	X(VALUE_IS, 81, 'K', 0) /* to P: number, bytes */ \
	X(NO, 82, 'K', 0)       /* to P: number, be32 enum keeper_no, text for people */ \
	X(KEPT, 83, 'K', 0)     /* to P: number */ \
	X(GET, 96, 'K', 0)      /* to F: number, text key */ \
	X(PUT, 97, 'K', 0) /* to F: number, text key, bytes value: answered by PUT_DONE or NOT */ \
	X(PEEK, 98, 'K', \
	  0) /* to F: number, text key: as GET if the store has it as a value, else NOT with no words */ \
	X(TURN, 99, 'K', \
	  0) /* to F: number, text key: as GET, when nobody else has the turn. A NOT after GOT: it took too long, and is over */ \
	X(LOOSE, 100, 'K', 0) /* to F: number of a TURN: it is over */

enum keeper_no {
	KEEPER_NO_MISSING = 1,
	KEEPER_NO_UNAPPROVED,
	KEEPER_NO_FAILED,
	KEEPER_NO_LONGER,
	KEEPER_NO_N
};

enum {
	KEEPER_MSG_MAX = 320 * 1024,
	KEEPER_VALUE_MAX = 16 * 1024,
	KEEPER_TEXT_MAX = 1023,
	KEEPER_CHAIN_MAX = 16 * 1024,
	KEEPER_KEY_MAX = 4096,
	KEEPER_PEM_MAX = 16 * 1024,
	KEEPER_MARKS_MAX = PROXY_MARKS_MAX,
};

struct keeper_bytes {
	const uint8_t *p;
	uint32_t n;
};

struct keeper_msg {
	uint8_t type; /* enum keeper_type */
	uint32_t number;
	const char *
		text; /* CONFIG: name; NOT, NO, APPLIED, SAY: for people; LEAF, VALUE, TOKENS: host; CA: PEM; GET, PUT: key */
	const char *text2; /* CONFIG: id; VALUE, TOKENS: use; TOKENS has scope in text3 */
	const char *text3;
	uint16_t port;
	int32_t code;  /* APPLIED: 0 or -errno; NO: enum keeper_no */
	uint64_t when; /* GOT, LEAF_IS, TOKENS */
	struct keeper_bytes bytes, bytes2;
};

#define X(name, num, from, fds) KEEPER_##name = (num),
enum keeper_type { KEEPER_TYPES(X) };
#undef X

/* One datagram. Texts for people are cut. Bytes, or -ENOBUFS. Whoever put a value wipes p afterwards. */
ssize_t keeper_put(const struct keeper_msg *m, void *p, size_t max) _must_check_;
/* Take one apart that came from 'S', 'M', 'P', 'F' or 'K' with n_fds descriptors. WIRE_OK or WIRE_E_*; texts and bytes borrow. */
int keeper_parse(struct keeper_msg *ret, char from, const void *p, size_t n, size_t n_fds);
