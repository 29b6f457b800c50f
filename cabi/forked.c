/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Tables for the objects that a forked process inherits: every call returns
 * -FI_EOPNOTSUPP, the first writes a log line (fork.c says why).
 */
#include "forked.h"

#define REFUSE(table) forked_##table
#define REFUSE_LINKAGE static
#define REFUSAL weft_fork_refusal()

#include "refuse.h"

static int any_close(struct fid *) { return REFUSAL; }
static int any_bind(struct fid *, struct fid *, uint64_t) { return REFUSAL; }
static int any_control(struct fid *, int, void *) { return REFUSAL; }
static int any_export_xpu(struct fid *, uint64_t, void *) { return REFUSAL; }

static struct fi_ops forked_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = any_close,
	.bind = any_bind,
	.control = any_control,
	.ops_open = weft_no_ops_open,
	.tostr = weft_tostr,
	.ops_set = weft_no_ops_set,
};

/* ---- fabric ---- */

static int fabric_domain(struct fid_fabric *, struct fi_info *, struct fid_domain **, void *)
{
	return REFUSAL;
}
static int fabric_pep(struct fid_fabric *, struct fi_info *, struct fid_pep **, void *)
{
	return REFUSAL;
}
static int fabric_eq(struct fid_fabric *, struct fi_eq_attr *, struct fid_eq **, void *)
{
	return REFUSAL;
}
static int fabric_wait(struct fid_fabric *, struct fi_wait_attr *, struct fid_wait **)
{
	return REFUSAL;
}
static int fabric_trywait(struct fid_fabric *, struct fid **, int) { return REFUSAL; }
static int fabric_domain2(struct fid_fabric *, struct fi_info *, struct fid_domain **, uint64_t,
			  void *)
{
	return REFUSAL;
}

static struct fi_ops_fabric forked_fabric = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = fabric_domain,
	.passive_ep = fabric_pep,
	.eq_open = fabric_eq,
	.wait_open = fabric_wait,
	.trywait = fabric_trywait,
	.domain2 = fabric_domain2,
};

/* ---- domain ---- */

static int domain_av(struct fid_domain *, struct fi_av_attr *, struct fid_av **, void *)
{
	return REFUSAL;
}
static int domain_cq(struct fid_domain *, struct fi_cq_attr *, struct fid_cq **, void *)
{
	return REFUSAL;
}
static int domain_ep(struct fid_domain *, struct fi_info *, struct fid_ep **, void *)
{
	return REFUSAL;
}
static int domain_cntr(struct fid_domain *, struct fi_cntr_attr *, struct fid_cntr **, void *)
{
	return REFUSAL;
}
static int domain_poll(struct fid_domain *, struct fi_poll_attr *, struct fid_poll **)
{
	return REFUSAL;
}
static int domain_stx(struct fid_domain *, struct fi_tx_attr *, struct fid_stx **, void *)
{
	return REFUSAL;
}
static int domain_srx(struct fid_domain *, struct fi_rx_attr *, struct fid_ep **, void *)
{
	return REFUSAL;
}
static int domain_query_atomic(struct fid_domain *, enum fi_datatype, enum fi_op,
			       struct fi_atomic_attr *, uint64_t)
{
	return REFUSAL;
}
static int domain_query_collective(struct fid_domain *, enum fi_collective_op,
				   struct fi_collective_attr *, uint64_t)
{
	return REFUSAL;
}
static int domain_ep2(struct fid_domain *, struct fi_info *, struct fid_ep **, uint64_t, void *)
{
	return REFUSAL;
}

static int domain_xpu_ctx(struct fid_domain *, void *, void *, void *) { return REFUSAL; }

static struct weft_ops_domain forked_domain = {
	.base = {
		.size = sizeof(struct weft_ops_domain),
		.av_open = domain_av,
		.cq_open = domain_cq,
		.endpoint = domain_ep,
		.scalable_ep = domain_ep,
		.cntr_open = domain_cntr,
		.poll_open = domain_poll,
		.stx_ctx = domain_stx,
		.srx_ctx = domain_srx,
		.query_atomic = domain_query_atomic,
		.query_collective = domain_query_collective,
		.endpoint2 = domain_ep2,
	},
	.xpu_ctx = domain_xpu_ctx,
};

