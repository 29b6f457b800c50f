// SPDX-License-Identifier: BSD-2-Clause

//go:build direct

/* fi_dupinfo and fi_freeinfo. */

#include <stdlib.h>
#include <string.h>

#include "direct.h"

/* copy_bytes copies size bytes and a terminating zero; NULL for nothing. */
static void *copy_bytes(const void *from, size_t size, bool *failed)
{
	if (!from || !size)
		return NULL;
	char *copy = malloc(size + 1);
	if (!copy) {
		*failed = true;
		return NULL;
	}
	memcpy(copy, from, size);
	copy[size] = 0;
	return copy;
}

static char *copy_string(const char *from, bool *failed)
{
	return from ? copy_bytes(from, strlen(from) + 1, failed) : NULL;
}

/* new_attr makes a zeroed attribute, or a copy of from, which has the members of all
 * versions: those that weft does not know are 0. */
static void *new_attr(const void *from, size_t size, bool *failed)
{
	void *attr = calloc(1, size + WEFT_LATER_MEMBERS);
	if (!attr)
		*failed = true;
	else if (from)
		memcpy(attr, from, size);
	return attr;
}

/* new_longer copies one that has the room for later members, too. */
static void *new_longer(const void *from, size_t size, bool *failed)
{
	return new_attr(from, size + WEFT_LATER_MEMBERS, failed);
}

/* copy_attrs replaces the pointers that *to shares with *from by copies. What
 * could not be copied is NULL. */
static void copy_attrs(struct fi_info *to, const struct fi_info *from, bool *failed)
{
	to->src_addr = copy_bytes(from->src_addr, from->src_addrlen, failed);
	to->dest_addr = copy_bytes(from->dest_addr, from->dest_addrlen, failed);
	if (from->tx_attr)
		to->tx_attr = new_attr(from->tx_attr, sizeof(*from->tx_attr), failed);
	if (from->rx_attr)
		to->rx_attr = new_attr(from->rx_attr, sizeof(*from->rx_attr), failed);
	if (from->ep_attr) {
		to->ep_attr = new_longer(from->ep_attr, sizeof(*from->ep_attr), failed);
		if (to->ep_attr)
			to->ep_attr->auth_key = copy_bytes(from->ep_attr->auth_key,
							   from->ep_attr->auth_key_size, failed);
	}
	if (from->domain_attr) {
		to->domain_attr = new_longer(from->domain_attr, sizeof(*from->domain_attr), failed);
		if (to->domain_attr) {
			to->domain_attr->name = copy_string(from->domain_attr->name, failed);
			to->domain_attr->auth_key =
				copy_bytes(from->domain_attr->auth_key,
					   from->domain_attr->auth_key_size, failed);
		}
	}
	if (from->fabric_attr) {
		to->fabric_attr = new_attr(from->fabric_attr, sizeof(*from->fabric_attr), failed);
		if (to->fabric_attr) {
			to->fabric_attr->name = copy_string(from->fabric_attr->name, failed);
			to->fabric_attr->prov_name =
				copy_string(from->fabric_attr->prov_name, failed);
		}
	}
	if (from->nic && fi_control(&from->nic->fid, FI_DUP, &to->nic))
		*failed = true;
}

static void empty_attrs(struct fi_info *info, bool *failed)
{
	info->tx_attr = new_attr(NULL, sizeof(*info->tx_attr), failed);
	info->rx_attr = new_attr(NULL, sizeof(*info->rx_attr), failed);
	info->ep_attr = new_attr(NULL, sizeof(*info->ep_attr), failed);
	info->domain_attr = new_attr(NULL, sizeof(*info->domain_attr), failed);
	info->fabric_attr = new_attr(NULL, sizeof(*info->fabric_attr), failed);
}

struct fi_info *weft_direct_dupinfo(const struct fi_info *from)
{
	bool failed = false;
	struct fi_info *info = new_attr(from, sizeof(*info), &failed);
	if (!info)
		return NULL;
	info->next = NULL;
	info->src_addr = info->dest_addr = NULL;
	info->tx_attr = NULL;
	info->rx_attr = NULL;
	info->ep_attr = NULL;
	info->domain_attr = NULL;
	info->fabric_attr = NULL;
	info->nic = NULL;

	if (from)
		copy_attrs(info, from, &failed);
	else
		empty_attrs(info, &failed);
	if (failed) {
		weft_direct_freeinfo(info);
		return NULL;
	}
	return info;
}

static void free_one(struct fi_info *info)
{
	free(info->src_addr);
	free(info->dest_addr);
	free(info->tx_attr);
	free(info->rx_attr);
	if (info->ep_attr)
		free(info->ep_attr->auth_key);
	free(info->ep_attr);
	if (info->domain_attr) {
		free(info->domain_attr->name);
		free(info->domain_attr->auth_key);
	}
	free(info->domain_attr);
	if (info->fabric_attr) {
		free(info->fabric_attr->name);
		free(info->fabric_attr->prov_name);
	}
	free(info->fabric_attr);
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
