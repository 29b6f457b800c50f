// SPDX-License-Identifier: BSD-2-Clause

//go:build direct

/* struct fi_info and what hangs on it: completing, copying, freeing.
 *
 * Each version of libfabric's ABI has appended members to the attributes: a caller's structures end where its version
 * ends. What weft returns has the members of all versions, so only what callers pass is completed first. */

#include <stdlib.h>
#include <string.h>

#include "direct.h"

#define END(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/* clang-format off */
static const size_t info_bytes[ABIS] = {
	[ABI_0 ... ABI_1] = offsetof(struct fi_info, nic),
	[ABI_2 ... ABI_10] = END(struct fi_info, nic),
};

#define DOMAIN_3 END(struct fi_domain_attr, tclass)
#define EP_1 END(struct fi_ep_attr, auth_key)

/* The attributes: where the pointer is, and the bytes of 1.17's structure and of each version's. */
static const struct {
	size_t at, size, of[ABIS];
} parts[PARTS] = {
	[PART_TX] = { offsetof(struct fi_info, tx_attr), sizeof(struct fi_tx_attr), {
		[ABI_0 ... ABI_2] = offsetof(struct fi_tx_attr, tclass),
		[ABI_3 ... ABI_10] = END(struct fi_tx_attr, tclass) } },
	[PART_RX] = { offsetof(struct fi_info, rx_attr), sizeof(struct fi_rx_attr), {
		[ABI_0 ... ABI_10] = sizeof(struct fi_rx_attr) } },
	[PART_EP] = { offsetof(struct fi_info, ep_attr), sizeof(struct fi_ep_attr), {
		[ABI_0] = offsetof(struct fi_ep_attr, auth_key_size),
		[ABI_1 ... ABI_9] = EP_1,
		[ABI_10] = EP_1 + 8 } },      /* xpu_ctx */
	[PART_DOMAIN] = { offsetof(struct fi_info, domain_attr), sizeof(struct fi_domain_attr), {
		[ABI_0] = offsetof(struct fi_domain_attr, cntr_cnt),
		[ABI_1 ... ABI_2] = offsetof(struct fi_domain_attr, tclass),
		[ABI_3] = DOMAIN_3,
		[ABI_7] = DOMAIN_3 + 8,       /* max_ep_auth_key */
		[ABI_8] = DOMAIN_3 + 16,      /* max_group_id */
		[ABI_9] = DOMAIN_3 + 32,      /* max_cntr_value, max_err_cntr_value */
		[ABI_10] = DOMAIN_3 + 40 } }, /* max_xpu_ctx_cnt */
	[PART_FABRIC] = { offsetof(struct fi_info, fabric_attr), sizeof(struct fi_fabric_attr), {
		[ABI_0] = offsetof(struct fi_fabric_attr, api_version),
		[ABI_1 ... ABI_10] = END(struct fi_fabric_attr, api_version) } },
};
/* clang-format on */

/* Addresses, keys and strings: in which attribute the pointer is, or in the info itself, and where there; where the
 * length is, 0 for strings. */
enum { INFO = PARTS };

static const struct text {
	size_t part, at, length;
} texts[] = {
	{ INFO, offsetof(struct fi_info, src_addr), offsetof(struct fi_info, src_addrlen) },
	{ INFO, offsetof(struct fi_info, dest_addr), offsetof(struct fi_info, dest_addrlen) },
	{ PART_EP, offsetof(struct fi_ep_attr, auth_key), offsetof(struct fi_ep_attr, auth_key_size) },
	{ PART_DOMAIN, offsetof(struct fi_domain_attr, auth_key), offsetof(struct fi_domain_attr, auth_key_size) },
	{ PART_DOMAIN, offsetof(struct fi_domain_attr, name), 0 },
	{ PART_FABRIC, offsetof(struct fi_fabric_attr, name), 0 },
	{ PART_FABRIC, offsetof(struct fi_fabric_attr, prov_name), 0 },
};

/* Where the pointer to an attribute is. */
static void **part_of(struct fi_info *info, size_t part)
{
	return (void **)((char *)info + parts[part].at);
}

/* The structure that a text's pointer is in, NULL: there is none. */
static char *owner(struct fi_info *info, const struct text *t)
{
	return t->part == INFO ? (char *)info : *part_of(info, t->part);
}

const struct fi_info *weft_direct_complete(struct weft_whole *w, const struct fi_info *from, enum weft_abi abi)
{
	if (!from)
		return NULL;
	memset(w, 0, sizeof(*w));
	memcpy(&w->info, from, info_bytes[abi]);
	for (size_t i = 0; i < PARTS; i++) {
		void **at = part_of(&w->info, i);

		if (*at)
			*at = memcpy(w->parts[i], *at, parts[i].of[abi]);
	}
	return &w->info;
}

/* Copies size bytes and a terminating zero; without from all are 0. */
static void *copy(const void *from, size_t size, bool *failed)
{
	void *to = calloc(1, size + 1);

	if (to && from)
		memcpy(to, from, size);
	*failed |= !to;
	return to;
}

/* Replaces the texts that info shares with the one that it is a copy of by copies. What could not be copied is NULL. */
static void copy_texts(struct fi_info *info, bool *failed)
{
	for (size_t i = 0; i < count_of(texts); i++) {
		char *in = owner(info, &texts[i]);
		void **at = (void **)(in + texts[i].at);
		size_t size;

		if (!in || !*at)
			continue;
		size = texts[i].length ? *(size_t *)(in + texts[i].length) : strlen(*at) + 1;
		*at = size ? copy(*at, size, failed) : NULL;
	}
}

struct fi_info *weft_direct_dupinfo(const struct fi_info *from)
{
	bool failed = false;
	struct fi_info *info = copy(from, sizeof(*info), &failed);

	if (!info)
		return NULL;
	info->next = NULL;
	info->nic = NULL;
	for (size_t i = 0; i < PARTS; i++) {
		void **at = part_of(info, i);

		if (!from || *at)
			*at = copy(*at, parts[i].size + WEFT_LATER_MEMBERS, &failed);
	}
	copy_texts(info, &failed);
	if (from && from->nic && fi_control(&from->nic->fid, FI_DUP, &info->nic))
		failed = true;
	if (!failed)
		return info;
	weft_direct_freeinfo(info);
	return NULL;
}

static void free_one(struct fi_info *info)
{
	for (size_t i = 0; i < count_of(texts); i++) {
		char *in = owner(info, &texts[i]);

		if (in)
			free(*(void **)(in + texts[i].at));
	}
	for (size_t i = 0; i < PARTS; i++)
		free(*part_of(info, i));
	if (info->nic)
		fi_close(&info->nic->fid);
	free(info);
}

void weft_direct_freeinfo(struct fi_info *info)
{
	while (info) {
		struct fi_info *next = info->next;

		free_one(info);
		info = next;
	}
}
