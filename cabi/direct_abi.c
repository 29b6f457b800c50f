// SPDX-License-Identifier: BSD-2-Clause

//go:build direct

/* The entry points whose structures have grown, in each version that libfabric 2.x exports.
 *
 * Each version of libfabric's ABI has appended members to the attributes: a caller's
 * structures end where its version ends. What weft returns has the members of all
 * versions, so only what callers pass is copied into whole structures first. A program that
 * was linked against libweft.so itself has the newest version, whatever headers it was
 * compiled with; how long its structures are follows from the API that it asks for. */

#include <stdatomic.h>
#include <string.h>

#include "direct.h"

/* The versions FABRIC_1.x of the ABI that brought members. */
enum abi { ABI_0, ABI_1, ABI_2, ABI_3, ABI_7, ABI_8, ABI_9, ABI_10, ABIS };

/* Bytes of a version's structures. */
struct sizes {
	size_t info, tx, ep, domain, fabric;
};

/* The ends of what libfabric 1.17 knows. */
#define DOMAIN_3 (offsetof(struct fi_domain_attr, tclass) + sizeof(size_t))
#define EP_1 (offsetof(struct fi_ep_attr, auth_key) + sizeof(void *))
#define TX_3 (offsetof(struct fi_tx_attr, tclass) + sizeof(size_t))
#define INFO_2 (offsetof(struct fi_info, nic) + sizeof(void *))
#define FABRIC_1 (offsetof(struct fi_fabric_attr, api_version) + sizeof(uint32_t))

static const struct sizes sizes[ABIS] = {
	[ABI_0] = { offsetof(struct fi_info, nic), offsetof(struct fi_tx_attr, tclass),
		    offsetof(struct fi_ep_attr, auth_key_size),
		    offsetof(struct fi_domain_attr, cntr_cnt),
		    offsetof(struct fi_fabric_attr, api_version) },
	[ABI_1] = { offsetof(struct fi_info, nic), offsetof(struct fi_tx_attr, tclass), EP_1,
		    offsetof(struct fi_domain_attr, tclass), FABRIC_1 },
	[ABI_2] = { INFO_2, offsetof(struct fi_tx_attr, tclass), EP_1,
		    offsetof(struct fi_domain_attr, tclass), FABRIC_1 },
	[ABI_3] = { INFO_2, TX_3, EP_1, DOMAIN_3, FABRIC_1 },
	[ABI_7] = { INFO_2, TX_3, EP_1, DOMAIN_3 + 8, FABRIC_1 },   /* max_ep_auth_key */
	[ABI_8] = { INFO_2, TX_3, EP_1, DOMAIN_3 + 16, FABRIC_1 },  /* max_group_id */
	[ABI_9] = { INFO_2, TX_3, EP_1, DOMAIN_3 + 32, FABRIC_1 },  /* max_cntr_value, max_err_cntr_value */
	[ABI_10] = { INFO_2, TX_3, EP_1 + 8, DOMAIN_3 + 40, FABRIC_1 }, /* xpu_ctx, max_xpu_ctx_cnt */
};

/* A caller's structures with the members of all versions, those that it does not have 0. */
struct whole {
	struct fi_info info;
	struct fi_tx_attr tx;
	struct fi_fabric_attr fabric;
	union {
		struct fi_ep_attr attr;
		char room[sizeof(struct fi_ep_attr) + WEFT_LATER_MEMBERS];
	} ep;
	union {
		struct fi_domain_attr attr;
		char room[sizeof(struct fi_domain_attr) + WEFT_LATER_MEMBERS];
	} domain;
};

/* complete fills w from a caller's info and returns it; NULL for NULL. What the structures
 * point to is shared. */
static const struct fi_info *complete(struct whole *w, const struct fi_info *from, enum abi abi)
{
	const struct sizes *size = &sizes[abi];

	if (!from)
		return NULL;
	memset(w, 0, sizeof(*w));
	memcpy(&w->info, from, size->info);
	if (from->tx_attr)
		w->info.tx_attr = memcpy(&w->tx, from->tx_attr, size->tx);
	if (from->ep_attr)
		w->info.ep_attr = memcpy(&w->ep, from->ep_attr, size->ep);
	if (from->domain_attr)
		w->info.domain_attr = memcpy(&w->domain, from->domain_attr, size->domain);
	if (from->fabric_attr)
		w->info.fabric_attr = memcpy(&w->fabric, from->fabric_attr, size->fabric);
	return &w->info;
}

