/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The shared-memory segment of one endpoint (hw/loopback).
 *
 * A segment is an owner-only file. Its owner creates it, peers map it to push
 * into its inbound ring and to return bounce buffers. Nothing in it is trusted
 * by a reader: geometry is copied out and checked once when it is mapped,
 * every other word is read once and checked before it is used.
 *
 *     header | ring tail | inbound ring slots | attach table | bounce buffers
 */
#ifndef WEFT_SEGMENT_H
#define WEFT_SEGMENT_H

#include "ring.h"

#define WEFT_SEG_MAGIC 0x31746665772d6766ull /* changes with the layout */
#define WEFT_SEG_VERSION 2

/* Bits of flags, in a segment's header and in an attach entry: the endpoint's
 * socket is bound to a wildcard address, so it answers at every address of this
 * host of these families. Its segment has a second name then, [::]:port if it
 * answers over IPv6, else 0.0.0.0:port. */
#define WEFT_SEG_ANY_IPV4 1u
#define WEFT_SEG_ANY_IPV6 2u

/* rx_state bits: what senders must know before each message. */
#define WEFT_RX_OPEN 1u      /* eager payloads are welcome */
#define WEFT_RX_WAITABLE 2u  /* the owner may sleep: look at armed after publishing */
#define WEFT_RX_GONE 4u      /* the endpoint was closed */

struct weft_segment {
	/* lines 0-2: written by the owner before the file gets its name, then immutable */
	uint64_t magic;
	uint32_t version;
	uint32_t pid;
	uint64_t bytes;            /* of the whole file */
	uint64_t cookie;           /* random, tells two segments of one name apart */
	uint64_t boot_id[2];
	uint64_t pid_namespace;    /* inode */
	uint64_t net_namespace;    /* inode */
	uint64_t start_time;       /* of the owner process, clock ticks since boot */
	uint32_t uid;
	uint32_t name_bytes;
	uint8_t name[28];          /* sockaddr that the endpoint is known by */
	uint32_t ring_log2;
	uint64_t ring_offset;
	uint64_t attach_offset;
	uint32_t attach_count;
	uint32_t bounce_count;
	uint64_t bounce_offset;
	uint32_t bounce_bytes;     /* payload bytes of one buffer */
	uint32_t bounce_stride;    /* bounce_bytes + one line, rounded to lines */
	uint32_t flags;            /* WEFT_SEG_* */
	uint8_t pad0[192 - 156];
	/* line 3: written by the owner (release), read by every sender (acquire) */
	_Atomic uint32_t rx_state;
	_Atomic uint32_t armed;    /* 1: the owner is about to sleep or sleeps */
	uint8_t pad1[64 - 8];
	/* line 4: written and read by senders, relaxed (see ring.h) */
	_Atomic uint64_t ring_tail;
	uint8_t pad2[64 - 8];
};

/* One message in the inbound ring: two cache lines, the first holds all of a
 * message of up to 40 bytes. The sequence word's owner is the sender's attach
 * index plus one. */
#define WEFT_SLOT_BYTES 128
#define WEFT_SLOT_BODY 104

struct weft_slot {
	_Atomic uint64_t seq;
	uint8_t am_id;             /* active message id, < 32 */
	uint8_t flags;             /* WEFT_SLOT_* */
	uint16_t head;             /* bytes in body before the payload (CQ data, protocol headers) */
	uint32_t length;           /* payload bytes, head not counted */
	uint64_t header;           /* the active message's 64-bit header */
	uint8_t body[WEFT_SLOT_BODY]; /* head, then the payload or struct weft_bounce_ref */
};

#define WEFT_SLOT_BOUNCE 1u  /* the payload is in a bounce buffer of the sender's segment */

/* Stands in body at the first multiple of 8 at or after head. */
struct weft_bounce_ref {
	uint32_t index;            /* of the buffer in the sender's segment */
	uint32_t reserved;
};

/* A sender's entry in the receiver's attach table. */
enum weft_attach_state {
	WEFT_ATTACH_FREE = 0,
	WEFT_ATTACH_CLAIMED = 1,   /* one 64-bit CAS by the sender writes state and pid */
	WEFT_ATTACH_READY = 2,     /* store release by the sender */
	WEFT_ATTACH_LEAVING = 3,   /* store release by the sender after its last message */
};                                 /* back to FREE: the owner, when no message of the sender is left */

struct weft_attach {
	_Atomic uint32_t state;
	uint32_t pid;
	uint64_t start_time;
	uint64_t cookie;           /* of the sender's segment */
	uint32_t name_bytes;
	uint8_t name[28];
	uint32_t flags;            /* WEFT_SEG_* */
	uint8_t pad0[64 - 60];
	_Atomic uint64_t words[2]; /* what sender and receiver agree on with the layers above (provider/assist.go) */
	uint8_t pad1[48];
};

/* A bounce buffer: one line of header, then the payload. */
struct weft_bounce {
	_Atomic uint32_t state;    /* 0 free, else attach index + 1 of the sender at the receiver that holds it */
	uint32_t peer;             /* sender's number of the receiver, to free it when that one dies */
	uint8_t pad[64 - 8];
	uint8_t payload[];
};

_Static_assert(sizeof(struct weft_segment) == 320, "five lines");
_Static_assert(sizeof(struct weft_slot) == WEFT_SLOT_BYTES, "two lines");
_Static_assert(sizeof(struct weft_attach) == 128, "two lines");

#endif
