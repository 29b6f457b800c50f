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

/* text is a number that texts which differ are unlikely to have in common. */
static uint64_t text(const char *s)
{
	uint64_t sum = 14695981039346656037u;

	for (; s && *s; s++)
		sum = (sum ^ (unsigned char)*s) * 1099511628211u;
	return s ? sum : 0;
}

/* pci is the address of a NIC on its bus. */
static uint64_t pci(const struct fid_nic *n)
{
	const struct fi_pci_attr *a = n && n->bus_attr->bus_type == FI_BUS_PCI ? &n->bus_attr->attr.pci : NULL;

	return a ? (uint64_t)a->domain_id << 24 | a->bus_id << 16 | a->device_id << 8 | a->function_id : 0;
}

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
	X(api_version, i->fabric_attr->api_version, NULL) \
	X(nic_bus, i->nic ? i->nic->bus_attr->bus_type : 0, NULL) \
	X(nic_function, pci(i->nic), NULL) \
	X(nic_driver, text(i->nic ? i->nic->device_attr->driver : NULL), "weft names the kernel module") \
	X(nic_vendor, text(i->nic ? i->nic->device_attr->vendor_id : NULL), NULL) \
	X(nic_device, text(i->nic ? i->nic->device_attr->device_id : NULL), NULL) \
	X(nic_version, text(i->nic ? i->nic->device_attr->device_version : NULL), NULL) \
	X(nic_name, text(i->nic ? i->nic->device_attr->name : NULL), NULL) \
	X(nic_address, text(i->nic ? i->nic->link_attr->address : NULL), NULL) \
	X(nic_network, text(i->nic ? i->nic->link_attr->network_type : NULL), NULL) \
	X(nic_mtu, i->nic ? i->nic->link_attr->mtu : 0, NULL) \
	X(nic_speed, i->nic ? i->nic->link_attr->speed : 0, NULL) \
	X(nic_state, i->nic ? i->nic->link_attr->state : 0, NULL)
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
	size_t size[2]; /* of sends and receives; 0: the default */
} wishes[] = {
	{ .name = "messages", .caps = FI_MSG | FI_TAGGED },
	{ .name = "messages with sources",
	  .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV,
	  .threading = FI_THREAD_SAFE },
	{ .name = "one thread", .caps = FI_MSG | FI_TAGGED, .threading = FI_THREAD_DOMAIN },
	{ .name = "one thread for completions", .caps = FI_MSG | FI_TAGGED, .threading = FI_THREAD_COMPLETION },
	{ .name = "largest sizes", .caps = FI_MSG | FI_TAGGED, .size = { 16384, 15360 } },
	{ .name = "memory", .caps = FI_MSG | FI_TAGGED | MEMORY, .mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED },
	{ .name = "memory, counted", .caps = FI_RMA | FI_RMA_EVENT, .mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED },
	{ .name = "memory, keys of the provider",
	  .caps = MEMORY,
	  .mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_PROV_KEY },
};

/* What one of the providers alone offers. */
static const struct {
	const char *name;
	uint64_t caps;
	enum fi_threading threading;
	bool theirs, ours;
	const char *why;
} only[] = {
	{ "FI_THREAD_ENDPOINT", FI_MSG, FI_THREAD_ENDPOINT, false, true, "wanted by users" },
	{ "FI_THREAD_FID", FI_MSG, FI_THREAD_FID, false, true, "wanted by users" },
	{ "FI_NAMED_RX_CTX", FI_MSG | FI_NAMED_RX_CTX, FI_THREAD_UNSPEC, true, false, "no scalable endpoints" },
	{ "FI_PEER", FI_MSG | FI_PEER, FI_THREAD_UNSPEC, true, false, "no peer API on these endpoints" },
	{ "FI_HMEM", FI_MSG | FI_HMEM, FI_THREAD_UNSPEC, true, false, "not built for these endpoints" },
	{ "FI_AV_USER_ID", FI_MSG | FI_AV_USER_ID, FI_THREAD_UNSPEC, true, false, "not built for these endpoints" },
};

