/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fi_tostr and fi_strerror against those of the installed libfabric, value by value. Where
 * libfabric's 1.17 does not know a constant that its headers have, weft may.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "../check.h"

int passed, failed, skipped;

static char *(*their_tostr)(char *, size_t, const void *, enum fi_type);
static const char *(*their_strerror)(int);

static void compare(const void *data, enum fi_type type, uint64_t value)
{
	static char ours[8192], theirs[8192];

	fi_tostr_r(ours, sizeof(ours), data, type);
	their_tostr(theirs, sizeof(theirs), data, type);
	if (!*theirs || !strcmp(theirs, "Unknown"))
		CHECK(!*ours || !strncmp(ours, "FI_", 3) || !strcmp(ours, "Unknown"), "type %d value %" PRIx64 ": '%s'",
		      type, value, ours);
	else
		CHECK(!strcmp(ours, theirs), "type %d value %" PRIx64 ":\n%s\nlibfabric:\n%s", type, value, ours,
		      theirs);
}

static void test_enums(void)
{
	static const enum fi_type types[] = {
		FI_TYPE_EP_TYPE,   FI_TYPE_ADDR_FORMAT, FI_TYPE_THREADING,     FI_TYPE_PROGRESS,
		FI_TYPE_PROTOCOL,  FI_TYPE_AV_TYPE,	FI_TYPE_ATOMIC_TYPE,   FI_TYPE_ATOMIC_OP,
		FI_TYPE_EQ_EVENT,  FI_TYPE_OP_TYPE,	FI_TYPE_COLLECTIVE_OP, FI_TYPE_HMEM_IFACE,
		FI_TYPE_CQ_FORMAT, FI_TYPE_LOG_LEVEL,	FI_TYPE_LOG_SUBSYS,    999,
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		for (int value = -1; value < 64; value++)
			compare(&value, types[i], (uint64_t)value);
		uint32_t specific = FI_PROV_SPECIFIC | 'w' << 8 | 'e';
		compare(&specific, types[i], specific);
	}
}

static void test_flags(void)
{
	static const enum fi_type types[] = {
		FI_TYPE_CAPS, FI_TYPE_OP_FLAGS,	      FI_TYPE_MSG_ORDER,
		FI_TYPE_MODE, FI_TYPE_CQ_EVENT_FLAGS, FI_TYPE_MR_MODE,
	};
	/* What only weft names: FI_AV_USER_ID, FI_PEER, FI_XPU_TRIGGER, FI_PEER_TRANSFER,
	 * FI_PRIORITY, FI_COMMIT_COMPLETE. */
	uint64_t known =
		~(FI_AV_USER_ID | FI_PEER | FI_XPU_TRIGGER | FI_PEER_TRANSFER | FI_PRIORITY | FI_COMMIT_COMPLETE);

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		uint64_t value = 0;
		compare(&value, types[i], value);
		for (int bit = 0; bit < 64; bit++) {
			value = 1ull << bit;
			compare(&value, types[i], value);
		}
		compare(&known, types[i], known);
		for (int n = 0; n < 100; n++) {
			value = ((uint64_t)random() << 40 ^ (uint64_t)random() << 20 ^ (uint64_t)random()) & known;
			compare(&value, types[i], value);
		}
	}
}

static void fill(struct fi_info *info)
{
	static uint64_t key = 5;
	struct fi_domain_attr *d = info->domain_attr;

	info->caps = FI_MSG | FI_TAGGED | FI_REMOTE_COMM;
	info->mode = FI_CONTEXT | FI_LOCAL_MR;
	info->tx_attr->op_flags = FI_COMPLETION | FI_INJECT;
	info->tx_attr->msg_order = FI_ORDER_SAS;
	info->tx_attr->comp_order = FI_ORDER_STRICT;
	info->tx_attr->tclass = FI_TC_BULK_DATA;
	info->rx_attr->comp_order = FI_ORDER_DATA;
	info->rx_attr->total_buffered_recv = 77;
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->protocol = FI_PROTO_SHM;
	info->ep_attr->max_msg_size = SIZE_MAX;
	info->ep_attr->mem_tag_format = 0xaaaaaaaaaaaaaaaa;
	info->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	info->ep_attr->rx_ctx_cnt = 3;
	info->ep_attr->auth_key = (uint8_t *)&key;
	info->ep_attr->auth_key_size = sizeof(key);
	d->domain = (struct fid_domain *)(uintptr_t)0x1234;
	d->name = strdup("eth0");
	d->threading = FI_THREAD_DOMAIN;
	d->control_progress = FI_PROGRESS_AUTO;
	d->data_progress = FI_PROGRESS_MANUAL;
	d->resource_mgmt = FI_RM_ENABLED;
	d->av_type = FI_AV_TABLE;
	d->mr_mode = FI_MR_LOCAL | FI_MR_RAW;
	d->caps = FI_LOCAL_COMM;
	d->tclass = FI_TC_LOW_LATENCY;
	info->fabric_attr->prov_version = FI_VERSION(1, 3);
	info->fabric_attr->api_version = FI_VERSION(1, 15);
	info->fabric_attr->prov_name = strdup("weft");
}