static int mr_reg(struct fid *, const void *, size_t, uint64_t, uint64_t, uint64_t, uint64_t,
		  struct fid_mr **, void *)
{
	return REFUSAL;
}
static int mr_regv(struct fid *, const struct iovec *, size_t, uint64_t, uint64_t, uint64_t,
		   uint64_t, struct fid_mr **, void *)
{
	return REFUSAL;
}
static int mr_regattr(struct fid *, const struct fi_mr_attr *, uint64_t, struct fid_mr **)
{
	return REFUSAL;
}

static struct fi_ops_mr forked_mr = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};

/* ---- address vectors ---- */

static int av_insert(struct fid_av *, const void *, size_t, fi_addr_t *, uint64_t, void *)
{
	return REFUSAL;
}
static int av_insertsvc(struct fid_av *, const char *, const char *, fi_addr_t *, uint64_t, void *)
{
	return REFUSAL;
}
static int av_insertsym(struct fid_av *, const char *, size_t, const char *, size_t, fi_addr_t *,
			uint64_t, void *)
{
	return REFUSAL;
}
static int av_remove(struct fid_av *, fi_addr_t *, size_t, uint64_t) { return REFUSAL; }
static int av_lookup(struct fid_av *, fi_addr_t, void *, size_t *) { return REFUSAL; }
static const char *av_straddr(struct fid_av *, const void *, char *buf, size_t *len)
{
	weft_fork_refusal();
	if (buf && *len)
		buf[0] = '\0';
	*len = 1;
	return buf;
}
static int av_set(struct fid_av *, struct fi_av_set_attr *, struct fid_av_set **, void *)
{
	return REFUSAL;
}

static struct fi_ops_av forked_av = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = av_set,
};

static int set_combine(struct fid_av_set *, const struct fid_av_set *) { return REFUSAL; }
static int set_change(struct fid_av_set *, fi_addr_t) { return REFUSAL; }
static int set_addr(struct fid_av_set *, fi_addr_t *) { return REFUSAL; }

static struct fi_ops_av_set forked_av_set = {
	.size = sizeof(struct fi_ops_av_set),
	.set_union = set_combine,
	.intersect = set_combine,
	.diff = set_combine,
	.insert = set_change,
	.remove = set_change,
	.addr = set_addr,
};

/* ---- endpoints ---- */

static ssize_t ep_cancel(fid_t, void *) { return REFUSAL; }
static int ep_getopt(fid_t, int, int, void *, size_t *) { return REFUSAL; }
static int ep_setopt(fid_t, int, int, const void *, size_t) { return REFUSAL; }
static int ep_tx_ctx(struct fid_ep *, int, struct fi_tx_attr *, struct fid_ep **, void *)
{
	return REFUSAL;
}
static int ep_rx_ctx(struct fid_ep *, int, struct fi_rx_attr *, struct fid_ep **, void *)
{
	return REFUSAL;
}
static ssize_t ep_size_left(struct fid_ep *) { return REFUSAL; }

static struct weft_ops_ep forked_ep = {
	.base = {
		.size = sizeof(struct weft_ops_ep),
		.cancel = ep_cancel,
		.getopt = ep_getopt,
		.setopt = ep_setopt,
		.tx_ctx = ep_tx_ctx,
		.rx_ctx = ep_rx_ctx,
		.rx_size_left = ep_size_left,
		.tx_size_left = ep_size_left,
	},
	.export_xpu = any_export_xpu,
};

/* ---- queues, counters, wait and poll sets ---- */

static ssize_t cq_read(struct fid_cq *, void *, size_t) { return REFUSAL; }
static ssize_t cq_readfrom(struct fid_cq *, void *, size_t, fi_addr_t *) { return REFUSAL; }
static ssize_t cq_readerr(struct fid_cq *, struct fi_cq_err_entry *, uint64_t) { return REFUSAL; }
static ssize_t cq_sread(struct fid_cq *, void *, size_t, const void *, int) { return REFUSAL; }
static ssize_t cq_sreadfrom(struct fid_cq *, void *, size_t, fi_addr_t *, const void *, int)
{
	return REFUSAL;
}
static int cq_signal(struct fid_cq *) { return REFUSAL; }

static struct weft_ops_cq forked_cq = {
	.base = {
		.size = sizeof(struct weft_ops_cq),
		.read = cq_read,
		.readfrom = cq_readfrom,
		.readerr = cq_readerr,
		.sread = cq_sread,
		.sreadfrom = cq_sreadfrom,
		.signal = cq_signal,
		.strerror = weft_cq_strerror,
	},
	.export_xpu = any_export_xpu,
};

