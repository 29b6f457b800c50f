/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What libfabric's CXI provider offers and what weft offers for the same hints (FI_WEFT_CXI=native), field by field,
 * in one process over the model of the NIC. A difference that is not in the list of those that are wanted, or one of
 * the list that is not there, fails. tests/cxi/interop.sh runs it.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

/* A field of what fi_getinfo returns. */
struct field {
	const char *name;
	uint64_t (*get)(const struct fi_info *);
	const char *why; /* not NULL: the providers differ in it, and that is wanted */
};

/* Capabilities that are neither of sending nor of receiving. */
#define OF_ALL (FI_LOCAL_COMM | FI_REMOTE_COMM | FI_TRIGGER)

#define MEMORY (FI_RMA | FI_ATOMIC)
#if FI_MAJOR_VERSION == 1 && FI_MINOR_VERSION < 20
#define KEYS(info) ((void)(info), 0) /* the headers do not have the member */
#else
#define KEYS(info) (info)->domain_attr->max_ep_auth_key
#endif
#define FIELD(id, expression) \
	static uint64_t get_##id(const struct fi_info *i) \
	{ \
		return (uint64_t)(expression); \
	}
#define FIELDS(X) \
	X(caps, i->caps & ~FI_TRIGGER, NULL) \
	X(caps_trigger, i->caps &FI_TRIGGER, "weft offers FI_TRIGGER to those that ask") \
	X(mode, i->mode, NULL) \
	X(addr_format, i->addr_format, NULL) \
	X(src_addrlen, i->src_addrlen, NULL) \
	X(tx_caps, i->tx_attr->caps & ~OF_ALL, NULL) \
	X(tx_caps_all, i->tx_attr->caps &OF_ALL, "prov/cxi repeats capabilities of no direction in both") \
	X(tx_mode, i->tx_attr->mode, NULL) \
	X(tx_op_flags, i->tx_attr->op_flags, NULL) \
	X(tx_msg_order, i->tx_attr->msg_order, NULL) \
	X(tx_comp_order, i->tx_attr->comp_order, NULL) \
	X(tx_inject_size, i->tx_attr->inject_size, NULL) \
	X(tx_size, i->tx_attr->size, NULL) \
	X(tx_iov_limit, i->tx_attr->iov_limit, NULL) \
	X(tx_rma_iov_limit, i->tx_attr->rma_iov_limit, NULL) \
	X(tx_tclass, i->tx_attr->tclass, NULL) \
	X(rx_caps, i->rx_attr->caps & ~OF_ALL, NULL) \
	X(rx_caps_all, i->rx_attr->caps &OF_ALL, "prov/cxi repeats capabilities of no direction in both") \
	X(rx_mode, i->rx_attr->mode, NULL) \
	X(rx_op_flags, i->rx_attr->op_flags, NULL) \
	X(rx_msg_order, i->rx_attr->msg_order, NULL) \
	X(rx_comp_order, i->rx_attr->comp_order, NULL) \
	X(rx_size, i->rx_attr->size, NULL) \
	X(rx_iov_limit, i->rx_attr->iov_limit, NULL) \
	X(ep_type, i->ep_attr->type, NULL) \
	X(protocol, i->ep_attr->protocol, NULL) \
	X(protocol_version, i->ep_attr->protocol_version, NULL) \
	X(max_msg_size, i->ep_attr->max_msg_size, NULL) \
	X(msg_prefix_size, i->ep_attr->msg_prefix_size, NULL) \
	X(max_order_raw_size, i->ep_attr->max_order_raw_size, NULL) \
	X(max_order_war_size, i->ep_attr->max_order_war_size, NULL) \
	X(max_order_waw_size, i->ep_attr->max_order_waw_size, NULL) \
	X(mem_tag_format, i->ep_attr->mem_tag_format, NULL) \
	X(tx_ctx_cnt, i->ep_attr->tx_ctx_cnt, "prov/cxi has 0 and means 1") \
	X(rx_ctx_cnt, i->ep_attr->rx_ctx_cnt, "prov/cxi has 0 and means 1") \
	X(ep_auth_key_size, i->ep_attr->auth_key_size, NULL) \
	X(threading, i->domain_attr->threading, NULL) \
	X(control_progress, i->domain_attr->control_progress, NULL) \
	X(data_progress, i->domain_attr->data_progress, NULL) \
	X(resource_mgmt, i->domain_attr->resource_mgmt, NULL) \
	X(av_type, i->domain_attr->av_type, NULL) \
	X(mr_mode, i->domain_attr->mr_mode, NULL) \
	X(mr_key_size, i->caps &MEMORY ? i->domain_attr->mr_key_size : 0, NULL) \
	X(mr_key_size_unused, i->caps &MEMORY ? 0 : i->domain_attr->mr_key_size, "without memory there are no keys") \
	X(cq_data_size, i->domain_attr->cq_data_size, NULL) \
	X(cq_cnt, i->domain_attr->cq_cnt, NULL) \
	X(ep_cnt, i->domain_attr->ep_cnt, NULL) \
	X(domain_tx_ctx_cnt, i->domain_attr->tx_ctx_cnt, "prov/cxi says 1 and opens more") \
	X(domain_rx_ctx_cnt, i->domain_attr->rx_ctx_cnt, "prov/cxi says 1 and opens more") \
	X(max_ep_tx_ctx, i->domain_attr->max_ep_tx_ctx, NULL) \
	X(max_ep_rx_ctx, i->domain_attr->max_ep_rx_ctx, NULL) \
	X(max_ep_stx_ctx, i->domain_attr->max_ep_stx_ctx, NULL) \
	X(max_ep_srx_ctx, i->domain_attr->max_ep_srx_ctx, NULL) \
	X(cntr_cnt, i->domain_attr->cntr_cnt, NULL) \
	X(mr_iov_limit, i->domain_attr->mr_iov_limit, NULL) \
	X(domain_caps, i->domain_attr->caps & ~FI_DIRECTED_RECV, NULL) \
	X(domain_directed, i->domain_attr->caps &FI_DIRECTED_RECV, "fi_domain(3) has it for domains, too") \
	X(domain_mode, i->domain_attr->mode, NULL) \
	X(domain_auth_key_size, i->domain_attr->auth_key_size, NULL) \
	X(max_err_data, i->domain_attr->max_err_data, "weft gives the reason of an error as text") \
	X(mr_cnt, i->domain_attr->mr_cnt, NULL) \
	X(domain_tclass, i->domain_attr->tclass, NULL) \
	X(max_ep_auth_key, KEYS(i), "in weft 0 unless address vectors have the keys") \
	X(api_version, i->fabric_attr->api_version, NULL)
