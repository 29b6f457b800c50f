/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seam.h: how C calls the Go code of hw/cxi that sends a message and takes one in: through the trampoline of package
 * direct. Doorbells (struct weft_bell) are rung here: Go code without the runtime can call no assembly. Of what the NIC
 * matches the data plane calls the Go code itself. Mirrored by types Transport, Path.
 */
#ifndef WEFT_CXI_SEAM_H
#define WEFT_CXI_SEAM_H

#include "../../../../include/weft/hot.h"

/* trampoline(entry, a, b, c, d), as in package direct. */
typedef uintptr_t (*weft_cxi_enter)(uintptr_t entry, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d);

/* The transport of an interface, the first part of type Transport. All but what hot says is immutable. */
struct weft_cxi_transport {
	struct weft_hot_transport hot;
	uintptr_t iface; /* for Go */
	weft_cxi_enter enter;
	uintptr_t next, take, flush;	       /* entry points */
	struct weft_hot_match_transport match; /* of what the NIC matches */
	uintptr_t rest;			       /* entry point: its doorbells behind a post with rest */
};

/* The way to a peer. All but endpoint is immutable. */
struct weft_cxi_path {
	struct weft_hot_path hot;
	_Atomic uintptr_t
		endpoint; /* for Go; 0: the peer is gone. Stored by the lease holder, read by any thread that posts */
	weft_cxi_enter enter;
	uintptr_t send; /* entry point */
};

_Static_assert(sizeof(struct weft_cxi_transport) == 144, "mirrored by type Transport");
_Static_assert(sizeof(struct weft_cxi_path) == 40, "mirrored by type Path");

/* What next and flush say beside WEFT_TRANSPORT_*: they are to be called again. */
#define WEFT_CXI_AGAIN 16

/* The functions of a transport and of a path. */
void weft_cxi_transport_init(struct weft_cxi_transport *p);
void weft_cxi_path_init(struct weft_cxi_path *p);

#endif
