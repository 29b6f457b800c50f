/* SPDX-License-Identifier: BSD-2-Clause */
#include "tokens.h"

#include "common.h"

struct weft_token_ops *token_ops(struct fid *fid)
{
	struct weft_token_ops *t = NULL;

	if (!test_is_weft())
		SKIP("an extension of weft");
	OK(fi_open_ops(fid, WEFT_TOKEN_OPS, 0, (void **)&t, NULL));
	CHECK(t && t->size >= sizeof(*t));
	return t;
}

void token_send(struct weft_token_ops *t, struct fid_mr *mr, int rank)
{
	char token[WEFT_TOKEN_MAX];
	size_t len = sizeof(token);

	OK(t->pack(mr, NULL, token, &len));
	link_send(rank, &len, sizeof(len));
	link_send(rank, token, len);
}

struct weft_remote *token_receive(struct weft_token_ops *t, struct fid_ep *ep, int rank, struct weft_remote_info *info)
{
	char token[WEFT_TOKEN_MAX];
	size_t len;
	struct weft_remote *remote;

	link_recv(rank, &len, sizeof(len));
	CHECK(len <= sizeof(token));
	link_recv(rank, token, len);
	OK(t->open(ep, token, len, &remote));
	OK(t->info(remote, info, sizeof(*info)));
	return remote;
}

bool device_is_demanded(void)
{
	const char *cxi = getenv("FI_WEFT_CXI"), *verbs = getenv("FI_WEFT_VERBS");

	return (cxi && !strcmp(cxi, "yes")) || (verbs && !strcmp(verbs, "yes"));
}
