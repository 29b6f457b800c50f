/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_AV_AUTH_KEY at endpoints of FI_PROTO_CXI: one of two VNIs of a service, and others of one each, of one process.
 * Without a NIC of Slingshot, or its model (tests/clients/cxi.sh), all is skipped. */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "common.h"

#if FI_MAJOR_VERSION == 1 && FI_MINOR_VERSION < 20

static void test_skipped(long unused)
{
	(void)unused;
	SKIP("these headers are of libfabric %d.%d, FI_AV_AUTH_KEY came with 1.20", FI_MAJOR_VERSION, FI_MINOR_VERSION);
}

static const struct test tests[] = { { "avkeys", test_skipped, 1, 0, 0 } };

#else

#define LARGE 300000

/* struct cxi_auth_key */
struct key {
	uint32_t service;
	uint16_t vni;
};

static const struct key keys[] = { { 1, 10 }, { 1, 1 } };
static struct node hub, spokes[2];
static fi_addr_t handles[2], to[2], back[2];
static unsigned char in[LARGE], out[LARGE], there[LARGE];

static struct node_opts opts = {
	.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SOURCE | FI_SOURCE_ERR,
	.mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED,
	.addr_format = FI_ADDR_CXI,
};

/* Hints for keys in address vectors, or with one for the domain. */
static struct fi_info *hints_of(const struct key *key, size_t count)
{
	struct fi_info *hints = node_hints(&opts);

	if (key) {
		hints->domain_attr->auth_key = malloc(sizeof(*key));
		CHECK(hints->domain_attr->auth_key);
		memcpy(hints->domain_attr->auth_key, key, sizeof(*key));
	}
	hints->domain_attr->auth_key_size = key ? sizeof(*key) : FI_AV_AUTH_KEY;
	hints->domain_attr->max_ep_auth_key = count;
	return hints;
}

/* A node that is not enabled. */
static void open_node(struct node *n, struct fi_info *hints)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av = { .type = FI_AV_TABLE };

	memset(n, 0, sizeof(*n));
	n->o = opts;
	if (node_getinfo(FI_VERSION(1, 20), hints, &n->info))
		SKIP("no device here has FI_PROTO_CXI");
	OK(fi_fabric(n->info->fabric_attr, &n->fabric, NULL));
	OK(fi_domain(n->fabric, n->info, &n->domain, NULL));
	OK(fi_av_open(n->domain, &av, &n->av, NULL));
	OK(fi_cq_open(n->domain, &cq, &n->txcq, NULL));
	n->rxcq = n->txcq;
	OK(fi_endpoint(n->domain, n->info, &n->ep, NULL));
	OK(fi_ep_bind(n->ep, &n->av->fid, 0));
	OK(fi_ep_bind(n->ep, &n->txcq->fid, FI_TRANSMIT | FI_RECV));
}

static void close_node(struct node *n)
{
	if (n->ep)
		OK(fi_close(&n->ep->fid));
	OK(fi_close(&n->av->fid));
	OK(fi_close(&n->txcq->fid));
	OK(fi_close(&n->domain->fid));
	OK(fi_close(&n->fabric->fid));
	fi_freeinfo(n->info);
}

static fi_addr_t know(struct node *n, struct node *other, fi_addr_t handle)
{
	struct name name;

	node_name(other, &name);
	CHECK_RC(fi_av_insert(n->av, name.bytes, 1, &handle, handle == FI_ADDR_UNSPEC ? 0 : FI_AUTH_KEY, NULL), 1);
	return handle;
}

/* The hub, and a spoke of each key, all of which know each other. */
static void open_all(void)
{
	open_node(&hub, hints_of(NULL, 2));
	for (int k = 0; k < 2; k++)
		OK(fi_av_insert_auth_key(hub.av, &keys[k], sizeof(keys[k]), &handles[k], 0));
	OK(fi_enable(hub.ep));
	for (int k = 0; k < 2; k++) {
		open_node(&spokes[k], hints_of(&keys[k], 0));
		OK(fi_enable(spokes[k].ep));
		to[k] = know(&hub, &spokes[k], handles[k]);
		back[k] = know(&spokes[k], &hub, FI_ADDR_UNSPEC);
	}
}

