/* SPDX-License-Identifier: BSD-2-Clause */
/* What a plugin of a program does that is linked with libfabric, such as a component of an MPI:
 * host.c loads and unloads it. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#ifndef API
#define API FI_VERSION(1, 17)
#endif

/* Ends the function with a line that says which call failed. */
#define OK(call) \
	do { \
		int rc_ = (int)(call); \
		if (rc_ < 0) { \
			printf("%s: %d %s\n", #call, rc_, fi_strerror(-rc_)); \
			return 1; \
		} \
	} while (0)

/* fi_getinfo for a provider and nothing more. */
int inspect(const char *provider)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	hints->caps = FI_MSG | FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(provider);
	OK(fi_getinfo(API, NULL, NULL, 0, hints, &info));
	printf("%s %s\n", info->fabric_attr->prov_name, info->domain_attr->name);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return 0;
}

struct side {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

static int open_side(struct side *s, const char *provider)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };

	hints->caps = FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup(provider);
	OK(fi_getinfo(API, NULL, NULL, 0, hints, &info));
	OK(fi_fabric(info->fabric_attr, &s->fabric, NULL));
	OK(fi_domain(s->fabric, info, &s->domain, NULL));
	OK(fi_av_open(s->domain, &av, &s->av, NULL));
	OK(fi_cq_open(s->domain, &cq, &s->cq, NULL));
	OK(fi_endpoint(s->domain, info, &s->ep, NULL));
	OK(fi_ep_bind(s->ep, &s->av->fid, 0));
	OK(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(s->ep));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return 0;
}

static int close_side(struct side *s)
{
	OK(fi_close(&s->ep->fid));
	OK(fi_close(&s->cq->fid));
	OK(fi_close(&s->av->fid));
	OK(fi_close(&s->domain->fid));
	OK(fi_close(&s->fabric->fid));
	return 0;
}

/* A message from one endpoint of this process to another, and an error's text, which the host's
 * function gives. */
int use(const char *provider)
{
	struct side a = { 0 }, b = { 0 };
	struct fi_cq_tagged_entry e;
	char name[256], in[16] = "", out[16] = "a message";
	size_t len = sizeof(name);
	time_t end = time(NULL) + 20;
	fi_addr_t to;
	int sent = 0, received = 0;
	ssize_t rc;

	if (open_side(&a, provider) || open_side(&b, provider))
		return 1;
	OK(fi_getname(&b.ep->fid, name, &len));
	if (fi_av_insert(a.av, name, 1, &to, 0, NULL) != 1)
		return 1;
	OK(fi_trecv(b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 7, 0, in));
	while ((rc = fi_tsend(a.ep, out, sizeof(out), NULL, to, 7, out)) == -FI_EAGAIN && time(NULL) < end) {
		fi_cq_read(a.cq, &e, 0);
		fi_cq_read(b.cq, &e, 0);
	}
	OK(rc);
	while ((!sent || !received) && time(NULL) < end) {
		sent += fi_cq_read(a.cq, &e, 1) == 1;
		received += fi_cq_read(b.cq, &e, 1) == 1;
	}
	if (sent != 1 || received != 1 || strcmp(in, out)) {
		printf("sent %d, received %d\n", sent, received);
		return 1;
	}
	if (strcmp(fi_cq_strerror(a.cq, FI_ETRUNC, NULL, NULL, 0), fi_strerror(FI_ETRUNC)))
		return 1;
	return close_side(&a) || close_side(&b);
}
