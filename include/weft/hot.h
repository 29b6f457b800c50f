/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The tables of plain words that let C post, poll and complete without
 * entering Go. Go allocates them off its heap and fills them (package hot
 * mirrors this file and a test compares the offsets); C reads them and writes
 * only what is marked so. All of it is private to the process.
 */
#ifndef WEFT_HOT_H
#define WEFT_HOT_H

#include "segment.h"
#include "stats.h"

/* ---- completion queues ---- */

/* A completion, one cache line. */
struct weft_cqe {
	_Atomic uint64_t seq;
	uint64_t context;
	uint64_t flags;            /* fi_cq flags; WEFT_CQE_ERROR */
	uint64_t len;
	uint64_t buf;              /* with WEFT_CQE_ERROR: address of a struct weft_cq_error */
	uint64_t data;
	uint64_t tag;
	uint64_t src;              /* fi_addr_t */
};

#define WEFT_CQE_ERROR (1ull << 63)

/* What fi_cq_readerr tells beyond the completion itself. Allocated and freed by Go. */
struct weft_cq_error {
	uint64_t buf;
	uint64_t olen;
	int32_t err;               /* positive FI_E* */
	int32_t prov_errno;
	uint64_t src;
};

#define WEFT_CQ_EXCLUSIVE 1u /* one thread at a time uses the queue (FI_THREAD_DOMAIN, COMPLETION) */
#define WEFT_CQ_WAITABLE 2u  /* has a wait object: look at armed after publishing */

struct weft_hot_ep;

struct weft_hot_cq {
	/* line 0: immutable after open, except eps */
	unsigned char *rings;      /* nrings blocks of ring_stride bytes: head line, tail line, slots */
	uint64_t ring_stride;
	uint32_t nrings;           /* power of two plus one: ring 0 is the progress engines', 1.. the stripes' */
	uint32_t log2_slots;
	uint32_t format;           /* enum fi_cq_format */
	uint32_t flags;            /* WEFT_CQ_* */
	uint64_t handle;           /* Go's */
	_Atomic(struct weft_hot_ep **) eps; /* Go: release; NULL-terminated, replaced as a whole, old ones live until close */
	uint64_t reserved;
	uint64_t pad0;
	/* line 1 */
	_Atomic uint32_t armed;    /* 1: a reader sleeps or is about to (set by waiters, cleared by who wakes them) */
	_Atomic uint32_t signaled; /* fi_cq_signal calls not yet seen by a waiter */
	_Atomic uint64_t overflow; /* Go: completions held off the rings because ring 0 was full */
	_Atomic uint32_t held;     /* 1: messages that complete here are held (WEFT_PATH_HELD). Set before the completion is published, cleared by who reads it and sends them; relaxed */
	uint8_t pad1[64 - 20];
};

struct weft_cq_ring {
	_Atomic uint64_t head;     /* consumers: CAS acq_rel; free running */
	uint8_t pad0[56];
	_Atomic uint64_t tail;     /* producers' hint */
	uint8_t pad1[56];
	/* slots follow */
};

/* ---- counters ---- */

#define WEFT_CNTR_TRIGGERS 4u /* something waits for the counter to reach a value */
#define WEFT_CNTR_BYTES 8u    /* bytes are counted, not operations */

struct weft_hot_cntr {
	_Atomic uint64_t value;    /* producers add, readers load; relaxed add, acquire load */
	_Atomic uint64_t errors;
	_Atomic(struct weft_hot_ep **) eps;
	_Atomic uint32_t armed;
	_Atomic uint32_t flags;    /* WEFT_CQ_WAITABLE, WEFT_CNTR_BYTES, immutable; WEFT_CNTR_TRIGGERS, by Go; seq_cst */
	uint64_t handle;
	uint8_t pad[24];
};

/* ---- receives ---- */

/* A posted receive on its way to the matcher, one cache line. */
struct weft_recv_entry {
	_Atomic uint64_t seq;
	uint64_t flags;            /* fi flags of the call | WEFT_RECV_* */
	uint64_t buf;              /* or address of an iov copy with WEFT_RECV_IOV */
	uint64_t len;              /* or iov count */
	uint64_t src;              /* fi_addr_t, FI_ADDR_UNSPEC for any */
	uint64_t tag;
	uint64_t ignore;
	uint64_t context;
};