/* A counter's value is what it was when the process forked. */
static uint64_t cntr_read(struct fid_cntr *c)
{
	weft_fork_refusal();
	return atomic_load_explicit(&WEFT_OBJ(c, struct weft_cntr_obj)->hot->value,
				    memory_order_relaxed);
}
static uint64_t cntr_readerr(struct fid_cntr *c)
{
	weft_fork_refusal();
	return atomic_load_explicit(&WEFT_OBJ(c, struct weft_cntr_obj)->hot->errors,
				    memory_order_relaxed);
}
static int cntr_change(struct fid_cntr *, uint64_t) { return REFUSAL; }
static int cntr_wait(struct fid_cntr *, uint64_t, int) { return REFUSAL; }

static struct weft_ops_cntr forked_cntr = {
	.base = {
		.size = sizeof(struct weft_ops_cntr),
		.read = cntr_read,
		.readerr = cntr_readerr,
		.add = cntr_change,
		.set = cntr_change,
		.wait = cntr_wait,
		.adderr = cntr_change,
		.seterr = cntr_change,
	},
	.export_xpu = any_export_xpu,
};

static ssize_t eq_read(struct fid_eq *, uint32_t *, void *, size_t, uint64_t) { return REFUSAL; }
static ssize_t eq_readerr(struct fid_eq *, struct fi_eq_err_entry *, uint64_t) { return REFUSAL; }
static ssize_t eq_write(struct fid_eq *, uint32_t, const void *, size_t, uint64_t)
{
	return REFUSAL;
}
static ssize_t eq_sread(struct fid_eq *, uint32_t *, void *, size_t, int, uint64_t)
{
	return REFUSAL;
}

static struct fi_ops_eq forked_eq = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = weft_eq_strerror,
};

static int wait_wait(struct fid_wait *, int) { return REFUSAL; }
static struct fi_ops_wait forked_wait = { .size = sizeof(struct fi_ops_wait), .wait = wait_wait };

static int poll_poll(struct fid_poll *, void **, int) { return REFUSAL; }
static int poll_change(struct fid_poll *, struct fid *, uint64_t) { return REFUSAL; }
static struct fi_ops_poll forked_poll = {
	.size = sizeof(struct fi_ops_poll),
	.poll = poll_poll,
	.poll_add = poll_change,
	.poll_del = poll_change,
};

static void endpoint_tables(struct fid_ep *ep)
{
	ep->ops = &forked_ep.base;
	ep->cm = &forked_cm;
	ep->msg = &forked_msg;
	ep->tagged = &forked_tagged;
	ep->rma = &forked_rma;
	ep->atomic = &forked_atomic;
	ep->collective = &forked_collective;
}

void weft_forked_tables(struct fid *fid)
{
	fid->ops = &forked_fi_ops;
	switch (fid->fclass) {
	case FI_CLASS_FABRIC:
		((struct fid_fabric *)fid)->ops = &forked_fabric;
		break;
	case FI_CLASS_DOMAIN:
		((struct fid_domain *)fid)->ops = &forked_domain.base;
		((struct fid_domain *)fid)->mr = &forked_mr;
		break;
	case FI_CLASS_AV:
		((struct fid_av *)fid)->ops = &forked_av;
		break;
	case FI_CLASS_AV_SET:
		((struct fid_av_set *)fid)->ops = &forked_av_set;
		break;
	case FI_CLASS_CQ:
		((struct fid_cq *)fid)->ops = &forked_cq.base;
		break;
	case FI_CLASS_CNTR:
		((struct fid_cntr *)fid)->ops = &forked_cntr.base;
		break;
	case FI_CLASS_EQ:
		((struct fid_eq *)fid)->ops = &forked_eq;
		break;
	case FI_CLASS_WAIT:
		((struct fid_wait *)fid)->ops = &forked_wait;
		break;
	case FI_CLASS_POLL:
		((struct fid_poll *)fid)->ops = &forked_poll;
		break;
	case FI_CLASS_STX_CTX:
		((struct fid_stx *)fid)->ops = &forked_ep.base;
		break;
	case FI_CLASS_PEP:
		((struct fid_pep *)fid)->ops = &forked_ep.base;
		((struct fid_pep *)fid)->cm = &forked_cm;
		break;
	case FI_CLASS_MR:
	case FI_CLASS_MC:
	case FI_CLASS_UNSPEC: /* remote regions and lists (token.c) */
		break;
	default:
		endpoint_tables((struct fid_ep *)fid);
	}
}
