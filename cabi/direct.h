/* SPDX-License-Identifier: BSD-2-Clause
 *
 * libweft.so: libfabric's own entry points (rdma/fabric.h, API 2.6) around
 * the one provider that is linked in. Built with the tag "direct" only;
 * libweft-core.so takes these functions from the libfabric that its application uses.
 *
 * The provider is reached through the two hooks below, which are the getinfo
 * and fabric members of its struct fi_provider.
 */
#ifndef WEFT_DIRECT_H
#define WEFT_DIRECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>

/* An entry point of the library; everything else is hidden. */
#define WEFT_EXPORT __attribute__((visibility("default")))

/* The API of the library, whatever headers it is built with. */
#define WEFT_API FI_VERSION(2, 6)

/* Bytes behind each attribute of 1.17 for the members that later versions append; those
 * that weft does not know are 0. */
enum { WEFT_LATER_MEMBERS = 128 };

/* weft_getinfo is fi_getinfo after the checks that do not depend on the
 * provider: version is at most WEFT_API, info is not NULL, the provider name in
 * hints admits weft. It returns 0 or a negative errno; what it stores in *info
 * was allocated with weft_direct_dupinfo. */
int weft_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		 const struct fi_info *hints, struct fi_info **info);

/* weft_fabric is fi_fabric after the check that attr names weft. */
int weft_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

/* The entry points as calls that cannot be interposed by a libfabric in the
 * same process. */

/* fi_getinfo and fi_fabric; the endpoint and domain attributes of hints have room for
 * later members behind them (direct_abi.c). */
int weft_direct_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			   const struct fi_info *hints, struct fi_info **info);
int weft_direct_fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

/* weft_direct_dupinfo copies the first element of a list, whose endpoint and domain
 * attributes have room for later members behind them, or makes an empty
 * one with all attributes for NULL. NULL when memory is short. */
struct fi_info *weft_direct_dupinfo(const struct fi_info *info);

/* weft_direct_freeinfo frees a list. */
void weft_direct_freeinfo(struct fi_info *info);

/* weft_direct_named tells whether a provider name as hints take it admits
 * weft: the name itself or that of FI_WEFT_NAME, or a list after '^' that does not
 * contain it. NULL and "" admit all. */
bool weft_direct_named(const char *name);

/* weft_direct_listed tells whether word is an element of the list, which is
 * separated by any of the characters in separators; case does not matter. */
bool weft_direct_listed(const char *list, const char *separators, const char *word);

/* weft_direct_define_logging declares the FI_LOG_* variables. */
void weft_direct_define_logging(void);

#endif
