/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The objects that a forked process inherits get tables whose every call returns
 * -FI_EOPNOTSUPP (forked_gen.c); the first writes a log line (fork.c says why).
 */
#include <string.h>

#include "forked.h"

const char *weft_forked_straddr(struct fid_av *, const void *, char *buf, size_t *len)
{
	weft_fork_refusal();
	if (buf && *len)
		buf[0] = '\0';
	*len = 1;
	return buf;
}

/* A counter's value is what it was when the process forked. */
uint64_t weft_forked_cntr_read(struct fid_cntr *c)
{
	weft_fork_refusal();
	return atomic_load_explicit(&WEFT_OBJ(c, struct weft_cntr_obj)->hot->value,
				    memory_order_relaxed);
}

uint64_t weft_forked_cntr_readerr(struct fid_cntr *c)
{
	weft_fork_refusal();
	return atomic_load_explicit(&WEFT_OBJ(c, struct weft_cntr_obj)->hot->errors,
				    memory_order_relaxed);
}

/* Where an object of a class has which table. */
struct place {
	size_t class;
	size_t at;
	const void *table;
};

static const struct place places[] = {
	{ FI_CLASS_FABRIC, offsetof(struct fid_fabric, ops), &weft_forked_fabric },
	{ FI_CLASS_DOMAIN, offsetof(struct fid_domain, ops), &weft_forked_domain },
	{ FI_CLASS_DOMAIN, offsetof(struct fid_domain, mr), &weft_forked_mr },
	{ FI_CLASS_AV, offsetof(struct fid_av, ops), &weft_forked_av },
	{ FI_CLASS_AV_SET, offsetof(struct fid_av_set, ops), &weft_forked_av_set },
	{ FI_CLASS_CQ, offsetof(struct fid_cq, ops), &weft_forked_cq },
	{ FI_CLASS_CNTR, offsetof(struct fid_cntr, ops), &weft_forked_cntr },
	{ FI_CLASS_EQ, offsetof(struct fid_eq, ops), &weft_forked_eq },
	{ FI_CLASS_WAIT, offsetof(struct fid_wait, ops), &weft_forked_wait },
	{ FI_CLASS_POLL, offsetof(struct fid_poll, ops), &weft_forked_poll },
	{ FI_CLASS_STX_CTX, offsetof(struct fid_stx, ops), &weft_forked_ep },
	{ FI_CLASS_PEP, offsetof(struct fid_pep, ops), &weft_forked_ep },
	{ FI_CLASS_PEP, offsetof(struct fid_pep, cm), &weft_forked_cm },
};

static void endpoint_tables(struct fid_ep *ep)
{
	ep->ops = &weft_forked_ep.base;
	ep->cm = &weft_forked_cm;
	ep->msg = &weft_forked_msg;
	ep->tagged = &weft_forked_tagged;
	ep->rma = &weft_forked_rma;
	ep->atomic = &weft_forked_atomic;
	ep->collective = &weft_forked_collective;
}

void weft_forked_tables(struct fid *fid)
{
	fid->ops = &weft_forked_fid;
	switch (fid->fclass) {
	case FI_CLASS_EP:
	case FI_CLASS_SEP:
	case FI_CLASS_TX_CTX:
	case FI_CLASS_RX_CTX:
	case FI_CLASS_SRX_CTX:
		endpoint_tables((struct fid_ep *)fid);
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (places[i].class == fid->fclass)
			memcpy((char *)fid + places[i].at, &places[i].table, sizeof(places[i].table));
}
