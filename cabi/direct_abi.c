// SPDX-License-Identifier: BSD-2-Clause

//go:build direct

/* The entry points whose structures have grown, in each version that libfabric 2.x exports.
 *
 * A program that was linked against libweft.so itself has the newest version, whatever headers it was
 * compiled with; how long its structures are follows from the API that it asks for. */

#include <stdatomic.h>
#include <string.h>

#include "direct.h"

/* The newest API that the process has asked for. Raised by fi_getinfo, read by fi_dupinfo;
 * relaxed, since it says only how the program was compiled. */
static _Atomic uint32_t newest;

static void asked(uint32_t version)
{
	uint32_t was = atomic_load_explicit(&newest, memory_order_relaxed);

	while (was < version && !atomic_compare_exchange_weak_explicit(&newest, &was, version, memory_order_relaxed,
								       memory_order_relaxed))
		;
}

/* The ABI of a program that asks for an API, as far as that says. */
static enum weft_abi of_api(uint32_t version)
{
	if (version < FI_VERSION(1, 20))
		return ABI_3;
	if (version < FI_VERSION(2, 0))
		return ABI_7;
	return version < FI_VERSION(2, 5) ? ABI_8 : ABI_9;
}

static int getinfo(enum weft_abi abi, uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info)
{
	struct weft_whole w;

	if (weft_forked())
		return weft_fork_refusal();
	asked(version);
	hints = weft_direct_complete(&w, hints, abi == ABI_10 ? of_api(version) : abi);
	return weftGoDirectGetInfo(version, (char *)node, (char *)service, flags, (struct fi_info *)hints, info);
}

static struct fi_info *dupinfo(enum weft_abi abi, const struct fi_info *info)
{
	struct weft_whole w;

	if (abi == ABI_10)
		abi = of_api(atomic_load_explicit(&newest, memory_order_relaxed));
	return weft_direct_dupinfo(weft_direct_complete(&w, info, abi));
}

/* VERSION defines the three functions of one version. "@@" marks the one that programs are
 * linked with. */
#define VERSION(n, at) \
	WEFT_EXPORT int weft_getinfo_##n(uint32_t version, const char *node, const char *service, uint64_t flags, \
					 const struct fi_info *hints, struct fi_info **info) \
	{ \
		return getinfo(ABI_##n, version, node, service, flags, hints, info); \
	} \
	WEFT_EXPORT struct fi_info *weft_dupinfo_##n(const struct fi_info *info) \
	{ \
		return dupinfo(ABI_##n, info); \
	} \
	WEFT_EXPORT void weft_freeinfo_##n(struct fi_info *info) \
	{ \
		weft_direct_freeinfo(info); \
	} \
	__asm__(".symver weft_getinfo_" #n ", fi_getinfo" at "FABRIC_1." #n); \
	__asm__(".symver weft_dupinfo_" #n ", fi_dupinfo" at "FABRIC_1." #n); \
	__asm__(".symver weft_freeinfo_" #n ", fi_freeinfo" at "FABRIC_1." #n)

VERSION(0, "@");
VERSION(1, "@");
VERSION(2, "@");
VERSION(3, "@");
VERSION(7, "@");
VERSION(8, "@");
VERSION(9, "@");
VERSION(10, "@@");

WEFT_EXPORT int weft_fabric_1(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	int rc;

	if (!attr || !attr->prov_name || !attr->name || !fabric)
		return -FI_EINVAL;
	if (weft_forked())
		return weft_fork_refusal();
	rc = weftGoDirectNamed(attr->prov_name);
	return rc ? rc : weft_fabric_for(&weft_direct_host, attr, fabric, context);
}

/* The attributes of the first version do not say which API they are of. */
WEFT_EXPORT int weft_fabric_0(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	struct fi_fabric_attr whole = { 0 };

	if (!attr)
		return -FI_EINVAL;
	memcpy(&whole, attr, offsetof(struct fi_fabric_attr, api_version));
	whole.api_version = FI_VERSION(1, 0);
	return weft_fabric_1(&whole, fabric, context);
}

__asm__(".symver weft_fabric_0, fi_fabric@FABRIC_1.0");
__asm__(".symver weft_fabric_1, fi_fabric@@FABRIC_1.1");

WEFT_EXPORT int fi_fabric2(struct fi_info *info, struct fid_fabric **fabric, uint64_t flags, void *context)
{
	if (!info || flags)
		return -FI_EINVAL;
	return weft_fabric_1(info->fabric_attr, fabric, context);
}
