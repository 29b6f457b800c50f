/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Opening a provider and finding the other ranks.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>

#include "bench.h"

void die(const char *what, int error)
{
	fprintf(stderr, "weft_bench: %s: %s\n", what, fi_strerror(error));
	exit(1);
}

void must(int ret, const char *what)
{
	if (ret)
		die(what, ret);
}

void share_token(struct node *n, struct weft_token_ops *t, struct fid_mr *mr)
{
	n->shared->token[n->rank].size = sizeof(n->shared->token[n->rank].bytes);
	must(t->pack(mr, NULL, n->shared->token[n->rank].bytes, &n->shared->token[n->rank].size), "pack");
}

struct weft_remote *open_token(struct node *n, struct weft_token_ops *t)
{
	struct weft_remote *remote;

	must(t->open(n->ep, n->shared->token[1 - n->rank].bytes, n->shared->token[1 - n->rank].size, &remote), "open");
	return remote;
}

/* ask_provider asks for a tagged, ordered, reliable endpoint as MPI does. */
static int ask_provider(const struct node *n, const struct wish *wish, struct fi_info **info)
{
	const struct options *opt = n->opt;
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		die("fi_allocinfo", -FI_ENOMEM);
	hints->caps = FI_TAGGED | (wish->one_sided ? FI_RMA | FI_ATOMIC : 0) | (wish->collective ? FI_COLLECTIVE : 0) |
		      (wish->device ? FI_HMEM : 0);
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->size = wish->rx_size;
	hints->domain_attr->threading = wish->threading;
	hints->domain_attr->data_progress = opt->progress;
	hints->domain_attr->control_progress = opt->progress;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->mr_mode =
		FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | (wish->device ? FI_MR_HMEM : 0);
	hints->fabric_attr->prov_name = strdup(n->provider_name);
	int ret = fi_getinfo(FI_VERSION(1, 11), NULL, NULL, 0, hints, info);
	if (ret && wish->rx_size) { /* as many receives as the provider takes */
		hints->rx_attr->size = 0;
		ret = fi_getinfo(FI_VERSION(1, 11), NULL, NULL, 0, hints, info);
	}
	fi_freeinfo(hints);
	return ret;
}

/* has_provider reports whether the provider has what is asked for. */
bool has_provider(const struct node *n, const struct wish *wish)
{
	struct fi_info *info = NULL;
	int ret = ask_provider(n, wish, &info);

	if (ret == -FI_ENODATA)
		return false;
	must(ret, "fi_getinfo");
	fi_freeinfo(info);
	return true;
}

struct fi_info *find_provider(const struct node *n, const struct wish *wish)
{
	struct fi_info *info = NULL;

	must(ask_provider(n, wish, &info), "fi_getinfo");
	return info;
}

struct fid_ep *open_endpoint(struct node *n)
{
	struct fid_ep *ep;

	must(fi_endpoint(n->domain, n->info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &n->av->fid, 0), "bind av");
	must(fi_ep_bind(ep, &n->cq->fid, FI_TRANSMIT | FI_RECV), "bind cq");
	if (n->eq)
		must(fi_ep_bind(ep, &n->eq->fid, 0), "bind eq");
	must(fi_enable(ep), "fi_enable");
	return ep;
}

/* roomy_buffers gives a node other buffers, of so many bytes. Nothing is under way. */
void roomy_buffers(struct node *n, size_t bytes)
{
	free(n->tx);
	free(n->rx);
	n->tx = aligned_alloc(BUFFER_ALIGN, bytes);
	n->rx = aligned_alloc(BUFFER_ALIGN, bytes);
	if (!n->tx || !n->rx)
		die("buffers", -FI_ENOMEM);
	memset(n->tx, 1, bytes);
	memset(n->rx, 2, bytes);
}

static void make_buffers(struct node *n, size_t rx_size)
{
	n->context_count = 2 * rx_size + 4 * WINDOW;
	n->contexts = calloc(n->context_count, sizeof(*n->contexts));
	if (!n->contexts)
		die("contexts", -FI_ENOMEM);
	roomy_buffers(n, BUFFER_BYTES);
}

void node_open(struct node *n, const struct wish *wish)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .count = MAX_RANKS };
	struct fi_cq_attr cq_attr = {
		.format = FI_CQ_FORMAT_TAGGED,
		.wait_obj = FI_WAIT_NONE,
		.size = wish->rx_size + 4 * WINDOW,
	};

	n->info = find_provider(n, wish);
	must(fi_fabric(n->info->fabric_attr, &n->fabric, NULL), "fi_fabric");
	must(fi_domain(n->fabric, n->info, &n->domain, NULL), "fi_domain");
	must(fi_av_open(n->domain, &av_attr, &n->av, NULL), "fi_av_open");
	must(fi_cq_open(n->domain, &cq_attr, &n->cq, NULL), "fi_cq_open");
	if (wish->collective)
		must(fi_eq_open(n->fabric, &(struct fi_eq_attr){ .wait_obj = FI_WAIT_NONE }, &n->eq, NULL),
		     "fi_eq_open");
	n->ep = open_endpoint(n);
	make_buffers(n, wish->rx_size);
}

/* node_connect gives this rank's address to the others and inserts theirs. */
void node_connect(struct node *n)
{
	struct shared *s = n->shared;

	s->address[n->rank].size = sizeof(s->address[n->rank].bytes);
	must(fi_getname(&n->ep->fid, s->address[n->rank].bytes, &s->address[n->rank].size), "fi_getname");
	meet(n);
	for (int i = 0; i < n->ranks; i++) {
		int ret = fi_av_insert(n->av, s->address[i].bytes, 1, &n->peer[i], 0, NULL);
		if (ret != 1)
			die("fi_av_insert", ret < 0 ? ret : -FI_EADDRNOTAVAIL);
	}
	meet(n);
}

/* meet returns when every rank has called it. What waits makes progress and
 * leaves its core to others now and then. */
void meet(struct node *n)
{
	int target = ++n->met * n->ranks;

	atomic_fetch_add(&n->shared->arrived, 1);
	while (atomic_load(&n->shared->arrived) < target) {
		poll_cq(n);
		sched_yield();
	}
}
