/* SPDX-License-Identifier: BSD-2-Clause
 *
 * libweft.so's own entry points, those that a libfabric has around its providers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "check.h"

int passed, failed, skipped;

/* ask calls fi_getinfo for a provider name. */
static void ask(const char *name, int want)
{
	struct fi_info *hints = fi_allocinfo(), *info = hints;

	hints->fabric_attr->prov_name = name ? strdup(name) : NULL;
	int ret = fi_getinfo(FI_VERSION(1, 11), NULL, NULL, 0, hints, &info);
	CHECK(ret == want, "provider %s: %d, want %d", name ? name : "(any)", ret, want);
	CHECK(!ret == (info != NULL), "info is set on failure or not set on success");
	for (struct fi_info *i = info; i; i = i->next) {
		CHECK(i->fabric_attr->api_version == FI_VERSION(1, 11), "api_version %x", i->fabric_attr->api_version);
		CHECK(i->fabric_attr->prov_version != 0, "prov_version");
		CHECK_STRING(i->fabric_attr->prov_name, "weft");
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void test_getinfo(void)
{
	struct fi_info *info = NULL;

	CHECK(fi_version() == FI_VERSION(2, 6), "%x", fi_version());
	ask(NULL, 0);
	ask("", 0);
	ask("weft", 0);
	ask("WEFT", 0);
	ask("^shm,tcp", 0);
	ask("shm", -FI_ENODATA);	  /* another provider */
	ask("weft;ofi_rxm", -FI_ENODATA); /* a layered one */
	ask("^shm,weft", -FI_ENODATA);	  /* weft is excluded */
	CHECK(fi_getinfo(FI_VERSION(2, 7), NULL, NULL, 0, NULL, &info) == -FI_ENOSYS, "newer");
	CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, NULL) == -FI_EINVAL, "no info");
	CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 1ull << 40, NULL, &info) == -FI_EBADFLAGS, "flags");
	CHECK(!info, "info is set on failure");
}

static void test_fabric(void)
{
	struct fid_fabric *f = NULL;
	struct fi_info *info = NULL;
	char weft[] = "weft", other[] = "tcp";
	struct fi_fabric_attr attr = { .prov_name = weft, .api_version = 0x10009 };

	CHECK(!fi_getinfo(FI_VERSION(1, 9), NULL, NULL, 0, NULL, &info), "an offer");
	attr.name = info->fabric_attr->name;
	CHECK(!fi_fabric(&attr, &f, &attr) && f, "open");
	CHECK(f->api_version == 0x10009 && f->fid.context == &attr, "attributes arrive");
	fi_close(&f->fid);
	attr.prov_name = other;
	CHECK(fi_fabric(&attr, &f, NULL) == -FI_ENODEV, "another provider");
	attr.prov_name = NULL;
	CHECK(fi_fabric(&attr, &f, NULL) == -FI_EINVAL, "no provider");
	CHECK(fi_fabric(NULL, &f, NULL) == -FI_EINVAL, "no attribute");
	fi_freeinfo(info);
	struct fid *fid;
	CHECK(fi_open(FI_VERSION(1, 17), "mr_cache", NULL, 0, 0, &fid, NULL) == -FI_ENOSYS, "open");
	CHECK(fi_open(FI_VERSION(1, 17), NULL, NULL, 0, 0, &fid, NULL) == -FI_EINVAL, "no name");
}

static void test_dupinfo(void)
{
	struct fi_info *info = fi_allocinfo();
	uint8_t key[4] = { 1, 2, 3, 4 };

	CHECK(info && info->tx_attr && info->rx_attr && info->ep_attr && info->domain_attr && info->fabric_attr,
	      "every attribute");
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

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1)
		return log_child(atoi(argv[1]));
	test_log();
	test_getinfo();
	test_fabric();
	test_dupinfo();
	test_param();
	printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
	return failed != 0;
}