/* The newest API that the process has asked for. Raised by fi_getinfo, read by fi_dupinfo;
 * relaxed, since it tells only how the program was compiled. */
static _Atomic uint32_t newest;

static void asked(uint32_t version)
{
	uint32_t was = atomic_load_explicit(&newest, memory_order_relaxed);

	while (was < version &&
	       !atomic_compare_exchange_weak_explicit(&newest, &was, version, memory_order_relaxed,
						      memory_order_relaxed))
		;
}

/* of_api is the ABI of a program that asks for an API, as far as that tells. */
static enum abi of_api(uint32_t version)
{
	if (version < FI_VERSION(1, 20))
		return ABI_3;
	if (version < FI_VERSION(2, 0))
		return ABI_7;
	if (version < FI_VERSION(2, 5))
		return ABI_8;
	return ABI_9;
}

static int getinfo(enum abi abi, uint32_t version, const char *node, const char *service,
		   uint64_t flags, const struct fi_info *hints, struct fi_info **info)
{
	struct whole w;

	if (abi == ABI_10)
		abi = of_api(version);
	asked(version);
	return weft_direct_fi_getinfo(version, node, service, flags, complete(&w, hints, abi), info);
}

static struct fi_info *dupinfo(enum abi abi, const struct fi_info *info)
{
	struct whole w;

	if (abi == ABI_10)
		abi = of_api(atomic_load_explicit(&newest, memory_order_relaxed));
	return weft_direct_dupinfo(complete(&w, info, abi));
}

/* VERSION defines the three functions of one version. "@@" marks the one that programs are
 * linked with. */
#define VERSION(n, at)                                                                         \
	WEFT_EXPORT int weft_getinfo_##n(uint32_t version, const char *node, const char *service, \
					 uint64_t flags, const struct fi_info *hints,           \
					 struct fi_info **info);                                \
	WEFT_EXPORT struct fi_info *weft_dupinfo_##n(const struct fi_info *info);               \
	WEFT_EXPORT void weft_freeinfo_##n(struct fi_info *info);                               \
	int weft_getinfo_##n(uint32_t version, const char *node, const char *service,           \
			     uint64_t flags, const struct fi_info *hints, struct fi_info **info) \
	{                                                                                       \
		return getinfo(ABI_##n, version, node, service, flags, hints, info);            \
	}                                                                                       \
	struct fi_info *weft_dupinfo_##n(const struct fi_info *info)                            \
	{                                                                                       \
		return dupinfo(ABI_##n, info);                                                  \
	}                                                                                       \
	void weft_freeinfo_##n(struct fi_info *info) { weft_direct_freeinfo(info); }            \
	__asm__(".symver weft_getinfo_" #n ", fi_getinfo" at "FABRIC_1." #n);                   \
	__asm__(".symver weft_dupinfo_" #n ", fi_dupinfo" at "FABRIC_1." #n);                   \
	__asm__(".symver weft_freeinfo_" #n ", fi_freeinfo" at "FABRIC_1." #n)

VERSION(0, "@");
VERSION(1, "@");
VERSION(2, "@");
VERSION(3, "@");
VERSION(7, "@");
VERSION(8, "@");
VERSION(9, "@");
VERSION(10, "@@");

WEFT_EXPORT int weft_fabric_0(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
WEFT_EXPORT int weft_fabric_1(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

/* The attributes of the first version do not say which API they are of. */
int weft_fabric_0(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	struct fi_fabric_attr whole = { 0 };

	if (!attr)
		return -FI_EINVAL;
	memcpy(&whole, attr, sizes[ABI_0].fabric);
	whole.api_version = FI_VERSION(1, 0);
	return weft_direct_fi_fabric(&whole, fabric, context);
}

int weft_fabric_1(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return weft_direct_fi_fabric(attr, fabric, context);
}

__asm__(".symver weft_fabric_0, fi_fabric@FABRIC_1.0");
__asm__(".symver weft_fabric_1, fi_fabric@@FABRIC_1.1");

int fi_fabric2(struct fi_info *info, struct fid_fabric **fabric, uint64_t flags, void *context);

WEFT_EXPORT int fi_fabric2(struct fi_info *info, struct fid_fabric **fabric, uint64_t flags,
			   void *context)
{
	if (!info || flags)
		return -FI_EINVAL;
	return weft_direct_fi_fabric(info->fabric_attr, fabric, context);
}
