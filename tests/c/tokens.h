/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens of regions between ranks, over the link beside the endpoints. */
#ifndef WEFT_TEST_TOKENS_H
#define WEFT_TEST_TOKENS_H

#include <stdbool.h>

#include "../../include/weft/token.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

/* The token operations of an object. Skips the test over another provider, which has none. */
struct weft_token_ops *token_ops(struct fid *fid);

/* Packs the token of a region and sends it to a rank, which takes it by token_receive. */
void token_send(struct weft_token_ops *t, struct fid_mr *mr, int rank);

/* Takes a token that a rank sends, opens it at an endpoint and reads what it says. */
struct weft_remote *token_receive(struct weft_token_ops *t, struct fid_ep *ep, int rank, struct weft_remote_info *info);

/* Whether the settings want no endpoint without an RDMA device. */
bool device_is_demanded(void);

#endif
