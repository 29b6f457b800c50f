/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Operation tables of the endpoint types beside FI_EP_RDM.
 */
#ifndef WEFT_CONNECTED_H
#define WEFT_CONNECTED_H

#include "objects.h"

/* cm.c: of connected endpoints (FI_EP_MSG). Made at the first call. */
struct fi_ops_cm *weft_connected_cm(void);

/* connected.c: transfers to the one peer, whatever address the caller gives. */
extern struct fi_ops_msg weft_connected_msg;
extern struct fi_ops_tagged weft_connected_tagged;
extern struct fi_ops_rma weft_connected_rma;
extern struct fi_ops_atomic weft_connected_atomic;

/* dgram.c: datagrams (FI_EP_DGRAM). */
extern struct fi_ops_msg weft_dgram_msg;

#endif
