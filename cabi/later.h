/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Tables that have grown since libfabric 1.17, whose headers weft is built with: members that
 * later versions append. The size of a table is that of the whole one, so callers of any version
 * find the members that they know. Those with a note are called without a look at the size.
 */
#ifndef WEFT_LATER_H
#define WEFT_LATER_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

/* FI_XPU contexts and what is exported to them came with 2.6. Their objects begin with a
 * struct fid. Called without a look at the size. */
struct weft_ops_ep {
	struct fi_ops_ep base;
	int (*export_xpu)(struct fid *ep, uint64_t flags, void *xpu_ep);
};
struct weft_ops_cq {
	struct fi_ops_cq base;
	int (*export_xpu)(struct fid *cq, uint64_t flags, void *xpu_cq);
};
struct weft_ops_cntr {
	struct fi_ops_cntr base;
	int (*export_xpu)(struct fid *cntr, uint64_t flags, void *xpu_cntr);
};
struct weft_ops_domain {
	struct fi_ops_domain base;
	int (*xpu_ctx)(struct fid_domain *domain, void *attr, void *ctx, void *context);
};

struct weft_ops_av {
	struct fi_ops_av base;
	int (*insert_auth_key)(struct fid_av *av, const void *key, size_t len, fi_addr_t *addr,
			       uint64_t flags); /* 1.20, as the next two */
	int (*lookup_auth_key)(struct fid_av *av, fi_addr_t addr, void *key, size_t *len);
	int (*set_user_id)(struct fid_av *av, fi_addr_t addr, fi_addr_t id, uint64_t flags);
	int (*lookup2)(struct fid_av *av, fi_addr_t addr, void *buf, size_t *len, uint64_t flags,
		       void *xpu_ctx); /* 2.6 */
};

/* Slots that refuse with -FI_ENOSYS (common.c). */
int weft_no_export_xpu(struct fid *fid, uint64_t flags, void *xpu);
int weft_no_xpu_ctx(struct fid_domain *domain, void *attr, void *ctx, void *context);

#endif
