/* SPDX-License-Identifier: BSD-2-Clause
 *
 * libweft.so's own entry points (cabi/direct_*.c) without the provider: the
 * two hooks are played by this file.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "../../cabi/direct.h"
#include "../../cabi/host.h"
#include "check.h"

int passed, failed, skipped;

struct fi_provider weft_provider = {.name = "weft", .version = FI_VERSION(7, 3)};
const char *weft_reported_name = "weft";

int weft_ready(void)
{
	return 0;
}

static struct {
	int calls;
	uint32_t version;
	bool hints;
	bool prov_name;
	int ret;
	int infos;
} hook;

char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type type)
{
	snprintf(buf, len, "%d.%u", type, *(const uint32_t *)data); /* no format's name */
	return buf;
}

int weft_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		 const struct fi_info *hints, struct fi_info **info)
{
	(void)node;
	(void)service;
	(void)flags;
	hook.calls++;
	hook.version = version;
	hook.hints = hints != NULL;
	hook.prov_name = hints && hints->fabric_attr && hints->fabric_attr->prov_name;
	for (int i = 0; i < hook.infos; i++) {
		struct fi_info *one = weft_direct_dupinfo(hints);
		one->next = *info;
		*info = one;
	}
	return hook.ret;
}

static struct fid_fabric fabric;

int weft_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	(void)attr;
	fabric.fid.context = context;
	*out = &fabric;
	return hook.ret;
}

/* ask calls fi_getinfo for a provider name and returns how often the hook ran. */
static int ask(const char *name, int want)
{
	struct fi_info *hints = fi_allocinfo(), *info = hints;

	hints->fabric_attr->prov_name = name ? strdup(name) : NULL;
	hook.calls = 0;
	int ret = fi_getinfo(FI_VERSION(1, 11), NULL, NULL, 0, hints, &info);
	CHECK(ret == want, "provider %s: %d, want %d", name ? name : "(any)", ret, want);
	CHECK(!hook.prov_name, "the hook got a provider name");
	CHECK(!ret == (info != NULL), "info is set on failure or not set on success");
	for (struct fi_info *i = info; i; i = i->next) {
		CHECK(i->fabric_attr->api_version == FI_VERSION(1, 11), "api_version %x",
		      i->fabric_attr->api_version);
		CHECK(i->fabric_attr->prov_version == FI_VERSION(7, 3), "prov_version");
		CHECK_STRING(i->fabric_attr->prov_name, "weft");
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return hook.calls;
}

static void test_getinfo(void)
{
	struct fi_info *info = NULL;

	hook.infos = 2;
	CHECK(fi_version() == FI_VERSION(2, 6), "%x", fi_version());
	CHECK(ask(NULL, 0) == 1, "the hook runs once");
	CHECK(ask("weft", 0) == 1, "the hook runs once");
	CHECK(ask("WEFT", 0) == 1, "the hook runs once");
	CHECK(ask("^shm,tcp", 0) == 1, "the hook runs once");
	CHECK(ask("shm", -FI_ENODATA) == 0, "another provider");
	CHECK(ask("weft;ofi_rxm", -FI_ENODATA) == 0, "a layered provider");
	CHECK(ask("^shm,weft", -FI_ENODATA) == 0, "weft is excluded");
	hook.ret = -FI_ENODATA;
	CHECK(ask(NULL, -FI_ENODATA) == 1, "what the hook left on failure is freed");
	hook.ret = 0;
	hook.infos = 0;
	CHECK(ask(NULL, -FI_ENODATA) == 1, "no info is no data");
	hook.calls = 0;
	CHECK(fi_getinfo(FI_VERSION(2, 7), NULL, NULL, 0, NULL, &info) == -FI_ENOSYS, "newer");
	CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, NULL) == -FI_EINVAL, "no info");
	CHECK(hook.calls == 0, "the hook ran");
}

static void test_fabric(void)
{
	struct fid_fabric *f = NULL;
	char name[] = "net", weft[] = "weft", other[] = "tcp";
	struct fi_fabric_attr attr = {.name = name, .prov_name = weft, .api_version = 0x10009};

	CHECK(!fi_fabric(&attr, &f, &attr) && f == &fabric, "open");
	CHECK(f->api_version == 0x10009 && f->fid.context == &attr, "attributes arrive");
	attr.prov_name = other;
	CHECK(fi_fabric(&attr, &f, NULL) == -FI_ENODEV, "another provider");
	attr.prov_name = NULL;
	CHECK(fi_fabric(&attr, &f, NULL) == -FI_EINVAL, "no provider");
	CHECK(fi_fabric(NULL, &f, NULL) == -FI_EINVAL, "no attribute");
	struct fid *fid;
	CHECK(fi_open(FI_VERSION(1, 17), "mr_cache", NULL, 0, 0, &fid, NULL) == -FI_ENOSYS, "open");
	CHECK(fi_open(FI_VERSION(1, 17), NULL, NULL, 0, 0, &fid, NULL) == -FI_EINVAL, "no name");
}

static void test_dupinfo(void)
{
	struct fi_info *info = fi_allocinfo();
	uint8_t key[4] = {1, 2, 3, 4};

	CHECK(info && info->tx_attr && info->rx_attr && info->ep_attr && info->domain_attr &&
		      info->fabric_attr, "every attribute");
	info->src_addr = strdup("0123456789abcdef");
	info->src_addrlen = 16;
	info->next = info;
	info->handle = (fid_t)(void *)info;
	info->domain_attr->name = strdup("lo");
	info->ep_attr->auth_key = key;
	info->ep_attr->auth_key_size = sizeof(key);
	free(info->rx_attr);
	info->rx_attr = NULL;

	struct fi_info *copy = fi_dupinfo(info);
	CHECK(copy && !copy->next && copy->handle == info->handle && !copy->rx_attr, "members");
	CHECK(copy->src_addr != info->src_addr && !memcmp(copy->src_addr, info->src_addr, 16), "src");
	CHECK(copy->ep_attr->auth_key != key && !memcmp(copy->ep_attr->auth_key, key, 4), "key");
	CHECK_STRING(copy->domain_attr->name, "lo");
	fi_freeinfo(copy);
	info->ep_attr->auth_key = NULL;
	info->next = NULL;
	fi_freeinfo(info);
	fi_freeinfo(NULL);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	test_log(); /* first: it wants processes that have not logged */
	test_getinfo();
	test_fabric();
	test_dupinfo();
	test_param();
	printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
	return failed != 0;
}