/* asked is the answer to hints for a provider. */
static int asked(const char *provider, uint64_t caps, enum fi_threading threading)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int rc;

	hints->caps = caps;
	hints->mode = ~0ull;
	hints->addr_format = FI_ADDR_CXI;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = threading;
	hints->domain_attr->mr_mode = caps & FI_HMEM ? FI_MR_HMEM | FI_MR_ENDPOINT : FI_MR_ENDPOINT;
	hints->fabric_attr->prov_name = strdup(provider);
	rc = fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	fi_freeinfo(info);
	return rc;
}

/* compare_only returns how many offers are not those of one provider alone. */
static int compare_only(void)
{
	int bad = 0;

	for (size_t k = 0; k < sizeof only / sizeof only[0]; k++) {
		int theirs = asked("cxi", only[k].caps, only[k].threading);
		int ours = asked("weft", only[k].caps, only[k].threading);

		if (theirs == (only[k].theirs ? 0 : -FI_ENODATA) && ours == (only[k].ours ? 0 : -FI_ENODATA)) {
			printf("offered by %s alone: %s: %s\n", only[k].ours ? "weft" : "prov/cxi", only[k].name,
			       only[k].why);
			continue;
		}
		printf("FAILED %s: %s of prov/cxi, %s of weft\n", only[k].name, fi_strerror(-theirs),
		       fi_strerror(-ours));
		bad++;
	}
	return bad;
}

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
	hints->tx_attr->size = wishes[wish].size[0];
	hints->rx_attr->size = wishes[wish].size[1];
	hints->fabric_attr->prov_name = strdup(provider);
	rc = fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	if (rc) {
		fprintf(stderr, "%s, %s: %s\n", provider, wishes[wish].name, fi_strerror(-rc));
		exit(1);
	}
	return info;
}

/* Bits that one provider alone has in a field without hints. */
static const struct {
	const char *name;
	uint64_t theirs, ours;
	const char *why;
} unasked[] = {
	{ "caps", FI_COLLECTIVE | FI_AV_USER_ID | FI_PEER | FI_HMEM | FI_NAMED_RX_CTX, FI_SOURCE | FI_SOURCE_ERR,
	  "prov/cxi has what it alone offers, and names sources to those that ask" },
	{ "tx_caps", FI_COLLECTIVE | FI_HMEM | FI_NAMED_RX_CTX, 0, "what prov/cxi alone offers" },
	{ "rx_caps", FI_COLLECTIVE | FI_HMEM, FI_SOURCE | FI_SOURCE_ERR,
	  "what prov/cxi alone offers, and names sources to those that ask" },
	{ "domain_caps", FI_AV_USER_ID | FI_PEER, 0, "what prov/cxi alone offers" },
	{ "tx_op_flags", ~0ull, 0, "prov/cxi lists all flags, which then hold for each operation" },
	{ "rx_op_flags", ~0ull, 0, "prov/cxi lists all flags, which then hold for each operation" },
};

/* reason is why a field differs without hints, NULL: it may not. */
static const char *reason(const struct field *f, uint64_t theirs, uint64_t ours)
{
	for (size_t k = 0; k < sizeof unasked / sizeof unasked[0]; k++)
		if (!strcmp(unasked[k].name, f->name))
			return (theirs & ~ours & ~unasked[k].theirs) || (ours & ~theirs) != unasked[k].ours
				       ? NULL
				       : unasked[k].why;
	return f->why;
}

/* compare compares all fields of two offers, and returns how many differ that may not. differs: NULL, there were no
 * hints. */
static int compare(const char *what, const struct fi_info *theirs, const struct fi_info *ours, bool *differs)
{
	int bad = 0;

	for (size_t k = 0; k < COUNT; k++) {
		uint64_t a = fields[k].get(theirs), b = fields[k].get(ours);
		const char *why = differs ? fields[k].why : reason(&fields[k], a, b);

		if (a == b)
			continue;
		if (differs)
			differs[k] = true;
		printf("%s %s: %s is %#" PRIx64 " of prov/cxi, %#" PRIx64 " of weft%s%s\n", why ? "#" : "FAILED", what,
		       fields[k].name, a, b, why && !differs ? ": " : "", why && !differs ? why : "");
		bad += !why;
	}
	return bad;
}

/* compare_unasked compares what is offered without hints: each of weft's offers with the provider's first of the same
 * protocol and keys. */
