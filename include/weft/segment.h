/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The shared-memory segment of one endpoint (hw/loopback).
 *
 * A segment is an owner-only file. Its owner creates it, peers map it to push
 * into its inbound ring and to return bounce buffers. Nothing in it is trusted
 * by a reader: geometry is copied out and checked once when it is mapped,
 * every other word is read once and checked before it is used.
 *
 *     header | inbound rings | attach table | key table | claims | proofs | bounce buffers
 *
 * There are WEFT_LANES inbound rings, each a struct weft_lane and its slots. The
 * sender in attach entry i writes to ring i, all for itself; those behind the
 * last entries with a ring of their own share the last ring.
 */
#ifndef WEFT_SEGMENT_H
#define WEFT_SEGMENT_H

#include "ring.h"

#define WEFT_SEG_MAGIC 0x31746665772d6766ull
#define WEFT_SEG_VERSION 6 /* changes with the layout */

/* Bits of flags, in a segment's header and in an attach entry: the endpoint's
 * socket is bound to a wildcard address, so it answers at every address of this
 * host of these families. Its segment has a second name then, [::]:port if it
 * answers over IPv6, else 0.0.0.0:port. */
#define WEFT_SEG_ANY_IPV4 1u
#define WEFT_SEG_ANY_IPV6 2u

/* Bits of flags in a segment's header: its owner holds a lock in the directory
 * while it lives (internal/proclock), so that other pid namespaces know; and it is
 * reached from other network namespaces, where its segment has another name. */
#define WEFT_SEG_LOCKED 4u
#define WEFT_SEG_ACROSS 8u

/* Bytes of what is said about an authorisation key (hw/loopback/auth.go). */
#define WEFT_AUTH_BYTES 16

/* rx_state bits: what senders must know before each message. */
#define WEFT_RX_OPEN 1u      /* eager payloads are welcome */
#define WEFT_RX_WAITABLE 2u  /* the owner may sleep: look at armed after publishing */
#define WEFT_RX_GONE 4u      /* the endpoint was closed */

struct weft_segment {
	/* lines 0-2: written by the owner before the file gets its name, then immutable; up to
	 * start_time the same in every version, so that leftovers of all can be told */
	uint64_t magic;
	uint32_t version;
	uint32_t pid;
	uint64_t bytes;            /* of the whole file */
	uint64_t cookie;           /* random, tells two segments of one name apart */
	uint64_t boot_id[2];
	uint64_t pid_namespace;    /* inode */
	uint64_t net_namespace;    /* inode */
	uint64_t start_time;       /* of the owner process, and what it runs (internal/proc) */
	uint32_t uid;              /* as the user namespace above the owner's numbers it */
	uint32_t name_bytes;
	uint8_t name[28];          /* sockaddr that the endpoint is known by */
	uint32_t ring_log2;        /* slots of each inbound ring */
	uint64_t ring_offset;      /* of the first; the stride is sizeof(struct weft_lane) and the slots */
	uint64_t attach_offset;
	uint32_t attach_count;
	uint32_t bounce_count;
	uint64_t bounce_offset;
	uint32_t bounce_bytes;     /* payload bytes of one buffer */
	uint32_t bounce_stride;    /* bounce_bytes + one line, rounded to lines */
	uint32_t flags;            /* WEFT_SEG_* */
	uint32_t key_count;        /* a power of two, or 0: no region is published */
	uint32_t number;           /* among the endpoints of one sockaddr */
	uint64_t key_offset;       /* the claims follow the keys */
	uint64_t auth_offset;      /* of the proofs, WEFT_AUTH_BYTES each */
	uint32_t auth_count;       /* authorisation keys of the owner; 0: none */
	uint32_t reserved;
	/* line 3: written by the owner (release), read by every sender (acquire) */
	_Atomic uint32_t rx_state;
	_Atomic uint32_t armed;    /* 1: the owner is about to sleep or sleeps */
	uint8_t pad1[64 - 8];
	/* line 4: raised by each new sender before its first message (CAS), and by the owner for
	 * senders that it finds in the attach table. Loaded by pollers of the owner, relaxed. */
	_Atomic uint32_t lanes;    /* inbound rings in use: the first so many */
	uint8_t pad2[64 - 4];
};

/* Inbound rings of a segment: seven that belong to one sender each, and one for
 * all others. Nobody shares a ring as a rule, so a sender that posts from one
 * thread needs no locked instruction; and eight are few enough to poll. */
#define WEFT_LANES 8

/* What stands before the slots of an inbound ring. */
struct weft_lane {
	_Atomic uint64_t tail;     /* written and read by the ring's senders, relaxed (see ring.h) */
	_Atomic uint64_t free;     /* of a ring with one sender: positions that are free end here (cabi/lane.h); his, relaxed */
	uint8_t pad0[128 - 16];
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
	uint32_t number;           /* of the sender's segment */
	_Atomic uint64_t words[4]; /* what sender and receiver agree on with the layers above (provider/claimword.go) */
	uint8_t auth[WEFT_AUTH_BYTES]; /* says which authorisation key of the owner the sender has; 0: none */
	uint8_t pad1[16];
};

/* A bounce buffer: one line of header, then the payload. */
struct weft_bounce {
	_Atomic uint32_t state;    /* 0 free, else attach index + 1 of the sender at the receiver that holds it */
	uint32_t peer;             /* sender's number of the receiver, to free it when that one dies */
	uint8_t pad[64 - 8];
	uint8_t payload[];
};

/* A published memory region: peers may read and write it by themselves. The
 * owner fills an entry and stores the state last (release); who uses it copies
 * it and looks at the state again. An entry stands within WEFT_KEY_PROBES of the
 * place that weft_key_place gives, cyclically. */
struct weft_key {
	_Atomic uint64_t state;    /* generation << 1 | published; changes with each use of the entry */
	uint64_t name;             /* the key that peers know */
	uint64_t addr;             /* of the first byte, in the owner's process */
	uint64_t base;             /* what peers call that address */
	uint64_t len;              /* bytes */
	uint32_t access;           /* WEFT_KEY_* */
	uint8_t pad[64 - 44];
};

#define WEFT_KEY_READ 1u
#define WEFT_KEY_WRITE 2u
#define WEFT_KEY_PROBES 16u

/* Says that a process is at a region now, so that its owner waits with the end
 * of the registration: claimed by one compare-and-swap of the word before the
 * region's state is looked at (sequentially consistent both), freed by a store
 * of 0 (release). A claim of a dead process counts for nothing. */
struct weft_claim {
	_Atomic uint64_t word;     /* process id << 32 | entry of the key table + 1 */
	_Atomic uint64_t start_time; /* of the process, 0 until it is stored */
	uint8_t pad[64 - 16];
};

#define WEFT_CLAIMS 64u

static inline uint32_t weft_key_place(uint64_t name, uint32_t count)
{
	return (uint32_t)((name * 0x9E3779B97F4A7C15ull) >> 32) & (count - 1);
}

_Static_assert(sizeof(struct weft_key) == 64, "one line");
_Static_assert(sizeof(struct weft_claim) == 64, "one line");
_Static_assert(sizeof(struct weft_segment) == 320, "five lines");
_Static_assert(sizeof(struct weft_lane) == 128, "two lines, which processors prefetch together");
_Static_assert(sizeof(struct weft_slot) == WEFT_SLOT_BYTES, "two lines");
_Static_assert(sizeof(struct weft_attach) == 128, "two lines");

#endif