static void close_all(void)
{
	for (int k = 0; k < 2; k++)
		close_node(&spokes[k]);
	close_node(&hub);
}

static void progress_all(void)
{
	progress(&hub);
	progress(&spokes[0]);
	progress(&spokes[1]);
}

/* The next completion of a node, and its source. */
static fi_addr_t ends(struct node *n, void *ctx)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t src = FI_ADDR_UNSPEC;
	ssize_t rc;

	while ((rc = fi_cq_readfrom(n->txcq, &e, 1, &src)) == -FI_EAGAIN)
		progress_all();
	CHECKF(rc == 1 && e.op_context == ctx, "%zd, %p", rc, e.op_context);
	return src;
}

static void test_getinfo(long unused)
{
	struct fi_info *info, *hints;

	(void)unused;
	if (node_getinfo(FI_VERSION(1, 20), hints_of(NULL, 0), &info))
		SKIP("no device here has FI_PROTO_CXI");
	CHECK(info->domain_attr->auth_key_size == FI_AV_AUTH_KEY && !info->domain_attr->auth_key);
	CHECK(info->domain_attr->max_ep_auth_key == 4 && !info->ep_attr->auth_key_size);
	fi_freeinfo(info);
	CHECK_RC(node_getinfo(FI_VERSION(1, 20), hints_of(NULL, 5), &info), -FI_ENODATA);
	for (size_t count = 0; count < 2; count++) { /* the NIC cannot distinguish senders under two keys */
		hints = hints_of(NULL, count);
		hints->caps |= FI_DIRECTED_RECV;
		CHECK_RC(node_getinfo(FI_VERSION(1, 20), hints, &info), count == 1 ? 0 : -FI_ENODATA);
		if (count == 1)
			fi_freeinfo(info);
	}
	hints = hints_of(NULL, 2);
	CHECK_RC(fi_getinfo(FI_VERSION(1, 19), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	OK(node_getinfo(FI_VERSION(1, 20), hints, &info));
	CHECK(info->domain_attr->max_ep_auth_key == 2);
	fi_freeinfo(info);
}

/* Keys that are none, or none of the service; an endpoint without any; those that are in use. */
static void test_keys(long unused)
{
	static const struct key bad[] = { { 1, 99 }, { 1, 0 }, { 2, 1 } };
	struct key got;
	size_t len = sizeof(got);
	fi_addr_t none;

	(void)unused;
	open_node(&hub, hints_of(NULL, 2));
	CHECK_RC(fi_enable(hub.ep), -FI_EINVAL);
	for (size_t k = 0; k < ARRAY_LEN(bad); k++)
		CHECK_RC(fi_av_insert_auth_key(hub.av, &bad[k], sizeof(bad[k]), &none, 0), -FI_EINVAL);
	CHECK_RC(fi_av_insert_auth_key(hub.av, &keys[0], 4, &none, 0), -FI_EINVAL);
	for (int k = 0; k < 2; k++)
		OK(fi_av_insert_auth_key(hub.av, &keys[k], sizeof(keys[k]), &handles[k], 0));
	OK(fi_av_lookup_auth_key(hub.av, handles[1], &got, &len));
	CHECK(len == sizeof(got) && got.vni == 1);
	CHECK(got.service == 1 || deviates("avkeys_service"));
	OK(fi_enable(hub.ep));
	CHECK_RC(fi_av_remove(hub.av, handles, 1, FI_AUTH_KEY), -FI_EBUSY);
	OK(fi_close(&hub.ep->fid));
	hub.ep = NULL;
	OK(fi_av_remove(hub.av, handles, 2, FI_AUTH_KEY));
	close_node(&hub);
}

/* Messages of every way both ways under both keys; the key says what has sent. */
static void test_messages(long unused)
{
	static const size_t sizes[] = { 0, 8, 192, 193, 18434, LARGE };

	(void)unused;
	open_all();
	for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
		for (int k = 0; k < 4; k++) {
			struct node *from = k < 2 ? &hub : &spokes[k % 2], *at = k < 2 ? &spokes[k % 2] : &hub;
			fi_addr_t dest = k < 2 ? to[k] : back[k % 2], source = k < 2 ? back[k] : to[k % 2];

			fill(out, sizes[s], s + 10 * (size_t)k);
			OK(fi_trecv(at->ep, in, sizes[s], NULL, FI_ADDR_UNSPEC, 7, 0, in));
			tsend(from, out, sizes[s], dest, 7, out);
			CHECK(ends(at, in) == source);
			ends(from, out);
			verify(in, sizes[s], s + 10 * (size_t)k);
		}
	}
	close_all();
}

/* A sender that is not in the address vector is named by its key. */
static void test_unknown(long unused)
{
	ssize_t rc;

	(void)unused;
	open_all();
	OK(fi_av_remove(hub.av, &to[1], 1, 0));
	OK(fi_trecv(hub.ep, in, 8, NULL, FI_ADDR_UNSPEC, 7, 0, in));
	tsend(&spokes[1], out, 8, back[1], 7, out);
	ends(&spokes[1], out);
	while ((rc = fi_cq_read(hub.txcq, in, 1)) == -FI_EAGAIN)
		progress_all();
	CHECK_RC(rc, -FI_EAVAIL);
	CHECK_RC(fi_cq_readerr(hub.txcq, &hub.err, 0), 1);
	CHECK(hub.err.err == FI_EADDRNOTAVAIL && hub.err.src_addr == handles[1] && hub.err.op_context == in);
	close_all();
}

/* Memory of the hub is reached under both keys, and the hub reaches that of either; a region for one key is refused. */
static void test_memory(long key)
{
	struct iovec iov = { there, sizeof(there) };
	struct fi_mr_auth_key auth = { .src_addr = FI_ADDR_UNSPEC };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = FI_REMOTE_WRITE | FI_REMOTE_READ,
				   .requested_key = (uint64_t)key,
				   .auth_key = (uint8_t *)&auth,
				   .auth_key_size = sizeof(auth) };
	struct fid_mr *mr;

	open_all();
	auth.av = hub.av;
	auth.src_addr = handles[0];
	CHECK_RC(fi_mr_regattr(hub.domain, &attr, FI_AUTH_KEY, &mr), -FI_EOPNOTSUPP);
	auth.src_addr = FI_ADDR_UNSPEC;
	for (int k = 0; k < 4; k++) {
		struct node *from = k < 2 ? &spokes[k] : &hub, *at = k < 2 ? &hub : &spokes[k - 2];
		fi_addr_t dest = k < 2 ? back[k] : to[k - 2];
		uint64_t was = 0;

		if (at == &hub)
			OK(fi_mr_regattr(at->domain, &attr, 0, &mr));
		else
			OK(fi_mr_reg(at->domain, there, sizeof(there), attr.access, 0, (uint64_t)key, 0, &mr, NULL));
		OK(fi_mr_bind(mr, &at->ep->fid, 0));
		OK(fi_mr_enable(mr));
		fill(out, LARGE, (size_t)k);
		OK(fi_write(from->ep, out, LARGE, NULL, dest, 0, (uint64_t)key, out));
		ends(from, out);
		verify(there, LARGE, (size_t)k);
		OK(fi_read(from->ep, in, LARGE, NULL, dest, 0, (uint64_t)key, in));
		ends(from, in);
		verify(in, LARGE, (size_t)k);
		OK(fi_fetch_atomic(from->ep, NULL, 1, NULL, &was, NULL, dest, 8, (uint64_t)key, FI_UINT64,
				   FI_ATOMIC_READ, in));
		ends(from, in);
		CHECK(!memcmp(&was, there + 8, sizeof(was)));
		OK(fi_close(&mr->fid));
	}
	close_all();
}

static const struct test tests[] = {
	{ "getinfo", test_getinfo, 1, 0, 0 },	{ "keys", test_keys, 1, 0, 0 },
	{ "messages", test_messages, 1, 0, 0 }, { "unknown", test_unknown, 1, 0, 0 },
	{ "memory", test_memory, 1, 0, 5000 },	{ "memory_optimised", test_memory, 1, 0, 57 },
};

#endif

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