#define WEFT_RECV_TAGGED (1ull << 63)
#define WEFT_RECV_IOV (1ull << 62)
#define WEFT_RECV_CANCEL (1ull << 61) /* context names the receive to cancel */
#define WEFT_RECV_WORK (1ull << 60)   /* context is a number of deferred work */
#define WEFT_RECV_DEVICE (1ull << 56) /* buf is, or holds, memory of a device: not for C */

#define WEFT_ATTENTION_GO 1u    /* work of Go's: pending sends, timers, ports that only Go looks at */
#define WEFT_ATTENTION_PORTS 2u /* the endpoints' ports (struct weft_hot_port) are looked at */

#define WEFT_EXCLUSIVE 1u /* FI_THREAD_DOMAIN or COMPLETION: no lease, no CAS inside the process */

/* A receive context: what one progress lease protects. */
struct weft_hot_rx {
	/* line 0: immutable after enable */
	struct weft_ring posts;    /* ring of struct weft_recv_entry; producers: any thread, consumer: lease holder */
	uint64_t handle;           /* Go's */
	uint32_t flags;            /* WEFT_EXCLUSIVE */
	uint32_t selective;        /* receives complete only with FI_COMPLETION */
	uint64_t op_flags;         /* rx_attr op_flags, for calls without flags */
	_Atomic(_Atomic uint32_t *) bell; /* word of the progress thread's bell, NULL: none. Go: release, last */
	uint32_t bell_event;       /* the descriptor that wakes it */
	uint32_t rest;             /* ms between two runs of the timers while C needs nothing of Go */
	/* line 1 */
	_Atomic uint32_t lease;    /* 0 free, 1 held: CAS acquire, store release */
	uint8_t pad1[60];
	/* line 2: written by the lease holder */
	_Atomic uint64_t posts_head; /* also by C (deliver.c) */
	_Atomic uint32_t want_posts; /* 1: unexpected messages are held, or a search or cancel was posted
	                                (who posts it sets this), so what is on the post ring is work */
	_Atomic uint32_t attention;  /* WEFT_ATTENTION_*: progress has work that no ring shows */
	uint32_t turn;               /* data plane only: inbound ring at which the next delivery begins */
	uint32_t timers;             /* C only: when the timers ran last, ms */
	uintptr_t receiver;          /* Go's dataplane.Receiver; immutable while the context is open, 0: none */
	uint8_t pad2[32];
};

/* A sender, by its attach index, as the receiver sees it: what C needs to
 * deliver its messages. Written and read under the progress lease, except that
 * addr is zeroed by whoever removes the address from the address vector. */
struct weft_hot_source {
	_Atomic uint64_t addr;     /* fi_addr_t plus one, 0: ask Go */
	unsigned char *bounce;     /* the sender's bounce buffers, NULL: ask Go */
	uint32_t bounce_count;
	uint32_t bounce_stride;
	uint32_t bounce_bytes;
	uint32_t context;          /* not 0: it is a context of a scalable endpoint, and addr does not lead to it */
	uint32_t id;               /* by which matching knows the sender */
	uint8_t pad0[28];
};

/* A sender behind a port to other hosts, as struct weft_hot_source. */
struct weft_hot_port_source {
	_Atomic uint64_t addr;
	uint32_t id;
	uint32_t context;
	uint32_t source;           /* number of the sender at the endpoint, which has several ports */
	uint32_t pad0[3];
};

/* ---- transmits ---- */

/* One fi_addr as an endpoint sees it, one cache line. Go fills the line, then
 * stores slots with release; C loads slots with acquire; NULL means: ask Go. */
struct weft_hot_peer {
	_Atomic(unsigned char *) slots; /* of the peer's inbound ring */
	_Atomic uint64_t *tail;
	_Atomic uint32_t *rx_state;     /* WEFT_RX_*, armed is the word after it */
	uint16_t log2_slots;
	uint16_t exclusive;             /* one thread at a time writes to this ring, nobody else does */
	uint32_t owner;                 /* our attach index at the peer plus one */
	uint32_t peer;                  /* the interface's number for the peer */
	_Atomic uint32_t link;          /* Go only: the endpoint's number for the peer plus one, 0 not resolved */
	_Atomic uint32_t pid;           /* of the peer, 0: its memory cannot be reached. C sets 0; relaxed */
	uint32_t key_count;             /* of keys, 0: the peer publishes no regions */
	const struct weft_key *keys;    /* the peer's; WEFT_CLAIMS claims follow */
	_Atomic uint64_t put;           /* position plus one of C's last unanswered write or atomic; relaxed */
};

