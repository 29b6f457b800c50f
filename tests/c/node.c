/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening and closing what one endpoint needs. */
#include "../../include/weft/ext.h"
#include "common.h"

#define OPEN_MAX 512

/* The nodes that are open in this process, so that waiting on one lets the others go on. Written
 * by the main thread only, while no other thread waits. */
static struct node *opened[OPEN_MAX];

static void remember(struct node *n, bool open)
{
	size_t at = 0, end = 0;

	while (at < OPEN_MAX && opened[at] && opened[at] != n)
		at++;
	CHECK(at < OPEN_MAX);
	if (open) {
		opened[at] = n;
		return;
	}
	for (end = at; end + 1 < OPEN_MAX && opened[end + 1]; end++)
		;
	opened[at] = opened[end]; /* the list has no gaps */
	opened[end] = NULL;
}

void progress(struct node *n)
{
	fi_cq_read(n->txcq, NULL, 0);
	if (n->rxcq != n->txcq)
		fi_cq_read(n->rxcq, NULL, 0);
	for (size_t i = 0; i < OPEN_MAX && opened[i]; i++)
		if (opened[i] != n && !opened[i]->o.disabled) {
			fi_cq_read(opened[i]->txcq, NULL, 0);
			if (opened[i]->rxcq != opened[i]->txcq)
				fi_cq_read(opened[i]->rxcq, NULL, 0);
		}
}

struct fi_info *node_hints(const struct node_opts *o)
{
	static const struct node_opts none;
	struct fi_info *h = fi_allocinfo();

	CHECK(h != NULL);
	o = o ? o : &none;
	h->fabric_attr->prov_name = strdup(test_provider());
	h->ep_attr->type = FI_EP_RDM;
	h->caps = o->caps ? o->caps : FI_MSG | FI_TAGGED;
	h->addr_format = o->addr_format;
	h->tx_attr->op_flags = o->tx_flags;
	h->rx_attr->op_flags = o->rx_flags;
	h->tx_attr->size = o->tx_size;
	h->rx_attr->size = o->rx_size;
	if (!o->unordered) {
		h->tx_attr->msg_order = FI_ORDER_SAS | o->order;
		h->rx_attr->msg_order = FI_ORDER_SAS | o->order;
	}
	h->domain_attr->threading = o->threading;
	h->domain_attr->control_progress = o->control;
	h->domain_attr->data_progress = o->data;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->domain_attr->mr_mode = o->mr_mode;
	if (o->auth) {
		h->domain_attr->auth_key = (uint8_t *)strdup(o->auth);
		h->domain_attr->auth_key_size = strlen(o->auth);
	}
	if (o->ep_auth) {
		h->ep_attr->auth_key = (uint8_t *)strdup(o->ep_auth);
		h->ep_attr->auth_key_size = strlen(o->ep_auth);
	}
	return h;
}

struct fi_info *node_info(const struct node_opts *o)
{
	struct fi_info *hints = node_hints(o), *info = NULL;
	uint32_t version = o && o->version ? o->version : FI_VERSION(1, 17);
	const char *service = o ? o->service : NULL;
	int rc = fi_getinfo(version, service ? host_address() : NULL, service, service ? FI_SOURCE : 0, hints, &info);

	fi_freeinfo(hints);
	if (rc == -FI_ENODATA)
		return NULL;
	OK(rc);
	return info;
}

int node_getinfo(uint32_t version, struct fi_info *hints, struct fi_info **info)
{
	int rc = fi_getinfo(version, NULL, NULL, 0, hints, info);

	fi_freeinfo(hints);
	return rc;
}

struct fi_info *node_offered(struct fi_info *hints)
{
	struct fi_info *info = NULL;
	int rc = node_getinfo(FI_VERSION(1, 17), hints, &info);

	CHECK(rc == 0 || rc == -FI_ENODATA);
	return rc ? NULL : info;
}

void node_need(const struct node_opts *o)
{
	struct fi_info *info = node_offered(node_hints(o));

	if (!info)
		SKIP("no device here has FI_PROTO_CXI with these capabilities");
	fi_freeinfo(info);
}

static void open_counters(struct node *n)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };

	OK(fi_cntr_open(n->domain, &attr, &n->txcntr, NULL));
	OK(fi_cntr_open(n->domain, &attr, &n->rxcntr, NULL));
	OK(fi_ep_bind(n->ep, &n->txcntr->fid, FI_SEND));
	OK(fi_ep_bind(n->ep, &n->rxcntr->fid, FI_RECV));
}

