/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints of FI_PROTO_CXI: authorisation keys and capabilities of sources in hints and in attributes of domains and
 * endpoints. Without a NIC of Slingshot, or its model (tests/clients/cxi.sh), all is skipped. */
#include "common.h"

/* struct cxi_auth_key */
struct key {
	uint32_t service;
	uint16_t vni;
};

static const struct key good = { 1, 10 };
static struct node_opts opts = { .caps = FI_MSG | FI_TAGGED, .addr_format = FI_ADDR_CXI };

/* Puts a key into the attributes of the domain or (at_ep) of the endpoint. size counts, of which there are so many. */
static void give(struct fi_info *info, bool at_ep, const struct key *key, size_t there, size_t size)
{
	uint8_t **to = at_ep ? &info->ep_attr->auth_key : &info->domain_attr->auth_key;
	uint8_t bytes[16] = { 0 };

	memcpy(bytes, key, sizeof(*key));
	free(*to);
	*to = NULL;
	if (there) {
		*to = calloc(1, sizeof(bytes));
		CHECK(*to);
		memcpy(*to, bytes, there);
	}
	*(at_ep ? &info->ep_attr->auth_key_size : &info->domain_attr->auth_key_size) = size;
}

/* An info of which the attributes of the domain or the endpoint have a key. */
static struct fi_info *info_with(bool at_ep, const struct key *key)
{
	struct fi_info *info = node_offered(node_hints(&opts));

	CHECK(info);
	give(info, at_ep, key, sizeof(*key), sizeof(*key));
	return info;
}

/* A key of a service with its VNI is in what is offered. */
static void test_given(long at_ep)
{
	struct fi_info *hints, *info;
	struct key *got;
	size_t size;

	node_need(&opts);
	hints = node_hints(&opts);
	give(hints, at_ep, &good, sizeof(good), sizeof(good));
	info = node_offered(hints);
	CHECK(info);
	got = (struct key *)(at_ep ? info->ep_attr->auth_key : info->domain_attr->auth_key);
	size = at_ep ? info->ep_attr->auth_key_size : info->domain_attr->auth_key_size;
	CHECK(got && size == sizeof(good) && got->service == good.service && got->vni == good.vni);
	fi_freeinfo(info);
}

/* Keys of another length are not offered; a length without a key is none, and one of no length is no key. */
static void test_sizes(long at_ep)
{
	static const size_t bad[] = { 1, 5, 9, 16 };
	struct fi_info *hints, *info;

	node_need(&opts);
	for (size_t k = 0; k < ARRAY_LEN(bad); k++) {
		hints = node_hints(&opts);
		give(hints, at_ep, &good, bad[k], bad[k]);
		CHECKF(!node_offered(hints), "%zu bytes are offered", bad[k]);
	}
	hints = node_hints(&opts);
	give(hints, at_ep, &good, 0, sizeof(good));
	CHECK(!node_offered(hints));
	hints = node_hints(&opts);
	give(hints, at_ep, &good, sizeof(good), 0);
	info = node_offered(hints);
	CHECK(info && !info->domain_attr->auth_key_size && !info->ep_attr->auth_key_size);
	fi_freeinfo(info);
}

/* A service that is not there, or without the VNI, is neither offered nor opened, at a domain or an endpoint. */
static void test_values(long at_ep)
{
	static const struct key bad[] = { { 0xffff, 1 }, { 1, 99 }, { 1, 0 }, { 2, 10 } };

	node_need(&opts);
	for (size_t k = 0; k < ARRAY_LEN(bad); k++) {
		struct fi_info *hints = node_hints(&opts), *info;
		struct fid_fabric *fabric;
		struct fid_domain *domain;
		struct fid_ep *ep;

		give(hints, at_ep, &bad[k], sizeof(good), sizeof(good));
		CHECKF(!node_offered(hints), "service %u, VNI %u is offered", bad[k].service, bad[k].vni);
		info = info_with(at_ep, &bad[k]);
		OK(fi_fabric(info->fabric_attr, &fabric, NULL));
		CHECK_RC(fi_domain(fabric, info, &domain, NULL), at_ep ? 0 : -FI_EINVAL);
		if (at_ep) {
			CHECK_RC(fi_endpoint(domain, info, &ep, NULL), -FI_EINVAL);
			OK(fi_close(&domain->fid));
		}
		OK(fi_close(&fabric->fid));
		fi_freeinfo(info);
	}
}