/* What a thread that posts says about itself, one cache line: whether it may be
 * using what it has read in a line of struct weft_hot_peer (cabi/poster.c). */
struct weft_poster {
	_Atomic uint64_t posting;  /* odd: yes. Written by the thread; relaxed, then release */
	_Atomic uint32_t taken;    /* 1: a thread has this line */
	uint8_t pad0[52];
};

/* Milliseconds without a free bounce buffer after which messages that need one are announced,
 * as longer ones are: their receiver has not looked for as long. */
#define WEFT_STARVED_MS 8

/* A transmit stripe: what a thread leases while it uses a bounce buffer or a request. */
struct weft_hot_stripe {
	/* line 0: lease by CAS acquire, store release */
	_Atomic uint32_t lease;
	uint8_t pad0[60];
	/* line 1: used by the lease holder only */
	unsigned char *bounce;     /* this stripe's buffers */
	uint32_t bounce_first;     /* number of the first of them in the segment */
	uint32_t bounce_count;
	uint32_t bounce_next;
	uint32_t bounce_stride;
	uint32_t fetch_next;       /* of the stripe's part of fetches: where to look first */
	uint32_t starved;          /* since when no buffer was free, ms of CLOCK_MONOTONIC_COARSE; 0: one was */
	uint64_t pad2[4];
};

/* ---- ports to other hosts ---- */

/* A message, arrived or to be sent. Of one that has arrived nobody changes the
 * bytes any more. */
struct weft_port_message {
	uint64_t header;
	const unsigned char *head;    /* of an arrival: the payload comes behind it */
	const unsigned char *payload;
	uint32_t length;              /* of the payload, bytes */
	uint32_t source;              /* of an arrival: the port's number for the sender (hw.Source) */
	uint16_t head_bytes;
	uint8_t id;
	uint8_t hold;                 /* of one to be sent: WEFT_HOLD_* */
	uint8_t pad[4];
};

/* Whether a message may be held, to go in one packet with those that come behind it. */
#define WEFT_HOLD_NEVER 0
#define WEFT_HOLD_IN_ROW 1 /* if several were sent in a row since the port was looked at */
#define WEFT_HOLD_MORE 2   /* the next one is at hand (FI_MORE) */

/* What weft_hot_port.next finds. */
#define WEFT_PORT_EMPTY 0
#define WEFT_PORT_ARRIVAL 1
#define WEFT_PORT_GO 2 /* something that Go must deal with */

/* An interface to other hosts that C looks at and takes messages from, made by a
 * backend. Its functions belong to the progress lease, flush also to threads that say that they
 * post (struct weft_poster). */
struct weft_hot_port {
	int (*next)(struct weft_hot_port *port, struct weft_port_message *m); /* WEFT_PORT_*; the same message until it is taken */
	bool (*take)(struct weft_hot_port *port); /* the message that next found last is done with; whether another one is at hand */
	void (*flush)(struct weft_hot_port *port); /* sends what is held; next does, too */
	int (*glance)(struct weft_hot_port *port, struct weft_port_message *m); /* as next, of senders only whose messages ring no bell */
	_Atomic uint64_t taken;               /* messages so far; stored by the lease holder, relaxed */
	_Atomic uint32_t silent;              /* how many such senders there are: polls never pass the port by. By the backend; sequentially consistent */
	uint32_t pad0;
};

/* What weft_hot_path.send says. */
#define WEFT_PATH_SENT 0
#define WEFT_PATH_FULL 1 /* nothing happened; there is room later, after progress */
#define WEFT_PATH_GO 2   /* nothing happened; only Go can send now */
#define WEFT_PATH_HELD 3 /* it goes with what is sent behind it, or when the port is flushed */

/* The way to a peer over such an interface. Any thread may send that says that it
 * posts (struct weft_poster). */
struct weft_hot_path {
	int (*send)(struct weft_hot_path *path, const struct weft_port_message *m);
	uint32_t max;              /* bytes of head and payload; immutable */
	uint32_t pad0;
};

