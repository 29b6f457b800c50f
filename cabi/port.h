/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Ports to other hosts that C looks at (port.c).
 */
#ifndef WEFT_PORT_H
#define WEFT_PORT_H

#include "../include/weft/hot.h"

struct weft_reader;

enum weft_looked {
	WEFT_LOOKED_NOTHING,
	WEFT_LOOKED_DELIVERED, /* and Go need not look */
	WEFT_LOOKED_TO_GO,
};

/* Takes in what has come to the endpoint's port. The caller holds the lease. The
 * reader is as in weft_deliver. */
enum weft_looked weft_port_look(struct weft_hot_ep *ep, struct weft_reader *to);

/* Does the work of an endpoint that may have a port that C looks at. The caller
 * holds the lease. */
enum weft_looked weft_work_with_port(struct weft_hot_ep *ep, struct weft_hot_rx *rx,
				     struct weft_reader *to);

#endif