/* An endpoint with a PID and a key of its own, NULL: it has none, on a domain with a key. */
static void open_keyed(struct node *n, const struct key *key, const struct key *own, uint64_t pid)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	uint64_t name;

	memset(n, 0, sizeof(*n));
	n->o = opts;
	n->info = info_with(false, key);
	if (own)
		give(n->info, true, own, sizeof(*own), sizeof(*own));
	OK(fi_fabric(n->info->fabric_attr, &n->fabric, NULL));
	OK(fi_domain(n->fabric, n->info, &n->domain, NULL));
	OK(fi_av_open(n->domain, &av, &n->av, NULL));
	OK(fi_cq_open(n->domain, &cq, &n->txcq, NULL));
	n->rxcq = n->txcq;
	OK(fi_endpoint(n->domain, n->info, &n->ep, NULL));
	OK(fi_ep_bind(n->ep, &n->av->fid, 0));
	OK(fi_ep_bind(n->ep, &n->txcq->fid, FI_TRANSMIT | FI_RECV));
	memcpy(&name, n->info->src_addr, sizeof(name));
	name = (name & ~0x1ffull) | pid;
	OK(fi_setname(&n->ep->fid, &name, sizeof(name)));
	OK(fi_enable(n->ep));
}

static void close_keyed(struct node *n)
{
	OK(fi_close(&n->ep->fid));
	OK(fi_close(&n->av->fid));
	OK(fi_close(&n->txcq->fid));
	OK(fi_close(&n->domain->fid));
	OK(fi_close(&n->fabric->fid));
	fi_freeinfo(n->info);
}

/* Endpoints of one VNI reach each other, be it their domain's or their own; a message to one of another VNI ends with
 * an error. */
static void test_networks(long own)
{
	const struct key keys[3] = { { 1, 10 }, { 1, own ? 1 : 10 }, { 1, 1 } };
	struct node n[3];
	char in[8], out[8] = "by key";
	struct fi_cq_tagged_entry e;
	ssize_t rc;

	node_need(&opts);
	for (int k = 0; k < 3; k++)
		open_keyed(&n[k], &keys[k], k == 1 ? &good : NULL, 130 + (uint64_t)k);
	for (int k = 1; k < 3; k++) {
		struct name name;
		fi_addr_t to;

		node_name(&n[k], &name);
		((uint16_t *)name.bytes)[2] = 0; /* the VNI: that of whatever uses the name */
		CHECK_RC(fi_av_insert(n[0].av, name.bytes, 1, &to, 0, NULL), 1);
		OK(fi_trecv(n[k].ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, in));
		OK(fi_tsend(n[0].ep, out, sizeof(out), NULL, to, 1, out));
		while ((rc = fi_cq_read(n[0].txcq, &e, 1)) == -FI_EAGAIN)
			(void)fi_cq_read(n[2].txcq, NULL, 0);
		CHECK_RC(rc, k == 1 ? 1 : -FI_EAVAIL);
		if (k == 2)
			continue;
		while (fi_cq_read(n[k].txcq, &e, 1) == -FI_EAGAIN)
			;
		CHECK(e.op_context == in && !strcmp(in, out));
	}
	for (int k = 0; k < 3; k++)
		close_keyed(&n[k]);
}

/* FI_SOURCE and FI_SOURCE_ERR are offered to those that ask for them, the second only with the first. What asks for
 * nothing may get the first, and never the second. */
static void test_source(long arg)
{
	static const struct {
		uint64_t caps, want;
		bool none;
	} asks[] = {
		{ 0, FI_SOURCE, false },
		{ FI_MSG, 0, false },
		{ FI_MSG | FI_SOURCE, FI_SOURCE, false },
		{ FI_MSG | FI_SOURCE | FI_SOURCE_ERR, FI_SOURCE | FI_SOURCE_ERR, false },
		{ FI_MSG | FI_SOURCE_ERR, 0, true },
	};

	(void)arg;
	node_need(&opts);
	for (size_t k = 0; k < ARRAY_LEN(asks); k++) {
		struct fi_info *hints = node_hints(&opts), *info;

		hints->caps = asks[k].caps;
		info = node_offered(hints);
		CHECKF(!info == asks[k].none, "ask %zu", k);
		if (!info)
			continue;
		CHECKF((info->caps & (FI_SOURCE | FI_SOURCE_ERR)) == asks[k].want, "ask %zu: %#llx", k,
		       (unsigned long long)info->caps);
		fi_freeinfo(info);
	}
}

static const struct test tests[] = {
	{ "given_domain", test_given, 1, 0, false },
	{ "given_endpoint", test_given, 1, 0, true },
	{ "sizes_domain", test_sizes, 1, 0, false },
	{ "sizes_endpoint", test_sizes, 1, 0, true },
	{ "values_domain", test_values, 1, 0, false },
	{ "values_endpoint", test_values, 1, 0, true },
	{ "networks", test_networks, 1, 0, false },
	{ "networks_endpoint", test_networks, 1, 0, true },
	{ "source", test_source, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
