/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEFT_TESTS_XFER_H
#define WEFT_TESTS_XFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <rdma/fi_eq.h>

#include "node.h"

#define XFER_IOV 16

enum form {
	F_PLAIN,      /* fi_send, fi_recv */
	F_V,	      /* fi_sendv, fi_recvv */
	F_MSG,	      /* fi_sendmsg, fi_recvmsg */
	F_INJECT,     /* fi_inject: no completion */
	F_DATA,	      /* fi_senddata */
	F_INJECTDATA, /* fi_injectdata: no completion */
};

/* One send or receive of any form. buf and len, or iov and count for F_V and F_MSG. */
struct op {
	enum form form;
	bool tagged;
	void *buf;
	size_t len;
	struct iovec iov[XFER_IOV];
	size_t count;
	fi_addr_t addr;
	uint64_t tag, ignore, data, flags; /* flags: F_MSG only */
	void *ctx;
};

/* Splits buf into count pieces for F_V and F_MSG; with holes, one piece is empty (count > 2). */
void op_split(struct op *o, void *buf, size_t len, size_t count, bool holes);

/* The plain call, once. */
ssize_t op_send(struct fid_ep *ep, const struct op *o);
ssize_t op_recv(struct fid_ep *ep, const struct op *o);

/* The call until it is not -FI_EAGAIN, with progress in between; any other error fails the test. */
void post_send(struct node *n, const struct op *o);
void post_recv(struct node *n, const struct op *o);

/* Short forms of the two most used: tagged send and receive through post_*. */
void tsend(struct node *n, const void *buf, size_t len, fi_addr_t to, uint64_t tag, void *ctx);
void trecv(struct node *n, void *buf, size_t len, fi_addr_t from, uint64_t tag, uint64_t ignore, void *ctx);

/* Reads one completion of cq within ms milliseconds (-1: no limit), progressing n's other CQ too.
 * Returns 1, 0 when the time is over, or -err of an error completion, whose entry is n->err. */
int wait_for(struct node *n, struct fid_cq *cq, struct fi_cq_tagged_entry *e, int ms);

/* wait_for that must give a success completion (of this context). */
void wait_ok(struct node *n, struct fid_cq *cq, struct fi_cq_tagged_entry *e);
void wait_ctx(struct node *n, struct fid_cq *cq, void *ctx);

/* wait_for that must give this error, entry in n->err. */
void wait_err(struct node *n, struct fid_cq *cq, int err);

/* No completion may turn up in cq for ms milliseconds. */
void wait_none(struct node *n, struct fid_cq *cq, int ms);

/* Progresses n and every other open node of this process once, reading nothing. */
void progress(struct node *n);

/* Bytes that depend on seed and position. */
void fill(void *buf, size_t len, uint64_t seed);

/* Compares; on a difference says where and fails the test. */
void verify(const void *buf, size_t len, uint64_t seed);

/* A buffer of len bytes between guard bytes; guard_free fails the test if one changed. */
void *guard_alloc(size_t len);
void guard_free(void *buf, size_t len);

#endif