static void test_addresses(struct fi_info *info)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(4711) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(7) };

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in6.sin6_addr = in6addr_loopback;
	info->src_addr = &in;
	info->src_addrlen = sizeof(in);
	info->addr_format = FI_SOCKADDR;
	compare(info, FI_TYPE_INFO, 1);
	info->addr_format = FI_SOCKADDR_IN;
	compare(info, FI_TYPE_INFO, 2);
	info->src_addr = &in6;
	info->src_addrlen = sizeof(in6);
	info->addr_format = FI_SOCKADDR_IN6;
	compare(info, FI_TYPE_INFO, 3);
	info->dest_addr = "fi_sockaddr_in://127.0.0.1:5";
	info->dest_addrlen = strlen(info->dest_addr) + 1;
	info->src_addr = NULL;
	info->addr_format = FI_ADDR_STR;
	compare(info, FI_TYPE_INFO, 4);
	info->dest_addr = NULL;
}

static int nic_tostr(const struct fid *fid, char *buf, size_t len)
{
	(void)fid;
	size_t used = strlen(buf); /* libfabric passes what is written so far */
	snprintf(buf + used, len - used, "    nic: mlx5_0\n");
	return 0;
}

static void test_attributes(void)
{
	struct fi_ops ops = { .size = sizeof(ops), .tostr = nic_tostr };
	struct fid_nic nic = { .fid = { .fclass = FI_CLASS_NIC, .ops = &ops } };
	struct fi_info *info = fi_allocinfo();

	compare(info, FI_TYPE_INFO, 0);
	fill(info);
	test_addresses(info);
	compare(info->tx_attr, FI_TYPE_TX_ATTR, 0);
	compare(info->rx_attr, FI_TYPE_RX_ATTR, 0);
	compare(info->ep_attr, FI_TYPE_EP_ATTR, 0);
	compare(info->domain_attr, FI_TYPE_DOMAIN_ATTR, 0);
	compare(info->fabric_attr, FI_TYPE_FABRIC_ATTR, 0);
	for (enum fi_resource_mgmt rm = 0; rm < 4; rm++) {
		info->domain_attr->resource_mgmt = rm;
		compare(info->domain_attr, FI_TYPE_DOMAIN_ATTR, rm);
	}
	info->nic = &nic;
	compare(info, FI_TYPE_INFO, 5);
	compare(&nic.fid, FI_TYPE_FID, 0);
	ops.tostr = NULL;
	compare(&nic.fid, FI_TYPE_FID, 1);
	info->nic = NULL;
	info->ep_attr->auth_key = NULL;
	fi_freeinfo(info);
}

/* test_bounds reads what does not depend on libfabric. */
static void test_bounds(void)
{
	uint64_t caps = FI_MSG | FI_RMA;
	char buf[16];

	memset(buf, 'x', sizeof(buf));
	CHECK(fi_tostr_r(buf, 5, &caps, FI_TYPE_CAPS) == buf, "returns the buffer");
	CHECK(!memcmp(buf, "FI_M\0xxx", 8), "cut: %.8s", buf);
	CHECK(fi_tostr_r(buf, 1, &caps, FI_TYPE_CAPS) == buf && !buf[0], "room for nothing");
	CHECK(!fi_tostr_r(buf, 0, &caps, FI_TYPE_CAPS), "no room");
	CHECK_STRING(fi_tostr(NULL, FI_TYPE_INFO), "(null)");
	CHECK_STRING(fi_tostr(NULL, FI_TYPE_VERSION), "2.6.0");
	CHECK_STRING(fi_strerror(270), "Memory registration limit exceeded"); /* FI_ENOMR */
	CHECK_STRING(fi_tostr(&caps, FI_TYPE_CAPS), "FI_MSG, FI_RMA");
	CHECK_STRING(fi_strerror(FI_ETRUNC), "Truncation error");
	CHECK_STRING(fi_strerror(-FI_ETRUNC), "Truncation error");
	for (int e = FI_EOTHER; e < FI_ERRNO_MAX; e++)
		CHECK(fi_strerror(e) && (e == FI_EOTHER || strcmp(fi_strerror(e), fi_strerror(FI_EOTHER))), "error %d",
		      e);
}

static void test_tostr(void)
{
	test_bounds();
	void *lib = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	if (lib) {
		their_tostr = (char *(*)(char *, size_t, const void *, enum fi_type))dlsym(lib, "fi_tostr_r");
		their_strerror = (const char *(*)(int))dlsym(lib, "fi_strerror");
		const char *(*tostr)(const void *, enum fi_type) =
			(const char *(*)(const void *, enum fi_type))dlsym(lib, "fi_tostr");
		if (strncmp(tostr(&lib, FI_TYPE_VERSION), "1.17.", 5))
			lib = NULL;
	}
	if (!lib) {
		printf("no libfabric 1.17 to compare fi_tostr with\n");
		skipped++;
		return;
	}
	test_enums();
	test_flags();
	test_attributes();
	for (int e = -300; e < 300; e++) {
		char ours[128];
		if (abs(e) > FI_ENORX && abs(e) < FI_ENORX + 3)
			continue; /* later than 1.17 */
		snprintf(ours, sizeof(ours), "%s", fi_strerror(e));
		CHECK_STRING(ours, their_strerror(e));
	}
}

int main(void)
{
	test_tostr();
	printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
	return failed != 0;
}
