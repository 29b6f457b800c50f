/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Active messages that are known to the C path and to package provider.
 *
 * Of the two-sided protocol the 64-bit active message header is the tag (0 for
 * untagged messages). An id with DATA carries the remote CQ data as the first
 * 8 bytes of its payload.
 *
 * Of the one-sided protocol (provider/rma_wire.go) the header is the address in
 * the target's region, or the request that is answered.
 */
#ifndef WEFT_MESSAGE_H
#define WEFT_MESSAGE_H

#include <stdint.h>

enum weft_am {
	WEFT_AM_MSG = 1,       /* untagged, complete in one active message */
	WEFT_AM_MSG_DATA = 2,
	WEFT_AM_TAG = 3,
	WEFT_AM_TAG_DATA = 4,
	WEFT_AM_RTS = 5,       /* an announced message: head struct weft_rts_head */
	WEFT_AM_ACK = 7,       /* the header is the sender's request, head its outcome, 0: done */
	WEFT_AM_WRITE = 11,    /* head struct weft_write_head, then the payload */
	WEFT_AM_ATOMIC = 14,   /* head struct weft_atomic_head, then operands, then comparands */
	WEFT_AM_READ_DATA = 16, /* head the offset in what is read or fetched, then the bytes */
};

/* Announces a message of one element, which stays with its sender. Others have more behind it. */
struct weft_rts_head {
	uint64_t request;      /* of the sender, for the acknowledgement */
	uint64_t length;       /* bytes of the message */
	uint64_t data;
	uint32_t flags;        /* WEFT_RTS_*, and more that are Go's (provider/wire.go) */
	uint32_t count;        /* elements */
	uint64_t addr;         /* of the element in the sender's process */
	uint64_t element;      /* its bytes */
};

#define WEFT_RTS_TAGGED 1u
#define WEFT_RTS_DATA 2u /* data is valid */

struct weft_write_head {
	uint64_t key;
	uint64_t request;      /* 0: nobody waits for an answer */
	uint64_t flags;        /* WEFT_WRITE_* */
	uint64_t data;         /* this and length with WEFT_WRITE_DATA only */
	uint64_t length;       /* bytes of the whole operation */
};

#define WEFT_WRITE_HEAD 24u
#define WEFT_WRITE_HEAD_DATA 40u

#define WEFT_WRITE_DATA 2u
#define WEFT_WRITE_LAST 4u

struct weft_atomic_head {
	uint64_t key;
	uint64_t request;
	uint8_t op;            /* enum fi_op */
	uint8_t datatype;      /* enum fi_datatype */
	uint8_t kind;          /* WEFT_ATOMIC_* */
	uint8_t last;          /* of its operation */
	uint32_t count;        /* elements */
	uint64_t at;           /* where the result belongs in the operation's, bytes */
};

/* Kinds of atomics (package provider/atomics). */
#define WEFT_ATOMIC_PLAIN 0u
#define WEFT_ATOMIC_FETCH 1u
#define WEFT_ATOMIC_COMPARE 2u

_Static_assert(sizeof(struct weft_write_head) == WEFT_WRITE_HEAD_DATA, "as it is sent");
_Static_assert(sizeof(struct weft_rts_head) == 48, "as it is sent");
_Static_assert(sizeof(struct weft_atomic_head) == 32, "as it is sent");

#endif
