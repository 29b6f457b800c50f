/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vport.h: an interface as C drives it (struct weft_hot_port in weft/hot.h), and its
 * peers (struct weft_hot_path). Polling, giving receive buffers back, sending a short
 * message and ending plain operations need no Go; everything else is left to it,
 * where it was found. Mirrored by types vport and Peer.
 */
#ifndef WEFT_VPORT_H
#define WEFT_VPORT_H

#include "../../../include/weft/hot.h"
#include "eager.h"

/* What every message starts with, little endian (package verbs, packet.go). Behind one with
 * WEFT_MESSAGE_MORE in its kind another one follows in the same packet, at the next multiple of 8
 * bytes. */
struct weft_message_header {
	uint8_t id, head, kind, magic;
	uint32_t index;  /* of the sender among the receiver's peers, and a count (eager.h) */
	uint32_t seq;    /* position in the sender's queue */
	uint32_t length; /* of the payload */
	uint64_t header;
};

/* How long a message says it is. */
static inline uint64_t weft_message_bytes(const struct weft_message_header *h)
{
	return (uint64_t)sizeof(*h) + h->head + h->length;
}

#define WEFT_MESSAGE_MAGIC 0x57
#define WEFT_MESSAGE_USER 0 /* kind: for a handler */
#define WEFT_MESSAGE_MORE 0x80
#define WEFT_MESSAGE_IDS 32

/* Bits of weft_vpeer.blocked: C must not send. */
#define WEFT_PEER_UNREADY 1u /* the peer has not answered yet */
#define WEFT_PEER_FAILED 2u
#define WEFT_PEER_FENCED 4u /* something must end before */

struct weft_vport;

/* A peer. The fields of the lease are read and written by the progress lease's
 * holder only. */
struct weft_vpeer {
	struct weft_hot_path path;
	struct weft_vport *port;  /* immutable */
	struct weft_sendq *q;     /* of messages; immutable */
	_Atomic uint32_t blocked; /* WEFT_PEER_*; changed by any thread, sequentially consistent */
	_Atomic uint32_t window;  /* 1: the peer does not want eager payloads. By the service and the lease holder */
	_Atomic uint32_t index;   /* what our messages carry. Stored by the service before q runs */
	uint32_t qp_nums[2];      /* lease: of the queue pairs from which messages may come: current, former */
	uint32_t last_seq;        /* lease: position after the last message received */
	uint32_t heard;           /* lease: something came since Go's last check */
	uint32_t source;          /* lease: a message came */
	/* Messages that might be corked since the port's poll with this number. By the threads that post, one
	 * at a time (WEFT_HOLD_*). */
	uint32_t row;
	uint32_t poll;
	uint32_t bytes; /* of those that are corked, each a multiple of 8; as row. Too many after others have sent them */
	_Atomic uint32_t ring_taken; /* messages taken from the ring that the peer writes into (eager.h). By the lease holder (release), read by the thread that sends (acquire) */
	unsigned char *ring;    /* lease: NULL: it was given none */
	unsigned char *ring_at; /* lease: the slot that the next one comes to */
	uint8_t pad[32];
};

/* So many messages in a row go at once, those behind them may be corked. */
#define WEFT_ROW 8

/* What Go puts before a message's handler: room for head and payload. */
#define WEFT_SHORT (WEFT_SENDQ_SLOT - (int)sizeof(struct weft_message_header))

/* So many peers may have a ring. */
#define WEFT_EAGER_RINGS 8

struct weft_vport {
	struct weft_hot_port port;
	/* 1 while a thread polls: the lease holder, or one that asks whether there
	 * is something. Taken by compare-and-swap (acquire), given back by store
	 * (release). */
	_Atomic uint32_t polling;
	/* WEFT_CALL_*. Set by any thread, cleared by Go's progress; sequentially consistent. */
	_Atomic uint32_t calls;
	/* Arrivals and completions that were polled and are not dealt with. While it is 0 the thread that
	 * polls stores it, under polling, and else the lease holder: release, read with acquire. */
	_Atomic int64_t staged;
	struct weft_buffers buffers;
	/* The queues, the first for arrivals, with max places of done each; of queue
	 * q, done[q * max + next[q]] to [count[q]] are staged; count -1: broken. */
	struct weft_cq *cqs;
	struct weft_done *done;
	int32_t *count;
	int32_t *next;
	struct weft_send_cq **ends; /* what threads that post say of each queue, NULL for arrivals */
	uint32_t queues;
	uint32_t max;
	/* Receive buffers to be given back: the thread that polls, and the lease holder while
	 * staged is not 0. */
	uint32_t *free;
	uint32_t free_count;
	uint32_t buffer_count;
	_Atomic(struct weft_vpeer *) *peers; /* by index; Go: release */
	uint32_t peer_limit;
	uint32_t found_seq;       /* lease: of the message that next found */
	struct weft_vpeer *found; /* lease: its sender */
	uint32_t turn;            /* polls since one of all queues; by the thread that polls */
	uint32_t at;              /* lease: bytes of the first staged arrival that are dealt with */
	uint32_t found_bytes;     /* lease: of the message that next found, 0: it is its arrival's last */
	_Atomic uint32_t polls;   /* counts calls of next; stored by the lease holder, relaxed */
	/* Index plus one of the peer of which some messages are corked; exchanged by threads that post and
	 * the lease holder. */
	_Atomic uint32_t corked;
	uint32_t found_index;     /* lease: as found_seq */
	bool found_ring;          /* lease: the message that next found lies in its sender's ring */
	bool rings_had;           /* lease: the last message taken came by a ring */
	bool rings_due;           /* lease: the queues had something at their last poll, so the rings are next */
	uint8_t passed;           /* lease: polls of rings only since the queues were polled */
	uint32_t ring_turn;       /* lease: ring at which the next poll begins */
	uint32_t found_turn;      /* lease: that after the message that next found is taken */
	/* Peers that have a ring, NULL between them: stored by the thread that makes a peer (release), one at a
	 * time, and by the lease holder that takes it away; read by the lease holder (acquire). */
	_Atomic(struct weft_vpeer *) rings[WEFT_EAGER_RINGS];
	unsigned char copy[WEFT_EAGER_SLOT];        /* lease: of the message in a ring that next found */
};

_Static_assert(sizeof(struct weft_message_header) == 24, "mirrored by type message");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "messages are little endian");
_Static_assert(sizeof(struct weft_vpeer) == 128, "mirrored by type Peer");
_Static_assert(sizeof(struct weft_vport) == 416, "mirrored by type vport");

/* The functions of a port and of a path. */
void weft_vport_init(struct weft_vport *v);
void weft_vpeer_init(struct weft_vpeer *p, struct weft_vport *v);

/* Sends the corked messages. The caller holds the lease or says that it posts (struct
 * weft_epoch_reader), or no other thread posts or polls. */
void weft_vport_flush(struct weft_vport *v);

/* Gives buffers back and stages what the queues have. Nothing is staged, and the
 * caller has polling. Queues without a completion that was asked for are passed
 * by seven times in eight, unless all of them are to be polled: only failures
 * are there. False: a queue is broken. */
bool weft_vport_poll(struct weft_vport *v, bool all);

/* Stages what the queues of what was posted have, while arrivals are staged. None
 * of these queues has anything staged, and the caller has polling and the lease.
 * False: a queue is broken. */
bool weft_vport_poll_ends(struct weft_vport *v);

#endif