#define GETTER(id, expression, why) FIELD(id, expression)
FIELDS(GETTER)
#define ROW(id, expression, why) { #id, get_##id, why },
static const struct field fields[] = { FIELDS(ROW) };

enum { COUNT = sizeof fields / sizeof fields[0] };

/* What is asked for. */
static const struct {
	const char *name;
	uint64_t caps;
	int mr_mode;
	enum fi_threading threading;
} wishes[] = {
	{ "messages", FI_MSG | FI_TAGGED, 0, FI_THREAD_UNSPEC },
	{ "messages with sources", FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV, 0,
	  FI_THREAD_SAFE },
	{ "one thread", FI_MSG | FI_TAGGED, 0, FI_THREAD_DOMAIN },
	{ "memory", FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, FI_MR_ENDPOINT | FI_MR_ALLOCATED, FI_THREAD_UNSPEC },
	{ "memory, counted", FI_RMA | FI_RMA_EVENT, FI_MR_ENDPOINT | FI_MR_ALLOCATED, FI_THREAD_UNSPEC },
	{ "memory, keys of the provider", FI_RMA | FI_ATOMIC, FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	  FI_THREAD_UNSPEC },
};

static struct fi_info *offered(const char *provider, size_t wish)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	int rc;

	hints->caps = wishes[wish].caps;
	hints->mode = ~0ull;
	hints->addr_format = FI_ADDR_CXI;
	hints->ep_attr->type = FI_EP_RDM;
	hints->ep_attr->protocol = FI_PROTO_CXI;
	hints->domain_attr->mr_mode = wishes[wish].mr_mode;
	hints->domain_attr->threading = wishes[wish].threading;
	hints->fabric_attr->prov_name = strdup(provider);
	rc = fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	if (rc) {
		fprintf(stderr, "%s, %s: %s\n", provider, wishes[wish].name, fi_strerror(-rc));
		exit(1);
	}
	return info;
}

int main(void)
{
	bool differs[COUNT] = {};
	int bad = 0;

	for (size_t wish = 0; wish < sizeof wishes / sizeof wishes[0]; wish++) {
		struct fi_info *theirs = offered("cxi", wish), *ours = offered("weft", wish);

		for (size_t k = 0; k < COUNT; k++) {
			uint64_t a = fields[k].get(theirs), b = fields[k].get(ours);

			if (a == b)
				continue;
			differs[k] = true;
			if (!fields[k].why) {
				printf("FAILED %s: %s is %#" PRIx64 " of prov/cxi, %#" PRIx64 " of weft\n",
				       wishes[wish].name, fields[k].name, a, b);
				bad++;
			} else {
				printf("# %s: %s is %#" PRIx64 " of prov/cxi, %#" PRIx64 " of weft\n",
				       wishes[wish].name, fields[k].name, a, b);
			}
		}
		fi_freeinfo(theirs);
		fi_freeinfo(ours);
	}
	for (size_t k = 0; k < COUNT; k++) {
		if (fields[k].why && !differs[k]) {
			printf("FAILED %s does not differ\n", fields[k].name);
			bad++;
		} else if (fields[k].why) {
			printf("differs: %s: %s\n", fields[k].name, fields[k].why);
		}
	}
	printf("%d fields compared, %d failed\n", (int)COUNT, bad);
	return bad > 0;
}