static int compare_unasked(void)
{
	struct fi_info *all = NULL;
	int bad = 0, count = 0;

	if (fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, NULL, &all))
		return 1;
	for (struct fi_info *ours = all; ours; ours = ours->next) {
		struct fi_info *theirs = all;

		if (strcmp(ours->fabric_attr->prov_name, "weft"))
			continue;
		while (theirs && (strcmp(theirs->fabric_attr->prov_name, "cxi") ||
				  theirs->ep_attr->protocol != ours->ep_attr->protocol ||
				  theirs->domain_attr->mr_mode != ours->domain_attr->mr_mode))
			theirs = theirs->next;
		if (!theirs) {
			printf("FAILED without hints: offer %d of weft has no counterpart\n", count);
			bad++;
		} else {
			bad += compare("without hints", theirs, ours, NULL);
		}
		count++;
	}
	fi_freeinfo(all);
	printf("%d offers of weft's without hints\n", count);
	return bad + (count == 0);
}

/* named asks for endpoints by node and service, and copies the names of the first offer, zeroed where there is none. */
static int named(const char *provider, const char *node, const char *service, uint64_t flags, uint64_t names[2])
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int rc;

	hints->caps = FI_MSG;
	hints->mode = ~0ull;
	hints->addr_format = FI_ADDR_CXI;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup(provider);
	rc = fi_getinfo(FI_VERSION(1, 20), node, service, flags, hints, &info);
	fi_freeinfo(hints);
	names[0] = names[1] = 0;
	if (!rc && info->src_addr)
		memcpy(&names[0], info->src_addr, sizeof names[0]);
	if (!rc && info->dest_addr)
		memcpy(&names[1], info->dest_addr, sizeof names[1]);
	fi_freeinfo(info);
	return rc;
}

/* compare_named compares what a node and a service name. */
static int compare_named(void)
{
	static const struct {
		const char *node, *service;
		uint64_t flags;
	} asked[] = {
		{ "cxi0", NULL, FI_SOURCE },
		{ "cxi0", "7", FI_SOURCE },
		{ NULL, "7", FI_SOURCE },
		{ NULL, "0x1fe", FI_SOURCE },
		{ NULL, "0", FI_SOURCE },
		{ "cxi0", "0", FI_SOURCE },
		{ "cxi0", "0", 0 },
		{ NULL, "017", FI_SOURCE },
		{ NULL, "0X1fE", FI_SOURCE },
		{ NULL, "511", FI_SOURCE },
		{ NULL, "x", FI_SOURCE },
		{ "cxi9", NULL, FI_SOURCE },
		{ "cxi0", "7", 0 },
		{ "cxi0", NULL, 0 },
		{ NULL, "7", 0 },
		{ "02:00:00:01:23:45", "7", 0 },
		{ "0x12345", "010", 0 },
		{ "02:00:00:01:23:45", "7", FI_SOURCE },
	};
	int bad = 0;

	for (size_t k = 0; k < sizeof asked / sizeof asked[0]; k++) {
		const char *node = asked[k].node, *service = asked[k].service;
		uint64_t a[2], b[2];
		int theirs = named("cxi", node, service, asked[k].flags, a);
		int ours = named("weft", node, service, asked[k].flags, b);

		if (theirs == ours && !memcmp(a, b, sizeof a))
			continue;
		printf("FAILED node %s, service %s, flags %#" PRIx64 ": %s, %#" PRIx64 ", %#" PRIx64
		       " of prov/cxi, %s, %#" PRIx64 ", %#" PRIx64 " of weft\n",
		       node ? node : "none", service ? service : "none", asked[k].flags, fi_strerror(-theirs), a[0],
		       a[1], fi_strerror(-ours), b[0], b[1]);
		bad++;
	}
	printf("%zu nodes and services compared\n", sizeof asked / sizeof asked[0]);
	return bad;
}

int main(void)
{
	bool differs[COUNT] = {};
	int bad = 0;

	for (size_t wish = 0; wish < sizeof wishes / sizeof wishes[0]; wish++) {
		struct fi_info *theirs = offered("cxi", wish), *ours = offered("weft", wish);

		bad += compare(wishes[wish].name, theirs, ours, differs);
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
	bad += compare_only() + compare_unasked() + compare_named();
	printf("%d fields compared, %d failed\n", (int)COUNT, bad);
	return bad > 0;
}
