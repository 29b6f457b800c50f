/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seam.h: how C calls the Go code of hw/cxi that sends a message and takes one in: through the trampoline of package
 * direct. Doorbells are rung here: Go code without the runtime can call no assembly. Mirrored by types Transport, Path,
 * Bell.
 */
#ifndef WEFT_CXI_SEAM_H
#define WEFT_CXI_SEAM_H

#include "../../../../include/weft/hot.h"

/* A doorbell that Go wants rung. */
struct weft_cxi_bell {
	uint64_t *word; /* NULL: none */
	uint64_t value;
	_Atomic uint32_t *lock; /* given back behind it; NULL: none */
	uint64_t rest; /* of a post of what the NIC matches: not 0 where the transport's rest is to be called */
};

/* trampoline(entry, a, b, c, d), as in package direct. */
typedef uintptr_t (*weft_cxi_enter)(uintptr_t entry, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d);

/* The transport of an interface, the first part of type Transport. All but what hot says is immutable. */
struct weft_cxi_transport {
	struct weft_hot_transport hot;
	uintptr_t iface; /* for Go */
	weft_cxi_enter enter;
	uintptr_t next, take, flush;	       /* entry points */
	struct weft_hot_match_transport match; /* of what the NIC matches */
	uintptr_t post, matched, rest;	       /* its entry points */
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
_Static_assert(sizeof(struct weft_cxi_transport) == 152, "mirrored by type Transport");
_Static_assert(sizeof(struct weft_cxi_path) == 40, "mirrored by type Path");

/* What next and flush say beside WEFT_TRANSPORT_*: they are to be called again. */
#define WEFT_CXI_AGAIN 16

/* The functions of a transport and of a path. */
void weft_cxi_transport_init(struct weft_cxi_transport *p);
void weft_cxi_path_init(struct weft_cxi_path *p);

#endif