/* ---- one-sided operations ---- */

/* A region that peers may access, as C sees it, one line. Go fills the entry
 * and sets live last (release). After clearing it Go has all threads pass a
 * barrier and waits for those that are posting (hot.Grace) before the region
 * ends or the entry is used again; whoever uses a region says that it posts. An
 * entry stands within WEFT_KEY_PROBES of the place that weft_key_place gives. */
struct weft_hot_region {
	_Atomic uint32_t live;
	uint32_t access;           /* WEFT_KEY_* */
	uint64_t key;
	uint64_t addr;             /* of the first byte */
	uint64_t base;             /* what peers call that address */
	uint64_t len;              /* bytes */
	uint64_t pad[3];
};

/* The shortest write, in bytes, that the posting thread copies to the peer's memory: a peer that polls
 * takes in a shorter one faster than the kernel copies it. */
#define WEFT_COPY_MIN_WRITE 2048u

/* So many completions that nobody has read say that an application posts ahead. */
#define WEFT_LEND_AHEAD 2

/* The shortest copy, in bytes, that huge pages make faster: shorter ones do not count as use of
 * the memory (provider/heat.go). */
#define WEFT_HEAT_MIN 32768u

/* An operation whose answer C waits for, one line. Its id is WEFT_FETCH_ID, the
 * generation above bit 32, and its place. The holder of the stripe's lease takes
 * a free one; the progress lease's holder, C or Go, frees it. */
struct weft_hot_fetch {
	_Atomic uint32_t busy;     /* 1: in use. Stored with release by both */
	uint32_t generation;       /* raised by who takes it */
	uint64_t result;           /* where the answer goes */
	uint64_t bytes;            /* of it */
	uint64_t context;
	uint64_t dest;             /* fi_addr_t */
	const unsigned char *ring; /* slots of the peer's ring, which tells this peer from a later one */
	uint32_t completes;        /* 1: on the transmit queue */
	uint32_t pad0;
	uint64_t pad1;
};

#define WEFT_FETCH_ID (1ull << 63) /* no id of Go's has this bit */

#define WEFT_EP_EXCLUSIVE 1u   /* as WEFT_EXCLUSIVE */
#define WEFT_EP_TX_ALWAYS 2u   /* transmits complete unless told otherwise (no FI_SELECTIVE_COMPLETION) */
#define WEFT_EP_MATCHES 8u     /* its messages are matched with receives of weft's own, not with an owner's (fi_peer(3)) */
#define WEFT_EP_RX_SELECTIVE 16u /* receives complete only with FI_COMPLETION */
#define WEFT_EP_CTX_SHIFT 24   /* above it: how many of an fi_addr's high bits name a receive context */
#define WEFT_EP_FAST 4u        /* C may post: the endpoint is enabled, and no order has it wait (provider/rma_order.go) */

/* One of the endpoint's inbound rings. */
struct weft_inbound {
	struct weft_ring ring;       /* consumer's view; immutable after enable */
	_Atomic uint64_t head;       /* written by the lease holder, C or Go, read by pollers, relaxed */
	uint64_t pad0[4];
};

