// SPDX-License-Identifier: BSD-2-Clause
#include "host.h"
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct host {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

// One operation under way. Whatever reads its completion, which may be another thread, sets done
// after the rest.
struct operation {
	struct fi_context context[2];
	ssize_t result;
	int done;
};

static int failed(const char *step, ssize_t status)
{
	if (status)
		fprintf(stderr, "host: %s: %s\n", step, fi_strerror((int)-status));
	return status != 0;
}

static struct fi_info *wanted(const char *provider)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	if (!hints)
		return NULL;
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED | FI_DIRECTED_RECV;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->fabric_attr->prov_name = strdup(provider);
	failed("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	if (info && strcmp(info->fabric_attr->prov_name, provider) != 0) {
		fprintf(stderr, "host: provider %s\n", info->fabric_attr->prov_name);
		fi_freeinfo(info);
		info = NULL;
	}
	return info;
}

struct host *host_open(const char *provider)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 1024 };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct host *h = calloc(1, sizeof(*h));

	if (!h || !(h->info = wanted(provider)) ||
	    failed("fi_fabric", fi_fabric(h->info->fabric_attr, &h->fabric, NULL)) ||
	    failed("fi_domain", fi_domain(h->fabric, h->info, &h->domain, NULL)) ||
	    failed("fi_av_open", fi_av_open(h->domain, &av_attr, &h->av, NULL)) ||
	    failed("fi_cq_open", fi_cq_open(h->domain, &cq_attr, &h->cq, NULL)) ||
	    failed("fi_endpoint", fi_endpoint(h->domain, h->info, &h->ep, NULL)) ||
	    failed("fi_ep_bind", fi_ep_bind(h->ep, &h->av->fid, 0)) ||
	    failed("fi_ep_bind", fi_ep_bind(h->ep, &h->cq->fid, FI_TRANSMIT | FI_RECV)) ||
	    failed("fi_enable", fi_enable(h->ep))) {
		if (h)
			host_close(h);
		return NULL;
	}
	return h;
}

ssize_t host_name(struct host *h, void *name, size_t size)
{
	int status = fi_getname(&h->ep->fid, name, &size);
	return status ? status : (ssize_t)size;
}

int host_peer(struct host *h, const void *name)
{
	int n = fi_av_insert(h->av, name, 1, NULL, 0, NULL);
	return n == 1 ? 0 : n < 0 ? n : -FI_EINVAL;
}

// Reads completions, of any thread's operations, until op is done.
static ssize_t complete(struct host *h, struct operation *op)
{
	while (!__atomic_load_n(&op->done, __ATOMIC_ACQUIRE)) {
		struct fi_cq_tagged_entry entry;
		struct operation *of = NULL;
		ssize_t n = fi_cq_read(h->cq, &entry, 1), result = 0;

		if (n == 1) {
			of = entry.op_context;
			result = (ssize_t)entry.len;
		} else if (n == -FI_EAVAIL) {
			struct fi_cq_err_entry error = { 0 };
			if (fi_cq_readerr(h->cq, &error, 0) == 1) {
				of = error.op_context;
				result = -error.err;
			}
		} else if (n != -FI_EAGAIN) {
			return n;
		}
		if (of) {
			of->result = result;
			__atomic_store_n(&of->done, 1, __ATOMIC_RELEASE);
		} else {
			sched_yield();
		}
	}
	return op->result;
}

// Lets the provider make progress where a post has found no room.
static void progress(struct host *h)
{
	fi_cq_read(h->cq, NULL, 0);
	sched_yield();
}

int host_send(struct host *h, uint64_t peer, uint64_t tag, const void *data, size_t size)
{
	struct operation op = { .done = 0 };
	ssize_t status;

	while ((status = fi_tsend(h->ep, data, size, NULL, peer, tag, &op)) == -FI_EAGAIN)
		progress(h);
	if (!status)
		status = complete(h, &op);
	return status < 0 ? (int)status : 0;
}

ssize_t host_receive(struct host *h, uint64_t peer, uint64_t tag, void *data, size_t size)
{
	struct operation op = { .done = 0 };
	ssize_t status;

	while ((status = fi_trecv(h->ep, data, size, NULL, peer, tag, 0, &op)) == -FI_EAGAIN)
		progress(h);
	return status ? status : complete(h, &op);
}

void host_close(struct host *h)
{
	struct fid *fids[] = { h->ep ? &h->ep->fid : NULL, h->cq ? &h->cq->fid : NULL, h->av ? &h->av->fid : NULL,
			       h->domain ? &h->domain->fid : NULL, h->fabric ? &h->fabric->fid : NULL };

	for (size_t i = 0; i < sizeof(fids) / sizeof(*fids); i++)
		if (fids[i])
			failed("fi_close", fi_close(fids[i]));
	if (h->info)
		fi_freeinfo(h->info);
	free(h);
}
