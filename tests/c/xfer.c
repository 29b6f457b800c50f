/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages in every form, waiting for completions, and byte patterns. */
#include "common.h"

void op_split(struct op *o, void *buf, size_t len, size_t count, bool holes)
{
	size_t at = 0;

	o->buf = buf;
	o->len = len;
	o->count = count;
	for (size_t i = 0; i < count; i++) {
		size_t left = count - i;
		size_t piece = left == 1 ? len - at : (len - at) / left + (i & 1);

		if (piece > len - at)
			piece = len - at;
		if (holes && count > 2 && i == 1)
			piece = 0;
		o->iov[i].iov_base = (char *)buf + at;
		o->iov[i].iov_len = piece;
		at += piece;
	}
}

static ssize_t send_tagged(struct fid_ep *ep, const struct op *o)
{
	struct fi_msg_tagged m = {
		.msg_iov = o->iov,
		.iov_count = o->count,
		.addr = o->addr,
		.tag = o->tag,
		.context = o->ctx,
		.data = o->data,
	};

	switch (o->form) {
	case F_PLAIN:
		return fi_tsend(ep, o->buf, o->len, NULL, o->addr, o->tag, o->ctx);
	case F_V:
		return fi_tsendv(ep, o->iov, NULL, o->count, o->addr, o->tag, o->ctx);
	case F_MSG:
		return fi_tsendmsg(ep, &m, o->flags);
	case F_INJECT:
		return fi_tinject(ep, o->buf, o->len, o->addr, o->tag);
	case F_DATA:
		return fi_tsenddata(ep, o->buf, o->len, NULL, o->data, o->addr, o->tag, o->ctx);
	default:
		return fi_tinjectdata(ep, o->buf, o->len, o->data, o->addr, o->tag);
	}
}

ssize_t op_send(struct fid_ep *ep, const struct op *o)
{
	struct fi_msg m = {
		.msg_iov = o->iov,
		.iov_count = o->count,
		.addr = o->addr,
		.context = o->ctx,
		.data = o->data,
	};

	if (o->tagged)
		return send_tagged(ep, o);
	switch (o->form) {
	case F_PLAIN:
		return fi_send(ep, o->buf, o->len, NULL, o->addr, o->ctx);
	case F_V:
		return fi_sendv(ep, o->iov, NULL, o->count, o->addr, o->ctx);
	case F_MSG:
		return fi_sendmsg(ep, &m, o->flags);
	case F_INJECT:
		return fi_inject(ep, o->buf, o->len, o->addr);
	case F_DATA:
		return fi_senddata(ep, o->buf, o->len, NULL, o->data, o->addr, o->ctx);
	default:
		return fi_injectdata(ep, o->buf, o->len, o->data, o->addr);
	}
}

ssize_t op_recv(struct fid_ep *ep, const struct op *o)
{
	struct fi_msg_tagged t = {
		.msg_iov = o->iov,
		.iov_count = o->count,
		.addr = o->addr,
		.tag = o->tag,
		.ignore = o->ignore,
		.context = o->ctx,
	};
	struct fi_msg m = {
		.msg_iov = o->iov,
		.iov_count = o->count,
		.addr = o->addr,
		.context = o->ctx,
	};

	if (o->form == F_V)
		return o->tagged ? fi_trecvv(ep, o->iov, NULL, o->count, o->addr, o->tag, o->ignore, o->ctx)
				 : fi_recvv(ep, o->iov, NULL, o->count, o->addr, o->ctx);
	if (o->form == F_MSG)
		return o->tagged ? fi_trecvmsg(ep, &t, o->flags) : fi_recvmsg(ep, &m, o->flags);
	return o->tagged ? fi_trecv(ep, o->buf, o->len, NULL, o->addr, o->tag, o->ignore, o->ctx)
			 : fi_recv(ep, o->buf, o->len, NULL, o->addr, o->ctx);
}