struct weft_hot_ep {
	/* line 0: immutable after enable */
	struct weft_hot_peer *peers; /* by fi_addr, rotated so that the receive context comes last */
	uint64_t peer_limit;
	struct weft_hot_cq *tx_cq;   /* NULL: none */
	struct weft_hot_cntr *tx_cntr;
	struct weft_hot_stripe *stripes;
	uint32_t stripe_mask;
	_Atomic uint32_t flags;      /* WEFT_EP_*; Go changes WEFT_EP_FAST, with release; relaxed loads do */
	uint32_t inject_max;         /* bytes */
	uint32_t eager_max;          /* bytes that go through one bounce buffer */
	uint64_t handle;             /* Go's */
	/* line 1 */
	weft_stat *stats_threads;    /* WEFT_STAT_LINES lines of counters (stats.h) */
	_Atomic(struct weft_hot_rx *) rx; /* Go: release; another one, which never has work, when the endpoint is closed */
	_Atomic uint32_t *lanes;     /* of the own segment */
	_Atomic uint32_t *rx_state;  /* of the own segment, armed is the word after it */
	struct weft_hot_source *sources; /* source_limit of them */
	struct weft_hot_cq *rx_cq;
	uint32_t source_limit;
	_Atomic uint32_t polled;     /* looks, up to WEFT_POLLED_ENOUGH; pollers add, a thread sets 0 */
	weft_stat *stats_rx;         /* the lease holder's counters; immutable after enable */
	/* line 2: one-sided operations, immutable after enable */
	const struct weft_hot_region *regions; /* what C may serve, NULL: nothing */
	uint32_t region_count;
	uint32_t fetch_count;        /* for each stripe; 0: C posts no one-sided operations */
	struct weft_hot_fetch *fetches;
	struct weft_hot_cntr *write_cntr;
	struct weft_hot_cntr *read_cntr;
	uint64_t copy_max;           /* bytes that a post may copy to or from a peer's memory (cabi/rma_copy.c) */
	uint64_t start_time;         /* of this process, as claims have it */
	uint32_t pid;                /* of this process */
	uint32_t lend_min;           /* bytes from which Go may lend a copy to its target, 0: none */
	/* line 3: immutable after enable, but for what two of them point at, and what Go and C count */
	struct weft_hot_port *port;      /* NULL: none that C looks at */
	_Atomic(struct weft_hot_path *) *paths; /* with port, by lines of peers: Go stores with release; NULL: ask Go */
	struct weft_hot_port_source *port_sources; /* with port, source_limit of them, by the port's numbers */
	_Atomic uint32_t lend_rest;     /* copies without asking; Go sets it, C counts down; all relaxed, and lost counts do not matter */
	uint32_t read_max;              /* bytes of an announced message that C reads from its sender's memory (cabi/announced.c); 0: none */
	uint64_t copied_max;            /* bytes that C copies to and from peers' memory before Go counts them; UINT64_MAX: all */
	_Atomic uint64_t copied;        /* those bytes; posting threads add, Go takes them away; all relaxed, and lost ones do not matter */
	_Atomic uint32_t port_active;   /* with port, 1: polls look at it, and do until nothing is held there. Go stores; relaxed */
	uint32_t number;                /* among the endpoints of its receive context */
	struct weft_hot_cntr *rx_cntr;  /* counts receives, NULL: none; stored once, under the lease after enable */
	struct weft_inbound inbound[WEFT_LANES];
};

/* So many looks at an endpoint since the progress thread asked last mean that the
 * application makes progress by itself. Without a thread the count stays there.
 * All its accesses are relaxed, and lost additions do not matter. */
#define WEFT_POLLED_ENOUGH 16

/* States of a progress thread's bell (package proxy). */
#define WEFT_BELL_AWAKE 0
#define WEFT_BELL_ASLEEP 1

_Static_assert(sizeof(struct weft_cqe) == 64, "one line");
_Static_assert(sizeof(struct weft_hot_cq) == 128, "two lines");
_Static_assert(sizeof(struct weft_cq_ring) == 128, "two lines");
_Static_assert(sizeof(struct weft_hot_cntr) == 64, "one line");
_Static_assert(sizeof(struct weft_recv_entry) == 64, "one line");
_Static_assert(sizeof(struct weft_hot_rx) == 192, "three lines");
_Static_assert(sizeof(struct weft_hot_source) == 64, "one line");
_Static_assert(sizeof(struct weft_hot_port_source) == 32, "half a line");
_Static_assert(sizeof(struct weft_hot_peer) == 64, "one line");
_Static_assert(sizeof(struct weft_poster) == 64, "one line");
_Static_assert(sizeof(struct weft_hot_stripe) == 128, "two lines");
_Static_assert(sizeof(struct weft_hot_region) == 64, "one line");
_Static_assert(sizeof(struct weft_hot_fetch) == 64, "one line");
_Static_assert(sizeof(struct weft_inbound) == 64, "one line");
_Static_assert(sizeof(struct weft_hot_port) == 48, "mirrored");
_Static_assert(sizeof(struct weft_hot_path) == 16, "mirrored");
_Static_assert(sizeof(struct weft_port_message) == 40, "mirrored");
_Static_assert(sizeof(struct weft_hot_ep) == 256 + 64 * WEFT_LANES, "four lines, and one per ring");

#endif
