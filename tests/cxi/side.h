/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Endpoints of the CXI protocol of both providers in one process, as tests of both have them.
 */
#ifndef WEFT_TESTS_CXI_SIDE_H
#define WEFT_TESTS_CXI_SIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

/* ok ends the program where a call has failed. */
static inline void ok(const char *what, long rc)
{
	if (rc < 0) {
		printf("not ok - %s: %ld (%s)\n", what, rc, fi_strerror((int)-rc));
		exit(1);
	}
}

/* A provider's endpoint, and what belongs to it. */
struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_ep *ep;
	uint64_t name;
};

static inline void open_side(struct side *s, const char *provider, uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_NONE };
	size_t len = sizeof(s->name);

	hints->caps = caps;
	hints->addr_format = FI_ADDR_CXI;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_ENDPOINT;
	hints->fabric_attr->prov_name = strdup(provider);
	ok(provider, fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &s->info));
	fi_freeinfo(hints);
	ok("fi_fabric", fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	ok("fi_domain", fi_domain(s->fabric, s->info, &s->domain, NULL));
	ok("fi_av_open", fi_av_open(s->domain, &av, &s->av, NULL));
	ok("fi_cq_open", fi_cq_open(s->domain, &cq, &s->cq, NULL));
	ok("fi_eq_open", fi_eq_open(s->fabric, &eq, &s->eq, NULL));
	ok("fi_endpoint", fi_endpoint(s->domain, s->info, &s->ep, NULL));
	ok("bind", fi_ep_bind(s->ep, &s->av->fid, 0));
	ok("bind", fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	ok("bind", fi_ep_bind(s->ep, &s->eq->fid, 0));
	ok("fi_enable", fi_enable(s->ep));
	ok("fi_getname", fi_getname(&s->ep->fid, &s->name, &len));
}

#endif
