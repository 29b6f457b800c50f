/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seam.h: how C calls the Go code of hw/cxi that sends a message and takes one in: through the trampoline of package
 * direct. Doorbells are rung here: Go code without the runtime can call no assembly. Mirrored by types Port, Path, Bell.
 */
#ifndef WEFT_CXI_SEAM_H
#define WEFT_CXI_SEAM_H

#include "../../../../include/weft/hot.h"

/* A doorbell that Go wants rung. */
struct weft_cxi_bell {
	uint64_t *word; /* NULL: none */
	uint64_t value;
	_Atomic uint32_t *lock; /* given back behind it; NULL: none */
	uint64_t rest;		/* of a post of what the NIC matches: not 0 where the port's rest is to be called */
};

/* trampoline(entry, a, b, c, d), as in package direct. */
typedef uintptr_t (*weft_cxi_enter)(uintptr_t entry, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d);

/* How many words and queues a poll may read; of words, which it reads by fours, a multiple of four. */
#define WEFT_CXI_WORDS 20
#define WEFT_CXI_QUEUES 12

/* What a poll without Go reads. The NIC's events and the words are read where they lie; all else is immutable but queues. */
struct weft_cxi_watch {
	const _Atomic uint32_t
		*word[WEFT_CXI_WORDS]; /* Go has nothing to do while all are 0; behind words, one that is */
	const unsigned char *base[WEFT_CXI_QUEUES];  /* of event queues */
	const _Atomic uint32_t *at[WEFT_CXI_QUEUES]; /* where in it the reader has stopped, bytes */
	uint64_t event;		    /* bits of an event's second word, of which one is set where there is an event */
	uint32_t words, queues;	    /* queues 0: Go polls itself. Stored by the lease holder */
	uint32_t matched, reserved; /* how many of the queues, the last ones, matched reads */
};

/* The port of an interface. All but what hot says, polls and watch is immutable. */
struct weft_cxi_port {
	struct weft_hot_port hot;
	uintptr_t iface; /* for Go */
	weft_cxi_enter enter;
	uintptr_t next, take, flush; /* entry points */
	_Atomic uint32_t
		polls; /* how many there were. Stored by the lease holder (release), read by threads that post */
	uint32_t reserved;
	struct weft_cxi_watch watch;
	struct weft_hot_match_port match; /* of what the NIC matches */
	uintptr_t post, matched, rest;	  /* its entry points */
};

/* The way to a peer. All but endpoint is immutable. */
struct weft_cxi_path {
	struct weft_hot_path hot;
	_Atomic uintptr_t
		endpoint; /* for Go; 0: the peer is gone. Stored by the lease holder, read by any thread that posts */
	weft_cxi_enter enter;
	uintptr_t send; /* entry point */
};

_Static_assert(sizeof(struct weft_cxi_bell) == 32, "mirrored by type Bell");
_Static_assert(sizeof(struct weft_cxi_watch) == 376, "mirrored by type Watch");
_Static_assert(sizeof(struct weft_cxi_port) == 536, "mirrored by type Port");
_Static_assert(sizeof(struct weft_cxi_path) == 40, "mirrored by type Path");

/* What next and flush say beside WEFT_PORT_*: they are to be called again. */
#define WEFT_CXI_AGAIN 16

/* weft_cxi_quiet reports whether there is nothing for next. The caller holds the progress lease. */
bool weft_cxi_quiet(const struct weft_cxi_port *p);

/* The functions of a port and of a path. */
void weft_cxi_port_init(struct weft_cxi_port *p);
void weft_cxi_path_init(struct weft_cxi_path *p);

#endif
