/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Hints that weft never meets, whatever this host and its configuration are. They
 * are refused here in the words of internal/info, which judges all others.
 */
#include <strings.h>

#include "loader.h"

/* The provider's name in hints, NULL for none. */
static const char *name_in(const struct fi_info *hints)
{
	if (!hints || !hints->fabric_attr || !hints->fabric_attr->prov_name || !hints->fabric_attr->prov_name[0])
		return NULL;
	return hints->fabric_attr->prov_name;
}

/* Whether a name is an element of a list, of alternatives or of layers. */
static bool listed(const char *list, const char *name)
{
	while (*list) {
		size_t skip = strspn(list, ",; "), n = strcspn(list + skip, ",; ");

		list += skip;
		if (n == strlen(name) && !strncasecmp(list, name, n))
			return true;
		list += n;
	}
	return false;
}

bool weft_named(const struct weft_host *host, const struct fi_info *hints)
{
	const char *name = name_in(hints);

	return name && name[0] != '^' && (listed(name, WEFT_NAME) || listed(name, weft_top_of(host->reported)));
}

/* Whether weft has another provider's name, of which the core knows what it means. */
static bool has_alias(const struct weft_host *host)
{
	return strcmp(host->reported, WEFT_NAME);
}

static bool format_offered(uint32_t format)
{
	for (size_t i = 0; i < count_of(weft_addr_formats); i++)
		if (weft_addr_formats[i] == format)
			return true;
	return false;
}

/* The capabilities that an offer of a type, or of any for FI_EP_UNSPEC, can have with those asked for:
 * 0 if the type is not offered. */
static uint64_t caps_offered(uint32_t version, uint64_t flags, enum fi_ep_type type, uint64_t asked)
{
	uint64_t later = FI_VERSION_LT(version, FI_VERSION(2, 0)) ? WEFT_CAPS_2_0 : 0;
	uint64_t caps = 0;

	for (size_t i = 0; i < count_of(weft_ep_types); i++) {
		if ((flags & WEFT_GETINFO_UTILITY) && weft_ep_types[i].type != FI_EP_RDM)
			continue;
		if (type != FI_EP_UNSPEC && (int)type != weft_ep_types[i].type)
			continue;
		caps = weft_ep_types[i].caps & ~later;
		if (!(asked & ~caps))
			break;
	}
	return caps;
}

bool weft_unwanted(const struct weft_host *host, uint32_t version, uint64_t flags, const struct fi_info *hints)
{
	enum fi_ep_type type;
	uint64_t caps, domain;

	if (!hints)
		return false;
	if (!has_alias(host) && name_in(hints) && name_in(hints)[0] != '^' && !weft_named(host, hints)) {
		WEFT_LOG(host, FI_LOG_INFO, "fi_getinfo: hint fabric_attr.prov_name refused: \"%s\" is not %s\n",
			 name_in(hints), WEFT_NAME);
		return true;
	}
	if (!has_alias(host) && !format_offered(hints->addr_format)) {
		WEFT_LOG(host, FI_LOG_INFO, "fi_getinfo: hint addr_format refused: value %u is not supported\n",
			 (unsigned)hints->addr_format);
		return true;
	}
	type = hints->ep_attr ? hints->ep_attr->type : FI_EP_UNSPEC;
	domain = hints->domain_attr ? hints->domain_attr->caps : 0;
	caps = caps_offered(version, flags, type, hints->caps | domain);
	if (!caps) {
		WEFT_LOG(host, FI_LOG_INFO, "fi_getinfo: hint ep_attr.type refused: value %d is not supported\n",
			 (int)type);
		return true;
	}
	if ((hints->caps | domain) & ~caps) {
		WEFT_LOG(host, FI_LOG_INFO, "fi_getinfo: hint caps refused: capabilities %#llx are not supported\n",
			 (unsigned long long)((hints->caps | domain) & ~caps));
		return true;
	}
	return false;
}