/* Endpoint, AV and CQs on an open domain. */
static void open_endpoint(struct node *n)
{
	struct fi_cq_attr cq = {
		.size = n->o.cq_size,
		.format = n->o.format ? n->o.format : FI_CQ_FORMAT_TAGGED,
		.wait_obj = n->o.wait,
	};
	struct fi_av_attr av = {
		.type = n->o.av_type ? n->o.av_type : FI_AV_TABLE,
		.flags = n->o.av_flags,
	};

	OK(fi_av_open(n->domain, &av, &n->av, NULL));
	OK(fi_cq_open(n->domain, &cq, &n->txcq, NULL));
	n->rxcq = n->txcq;
	if (!n->o.one_cq)
		OK(fi_cq_open(n->domain, &cq, &n->rxcq, NULL));
	if (n->o.ep_caps)
		n->info->caps = n->o.ep_caps;
	OK(fi_endpoint(n->domain, n->info, &n->ep, NULL));
	OK(fi_ep_bind(n->ep, &n->av->fid, 0));
	if (n->o.one_cq) {
		OK(fi_ep_bind(n->ep, &n->txcq->fid, FI_TRANSMIT | FI_RECV | n->o.tx_bind | n->o.rx_bind));
	} else {
		OK(fi_ep_bind(n->ep, &n->txcq->fid, FI_TRANSMIT | n->o.tx_bind));
		OK(fi_ep_bind(n->ep, &n->rxcq->fid, FI_RECV | n->o.rx_bind));
	}
	if (n->o.counters)
		open_counters(n);
	if (!n->o.disabled)
		OK(fi_enable(n->ep));
	remember(n, true);
}

void node_open_domain(struct node *n, const struct node_opts *o)
{
	memset(n, 0, sizeof(*n));
	if (o)
		n->o = *o;
	n->info = node_info(o);
	NEED(n->info != NULL, "an endpoint with these capabilities");
	OK(fi_fabric(n->info->fabric_attr, &n->fabric, NULL));
	OK(fi_domain(n->fabric, n->info, &n->domain, NULL));
}

void node_close_domain(struct node *n)
{
	OK(fi_close(&n->domain->fid));
	OK(fi_close(&n->fabric->fid));
	fi_freeinfo(n->info);
}

bool node_has_sockaddr(const struct node *n)
{
	return n->info->addr_format == FI_SOCKADDR || n->info->addr_format == FI_SOCKADDR_IN ||
	       n->info->addr_format == FI_SOCKADDR_IN6;
}

void node_open(struct node *n, const struct node_opts *o)
{
	node_open_domain(n, o);
	open_endpoint(n);
}

void node_open_on(struct node *n, const struct node *base, const struct node_opts *o)
{
	memset(n, 0, sizeof(*n));
	n->o = o ? *o : base->o;
	n->info = node_info(&n->o);
	NEED(n->info != NULL, "an endpoint with these capabilities");
	n->domain = base->domain;
	open_endpoint(n);
}

void node_name(struct node *n, struct name *name)
{
	memset(name, 0, sizeof(*name));
	name->len = sizeof(name->bytes);
	OK(fi_getname(&n->ep->fid, name->bytes, &name->len));
}

fi_addr_t node_insert_name(struct node *n, const struct name *name)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	CHECK_RC(fi_av_insert(n->av, name->bytes, 1, &addr, 0, NULL), 1);
	CHECK(addr != FI_ADDR_NOTAVAIL);
	return addr;
}

fi_addr_t node_insert(struct node *n, struct node *other)
{
	struct name name;

	node_name(other, &name);
	return node_insert_name(n, &name);
}

void node_names(struct node *n, struct name names[NODE_PEERS])
{
	node_name(n, &names[test_rank]);
	if (test_rank) {
		link_send(0, &names[test_rank], sizeof(names[0]));
		link_recv(0, names, sizeof(names[0]) * (size_t)test_procs);
		return;
	}
	for (int r = 1; r < test_procs; r++)
		link_recv(r, &names[r], sizeof(names[0]));
	for (int r = 1; r < test_procs; r++)
		link_send(r, names, sizeof(names[0]) * (size_t)test_procs);
}

void node_connect(struct node *n)
{
	struct name names[NODE_PEERS];

	node_names(n, names);
	for (int r = 0; r < test_procs; r++)
		n->peer[r] = node_insert_name(n, &names[r]);
	barrier(n);
}

uint64_t node_counter(struct node *n, const char *name)
{
	struct weft_stats_ops *ops = NULL;
	uint64_t v = 0;
	int i;

	OK(fi_open_ops(&n->ep->fid, WEFT_STATS_OPS, 0, (void **)&ops, NULL));
	i = ops->find(name);
	CHECKF(i >= 0, "no counter %s", name);
	OK(ops->read(&n->ep->fid, i, 1, &v));
	return v;
}

void node_close(struct node *n)
{
	remember(n, false);
	if (n->ep)
		OK(fi_close(&n->ep->fid));
	if (n->txcntr) {
		OK(fi_close(&n->txcntr->fid));
		OK(fi_close(&n->rxcntr->fid));
	}
	OK(fi_close(&n->txcq->fid));
	if (n->rxcq != n->txcq)
		OK(fi_close(&n->rxcq->fid));
	OK(fi_close(&n->av->fid));
	if (n->fabric) {
		OK(fi_close(&n->domain->fid));
		OK(fi_close(&n->fabric->fid));
	}
	fi_freeinfo(n->info);
}
