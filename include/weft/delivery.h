/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a call of the data plane (package dataplane) that takes in arrivals shares with the shim that makes it.
 */
#ifndef WEFT_DELIVERY_H
#define WEFT_DELIVERY_H

#include "hot.h"

/* Where a call of fi_cq_read has completions put: its caller's array. What is delivered on the way goes there without
 * a detour by the queue. */
struct weft_reader {
	struct weft_hot_cq *cq;
	void *buf;             /* where the next entry goes, in the queue's format */
	uint64_t *src;         /* where its source goes, or NULL */
	size_t left;           /* entries that fit */
};

/* What a delivery asks of the shim before it goes on. */
enum weft_delivery_code {
	WEFT_DELIVERY_DONE = 0,       /* nothing: all that is here is taken in */
	WEFT_DELIVERY_GO = 1,         /* the runtime is to make progress: what comes next is not for the data plane */
	WEFT_DELIVERY_ONE_SIDED = 2,  /* serve the one-sided operations at the head of the ring */
	WEFT_DELIVERY_ACK = 3,        /* take the acknowledgement at the head of the ring */
	WEFT_DELIVERY_READ = 4,       /* read the announced message; then say so in read */
	WEFT_DELIVERY_SETTLE = 5,     /* the runtime gives the message to the receive that it matched */
	WEFT_DELIVERY_COMPLETE = 6,   /* the runtime writes entry to the queue, whose ring is full */
};

/* Bits of weft_delivery.todo: what the shim does when the delivery has ended. */
#define WEFT_TODO_WAKE_CQ 1u
#define WEFT_TODO_WAKE_CNTR 2u
#define WEFT_TODO_TRIGGERED 4u

/* A delivery: the arrivals of one endpoint, under the lease of its receive context. The shim sets ep, reader and, to
 * 0, begun to bytes and addr but for what is the data plane's, and calls again after each code but DONE and GO. */
struct weft_delivery {
	struct weft_hot_ep *ep;
	struct weft_reader *reader;  /* for receives, NULL: the queue */
	uint32_t begun;              /* data plane only: how far it is */
	uint32_t ring;               /* the inbound ring at hand */
	uint32_t rings;              /* data plane only: how many are left, this one included */
	uint32_t budget;             /* data plane only: how many more arrivals are taken from this ring */
	uint32_t todo;               /* WEFT_TODO_* */
	uint32_t worked;             /* 1: something was taken in */
	uint32_t finish;             /* data plane only: the message at hand is done with after the code */
	uint32_t read;               /* with READ: 1 when the message is in the receive's buffer */
	uint64_t messages, bytes;    /* delivered */
	/* the message at hand */
	uint64_t payload;            /* address; with READ in the sender's process */
	uint64_t length;             /* bytes */
	uint64_t tag;
	uint64_t data;
	uint64_t request;            /* with READ: the sender's */
	uint64_t addr;               /* of the sender, plus one */
	uint64_t bounce;             /* address of the bounce buffer that holds the payload, 0: none */
	uint64_t recv;               /* address of the receive that it matched */
	uint64_t buf;                /* with READ: where it goes */
	uint32_t source;             /* number of the sender */
	uint32_t id;                 /* its identity */
	uint32_t flags;              /* WEFT_MESSAGE_* */
	uint32_t held;               /* data plane only: messages held when it began */
	struct weft_cqe entry;       /* with COMPLETE */
};

#define WEFT_MESSAGE_TAGGED 1u
#define WEFT_MESSAGE_DATA 2u   /* data is valid */

#endif