void post_send(struct node *n, const struct op *o)
{
	ssize_t rc;

	while ((rc = op_send(n->ep, o)) == -FI_EAGAIN)
		progress(n);
	CHECKF(rc == 0, "send (form %d, %zu bytes) = %zd (%s)", o->form, o->len, rc, fi_strerror((int)-rc));
}

void post_recv(struct node *n, const struct op *o)
{
	ssize_t rc;

	while ((rc = op_recv(n->ep, o)) == -FI_EAGAIN)
		progress(n);
	CHECKF(rc == 0, "receive (form %d, %zu bytes) = %zd (%s)", o->form, o->len, rc, fi_strerror((int)-rc));
}

void tsend(struct node *n, const void *buf, size_t len, fi_addr_t to, uint64_t tag, void *ctx)
{
	struct op o = { .tagged = true, .buf = (void *)buf, .len = len, .addr = to, .tag = tag, .ctx = ctx };

	post_send(n, &o);
}

void trecv(struct node *n, void *buf, size_t len, fi_addr_t from, uint64_t tag, uint64_t ignore, void *ctx)
{
	struct op o = {
		.tagged = true, .buf = buf, .len = len, .addr = from, .tag = tag, .ignore = ignore, .ctx = ctx
	};

	post_recv(n, &o);
}

int wait_for(struct node *n, struct fid_cq *cq, struct fi_cq_tagged_entry *e, int ms)
{
	uint64_t end = ms < 0 ? UINT64_MAX : now_ms() + (uint64_t)ms;
	ssize_t rc;

	for (unsigned spin = 0;; spin++) {
		memset(e, 0, sizeof(*e));
		rc = fi_cq_read(cq, e, 1);
		if (rc == 1)
			return 1;
		if (rc == -FI_EAVAIL)
			break;
		CHECKF(rc == -FI_EAGAIN, "fi_cq_read = %zd (%s)", rc, fi_strerror((int)-rc));
		if (ms == 0)
			return 0;
		progress(n);
		if ((spin & 255) == 255) {
			if (now_ms() >= end)
				return 0;
			usleep(20); /* two cores: let the peer run */
		}
	}
	memset(&n->err, 0, sizeof(n->err));
	n->err.err_data = n->err_data;
	n->err.err_data_size = sizeof(n->err_data);
	CHECK_RC(fi_cq_readerr(cq, &n->err, 0), 1);
	CHECKF(n->err.err > 0, "error completion with err %d", n->err.err);
	return -n->err.err;
}

void wait_ok(struct node *n, struct fid_cq *cq, struct fi_cq_tagged_entry *e)
{
	struct fi_cq_tagged_entry none;
	int rc = wait_for(n, cq, e ? e : &none, -1);

	CHECKF(rc == 1, "error completion: %d (%s), context %p", -rc, fi_strerror(-rc), n->err.op_context);
}

void wait_ctx(struct node *n, struct fid_cq *cq, void *ctx)
{
	struct fi_cq_tagged_entry e;

	wait_ok(n, cq, &e);
	CHECKF(e.op_context == ctx, "completion with context %p, want %p", e.op_context, ctx);
}

void wait_err(struct node *n, struct fid_cq *cq, int err)
{
	struct fi_cq_tagged_entry e;
	int rc = wait_for(n, cq, &e, -1);

	CHECKF(rc == -err, "completion %d (%s), want error %d (%s)", rc, rc > 0 ? "success" : fi_strerror(-rc), err,
	       fi_strerror(err));
}

void wait_none(struct node *n, struct fid_cq *cq, int ms)
{
	struct fi_cq_tagged_entry e;
	int rc = wait_for(n, cq, &e, ms);

	CHECKF(rc == 0, "unexpected completion %d, context %p, flags %#llx", rc,
	       rc > 0 ? e.op_context : n->err.op_context, (unsigned long long)e.flags);
}
