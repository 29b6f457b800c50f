/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Tables of endpoints beside those of FI_EP_RDM, all but weft_nosys_* made when
 * the library is loaded (posts_gen.c).
 */
#ifndef WEFT_CONNECTED_H
#define WEFT_CONNECTED_H

#include "objects.h"

/* Connected endpoints (FI_EP_MSG): transfers to the one peer, whatever address the caller gives. */
extern struct fi_ops_msg weft_connected_msg;
extern struct fi_ops_tagged weft_connected_tagged;
extern struct fi_ops_rma weft_connected_rma;
extern struct fi_ops_atomic weft_connected_atomic;

/* Datagrams (FI_EP_DGRAM), and what becomes of those for which there is no room (dgram.c). */
extern struct fi_ops_msg weft_dgram_msg;
ssize_t weft_dgram_again(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest, uint64_t data,
			 uint64_t flags, void *context, uint32_t kind);
ssize_t weft_dgram_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t dest, void *context);
ssize_t weft_dgram_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);

/* Endpoints for memory of devices (FI_HMEM; hmem.h). */
extern struct fi_ops_msg weft_hmem_msg;
extern struct fi_ops_tagged weft_hmem_tagged;
extern struct fi_ops_rma weft_hmem_rma;
extern struct fi_ops_atomic weft_hmem_atomic;

/* Contexts, which have one direction. */
extern struct fi_ops_msg weft_send_msg, weft_recv_msg, weft_hmem_send_msg, weft_hmem_recv_msg;
extern struct fi_ops_tagged weft_send_tagged, weft_recv_tagged, weft_hmem_send_tagged, weft_hmem_recv_tagged;

#endif
