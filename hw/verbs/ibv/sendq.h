/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sendq.h: a queue pair's work requests on their way to it. C and Go both take
 * places, fill them and post. Mirrored by types SendQueue and Place; all of it
 * lies in a queue's block of memory (package verbs).
 */
#ifndef WEFT_SENDQ_H
#define WEFT_SENDQ_H

#include <stdatomic.h>
#include <stdbool.h>

#include "ibv.h"

/* States of run. */
#define WEFT_SENDQ_STOPPED 0u /* no thread posts: not connected */
#define WEFT_SENDQ_IDLE 1u    /* a thread that has something to post may take it */
#define WEFT_SENDQ_BUSY 2u    /* a thread posts */

/* In tail: no place may be claimed any more. */
#define WEFT_SENDQ_CLOSED (1ull << 63)

/* Places that only control operations get. */
#define WEFT_SENDQ_RESERVE 4

/* What C knows of an operation. Filled by the thread that claimed the place, before ready
 * is stored (release); read by the holder of run, then by the lease holder. */
struct weft_place {
	_Atomic uint64_t ready; /* the position plus one when it may be posted */
	uint8_t signal;         /* it writes a completion */
	uint8_t weight;         /* toward the next signaled operation */
	uint8_t plain;          /* a message in its slot: no caller waits for its end, and nothing is to be given back then */
	uint8_t joined;         /* messages before it that go in one operation with it (join.c); by the holder of run */
	int32_t bounce;         /* buffer to be freed, -1: none */
};

/* A completion queue for what is posted. An operation is posted only when its
 * completion has a place, because a queue pair that breaks completes all its
 * operations. */
struct weft_send_cq {
	_Atomic int64_t used; /* operations posted and not ended: by threads that post and the lease holder, sequentially consistent */
	int64_t size;         /* immutable */
	/* Completions that were asked for and have not come: threads that post add, the thread that polls takes away
	 * those that say success, relaxed. After a queue pair has failed it stays too high. */
	_Atomic int64_t signaled;
	/* The port's calls, NULL without one: immutable. A thread that finds no room sets WEFT_CALL_POST there. */
	_Atomic uint32_t *calls;
	uint8_t pad[32];
};

/* Bits of weft_vport.calls. */
#define WEFT_CALL_GO 1u   /* Go has something to do */
#define WEFT_CALL_POST 2u /* and something is ready that found no room in a completion queue */

/* tail counts claimed places, posted those that the queue pair has, head those
 * that have ended: head <= posted <= tail <= head + depth. Positions never wrap;
 * a place is position & mask. */
struct weft_sendq {
	_Atomic uint64_t tail;  /* claimed by compare-and-swap by any thread, sequentially consistent */
	uint8_t pad0[56];
	_Atomic uint64_t head;  /* stored by the lease holder (release), read by the thread that claims (acquire) */
	_Atomic uint32_t run;   /* WEFT_SENDQ_*: taken by compare-and-swap (acquire), given back by store (release) */
	_Atomic uint32_t broken; /* the queue pair refused a post; sequentially consistent */
	uint8_t pad1[48];
	/* immutable */
	uint64_t mask;
	uint64_t id;            /* of its completions: class << 62 | peer << 40 */
	struct weft_op *ops;
	struct weft_place *places;
	unsigned char *slots;   /* registered: WEFT_SLOT of each place */
	struct weft_send_cq *cq;
	uint32_t lkey;
	uint32_t join_bytes;    /* the most that goes in one operation of several messages; 0: none does */
	/* by the holder of run, or the thread that has stopped the queue */
	uint64_t eager_addr;    /* of the ring that the peer has given (eager.h), 0: none */
	uint64_t posted;
	struct ibv_qp *qp;
	uint32_t max_inline;    /* bytes */
	uint32_t gen;           /* of the queue pair, 8 bits: completions of older ones are ignored */
	int64_t weight;         /* since the last signaled operation */
	/* Position after the last signaled operation, and after the
	 * last message. Stored by the holder of run (sequentially consistent, release),
	 * read by the lease holder and the service. */
	_Atomic uint64_t last_signal;
	_Atomic uint64_t last_send;
	uint32_t eager_rkey;           /* by the holder of run, as eager_on: a message was sent by this queue pair */
	uint32_t eager_on;
	_Atomic uint32_t eager_sent;   /* messages written into the ring. By the holder of run, read by the lease holder; relaxed */
	_Atomic uint32_t eager_taken;  /* of those, the peer has taken. By the lease holder, read by the holder of run; relaxed */
};

/* The least multiple of 8 that is no less. */
static inline uint32_t weft_aligned(uint32_t n)
{
	return (n + 7) & ~7u;
}

/* Bytes of a place's slot: what an operation may copy. */
#define WEFT_SENDQ_SLOT 128

static inline unsigned char *weft_sendq_slot(const struct weft_sendq *q, uint64_t pos)
{
	return q->slots + (pos & q->mask) * WEFT_SENDQ_SLOT;
}

_Static_assert(sizeof(struct weft_place) == 16, "mirrored by type Place");
_Static_assert(sizeof(struct weft_send_cq) == 64, "mirrored by type SendCQ");
_Static_assert(sizeof(struct weft_sendq) == 256, "mirrored by type SendQueue");

/* Takes a place, leaving keep places free. False: there is none. */
bool weft_sendq_claim(struct weft_sendq *q, uint64_t keep, uint64_t *pos);

/* Gives the queue pair what is ready, unless another thread is at it: that
* thread checks again after it has given run back. True: nothing stays that the queue
 * pair could take. */
bool weft_sendq_post(struct weft_sendq *q);

/* The most messages in one operation. */
#define WEFT_SENDQ_JOIN 16

/* Has those of the next n operations that are plain, and follow one another, go in one (join.c).
 * The caller holds run. */
void weft_sendq_join(struct weft_sendq *q, int n);

/* Undoes that for all that have not ended, and has those sent that would be written (eager.h).
 * The queue is stopped. */
void weft_sendq_part(struct weft_sendq *q);

/* Ends the operations up to a successful completion, if they are plain. False:
 * nothing happened. The caller holds the lease. */
bool weft_sendq_finish(struct weft_sendq *q, uint64_t wr_id);

#endif
