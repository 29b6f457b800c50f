/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writing completions to the array of who calls fi_cq_read (struct weft_reader).
 */
#ifndef WEFT_READER_H
#define WEFT_READER_H

#include <rdma/fi_eq.h>

#include "../include/weft/delivery.h"

static inline void *weft_put_entry(void *dst, uint32_t format, const struct weft_cqe *e)
{
	switch (format) {
	case FI_CQ_FORMAT_CONTEXT: {
		struct fi_cq_entry *c = dst;
		c->op_context = (void *)e->context;
		return c + 1;
	}
	case FI_CQ_FORMAT_MSG: {
		struct fi_cq_msg_entry *c = dst;
		c->op_context = (void *)e->context;
		c->flags = e->flags;
		c->len = e->len;
		return c + 1;
	}
	case FI_CQ_FORMAT_DATA: {
		struct fi_cq_data_entry *c = dst;
		c->op_context = (void *)e->context;
		c->flags = e->flags;
		c->len = e->len;
		c->buf = (void *)e->buf;
		c->data = e->data;
		return c + 1;
	}
	default: {
		struct fi_cq_tagged_entry *c = dst;
		c->op_context = (void *)e->context;
		c->flags = e->flags;
		c->len = e->len;
		c->buf = (void *)e->buf;
		c->data = e->data;
		c->tag = e->tag;
		return c + 1;
	}
	}
}

/* Writes a completion; there is room. */
static inline void weft_reader_put(struct weft_reader *r, const struct weft_cqe *e)
{
	r->buf = weft_put_entry(r->buf, r->cq->format, e);
	if (r->src)
		*r->src++ = e->src;
	r->left--;
}

#endif
