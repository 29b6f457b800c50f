/* SPDX-License-Identifier: BSD-2-Clause
 *
 * libweft.so: libfabric's own entry points (rdma/fabric.h, API 2.6) around the one provider that is linked in. Built
 * with the tag "direct" only; libweft-core.so takes these functions from the libfabric that its application uses.
 * What they do is Go (direct.go, params.go), but for what a forked process may do, too.
 */
#ifndef WEFT_DIRECT_H
#define WEFT_DIRECT_H

#include "goapi.h"
#include "host.h"

/* An entry point of the library; everything else is hidden. */
#define WEFT_EXPORT __attribute__((visibility("default")))

/* The API of the library, whatever headers it is built with. */
#define WEFT_API FI_VERSION(2, 6)

/* Bytes behind each attribute of 1.17 for the members that later versions append; those
 * that weft does not know are 0. */
enum { WEFT_LATER_MEMBERS = 128 };

/* The versions FABRIC_1.x of the ABI that brought members. */
enum weft_abi { ABI_0, ABI_1, ABI_2, ABI_3, ABI_7, ABI_8, ABI_9, ABI_10, ABIS };

/* The attributes that hang on struct fi_info. */
enum weft_part { PART_TX, PART_RX, PART_EP, PART_DOMAIN, PART_FABRIC, PARTS };

/* A caller's structures with the members of all versions, those that it does not have 0. */
struct weft_whole {
	struct fi_info info;
	char parts[PARTS][sizeof(struct fi_domain_attr) + WEFT_LATER_MEMBERS] __attribute__((aligned(8)));
};

/* The library as its own host. Go sets the name that is reported, at the first use. */
extern struct weft_host weft_direct_host;

/* Fills w from a caller's info and returns it; NULL for NULL. What the structures point to is shared. */
const struct fi_info *weft_direct_complete(struct weft_whole *w, const struct fi_info *from, enum weft_abi abi);

/* Copies the first element of a list, which has the members of all versions, or makes an empty one
 * with all attributes for NULL. NULL when memory is short. */
struct fi_info *weft_direct_dupinfo(const struct fi_info *info);

/* Frees a list. */
void weft_direct_freeinfo(struct fi_info *info);

#endif
