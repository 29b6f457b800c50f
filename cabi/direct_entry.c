// SPDX-License-Identifier: BSD-2-Clause

//go:build direct

/* fi_getinfo, fi_fabric and the entry points that need no provider. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

#include "direct.h"
#include "host.h"

static const struct fi_provider core = {
	.fi_version = WEFT_API,
	.name = "core",
};

WEFT_EXPORT uint32_t fi_version(void)
{
	return WEFT_API;
}

bool weft_direct_listed(const char *list, const char *separators, const char *word)
{
	size_t length = strlen(word);

	for (const char *s = list; *s;) {
		size_t n = strcspn(s, separators);
		if (n == length && !strncasecmp(s, word, n))
			return true;
		s += n;
		s += strspn(s, separators);
	}
	return false;
}

/* is_reported tells whether a name is weft's, or that of FI_WEFT_NAME. */
static bool is_reported(const char *name)
{
	return !strcasecmp(name, WEFT_NAME) || !strcasecmp(name, weft_reported_name);
}

bool weft_direct_named(const char *name)
{
	if (!name || !*name)
		return true;
	if (*name == '^')
		return !weft_direct_listed(name + 1, ",;", WEFT_NAME);
	return is_reported(name);
}

/* with_any_name calls the provider with hints that carry no provider name:
 * the name has been judged. */
static int with_any_name(uint32_t version, const char *node, const char *service, uint64_t flags,
			 const struct fi_info *hints, struct fi_info **info)
{
	if (!hints || !hints->fabric_attr || !hints->fabric_attr->prov_name)
		return weft_getinfo(version, node, service, flags, hints, info);

	struct fi_fabric_attr fabric_attr = *hints->fabric_attr;
	struct fi_info copy = *hints;
	fabric_attr.prov_name = NULL;
	copy.fabric_attr = &fabric_attr;
	return weft_getinfo(version, node, service, flags, &copy, info);
}

/* sign puts in what a host knows better than its provider. */
static int sign(struct fi_fabric_attr *attr, uint32_t version)
{
	attr->api_version = version;
	attr->prov_version = weft_provider.version;
	free(attr->prov_name); /* the lower layers of the name */
	attr->prov_name = strdup(weft_reported_name);
	return attr->prov_name ? 0 : -FI_ENOMEM;
}

/* The greatest format that names are looked for in, more than there are. */
#define FORMATS 64

/* is_format tells whether a name is that of an address format. */
static bool is_format(const char *name, uint32_t format)
{
	char own[32];

	return !strcasecmp(name, fi_tostr_r(own, sizeof(own), &format, FI_TYPE_ADDR_FORMAT));
}

/* keep_format leaves of the offers those with the address format that FI_ADDR_FORMAT names, all if it names none. */
static void keep_format(struct fi_info **info)
{
	const char *wanted = getenv("FI_ADDR_FORMAT");
	struct fi_info **at = info, *other;
	uint32_t format = 1;

	if (!wanted)
		return;
	while (format < FORMATS && !is_format(wanted, format))
		format++;
	if (format == FORMATS) {
		FI_WARN(&core, FI_LOG_CORE, "FI_ADDR_FORMAT=%s: there is no such address format\n", wanted);
		return;
	}
	while ((other = *at)) {
		if (other->addr_format == format) {
			at = &other->next;
			continue;
		}
		*at = other->next;
		other->next = NULL;
		weft_direct_freeinfo(other);
	}
}

int weft_direct_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			   const struct fi_info *hints, struct fi_info **info)
{
	if (!info)
		return -FI_EINVAL;
	*info = NULL;
	if (version > fi_version()) {
		FI_WARN(&core, FI_LOG_CORE, "the program asks for version %u.%u, this is %u.%u\n",
			FI_MAJOR(version), FI_MINOR(version), FI_MAJOR(WEFT_API), FI_MINOR(WEFT_API));
		return -FI_ENOSYS;
	}
	int ret = weft_ready(); /* finds the name */
	if (ret)
		return ret;
	if (hints && hints->fabric_attr && !weft_direct_named(hints->fabric_attr->prov_name))
		return -FI_ENODATA;

	ret = with_any_name(version, node, service, flags, hints, info);
	for (struct fi_info *i = *info; i && !ret; i = i->next)
		ret = sign(i->fabric_attr, version);
	if (ret) {
		weft_direct_freeinfo(*info);
		*info = NULL;
		return ret;
	}
	keep_format(info);
	return *info ? 0 : -FI_ENODATA;
}

int weft_direct_fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	if (!attr || !attr->prov_name || !attr->name || !fabric)
		return -FI_EINVAL;
	int ret = weft_ready(); /* finds the name */
	if (ret)
		return ret;
	if (!is_reported(attr->prov_name))
		return -FI_ENODEV;

	ret = weft_fabric(attr, fabric, context);
	if (!ret)
		(*fabric)->api_version = attr->api_version;
	return ret;
}

/* The library objects that other libraries name here (the registration cache,
 * the logging sink) do not exist. */
WEFT_EXPORT int fi_open(uint32_t version, const char *name, void *attr, size_t attr_len, uint64_t flags,
	    struct fid **fid, void *context)
{
	(void)version;
	(void)attr;
	(void)attr_len;
	(void)flags;
	(void)context;
	if (!name || !fid)
		return -FI_EINVAL;
	return -FI_ENOSYS;
}

static const char *const errors[] = {
	[FI_EOTHER - FI_ERRNO_OFFSET] = "Unspecified error",
	[FI_ETOOSMALL - FI_ERRNO_OFFSET] = "Provided buffer is too small",
	[FI_EOPBADSTATE - FI_ERRNO_OFFSET] = "Operation not permitted in current state",
	[FI_EAVAIL - FI_ERRNO_OFFSET] = "Error available",
	[FI_EBADFLAGS - FI_ERRNO_OFFSET] = "Flags not supported",
	[FI_ENOEQ - FI_ERRNO_OFFSET] = "Missing or unavailable event queue",
	[FI_EDOMAIN - FI_ERRNO_OFFSET] = "Invalid resource domain",
	[FI_ENOCQ - FI_ERRNO_OFFSET] = "Missing or unavailable completion queue",
	[FI_ECRC - FI_ERRNO_OFFSET] = "CRC error",
	[FI_ETRUNC - FI_ERRNO_OFFSET] = "Truncation error",
	[FI_ENOKEY - FI_ERRNO_OFFSET] = "Required key not available",
	[FI_ENOAV - FI_ERRNO_OFFSET] = "Missing or unavailable address vector",
	[FI_EOVERRUN - FI_ERRNO_OFFSET] = "Queue has been overrun",
	[FI_ENORX - FI_ERRNO_OFFSET] = "Receiver not ready, no receive buffers available",
	/* Those that came after 1.17: FI_ENOMR and FI_EFIREWALLADDR. */
	[FI_ENORX + 1 - FI_ERRNO_OFFSET] = "Memory registration limit exceeded",
	[FI_ENORX + 2 - FI_ERRNO_OFFSET] = "Address is behind a firewall",
};

WEFT_EXPORT const char *fi_strerror(int errnum)
{
	unsigned int number = errnum < 0 ? -(unsigned int)errnum : (unsigned int)errnum;

	if (number < FI_ERRNO_OFFSET)
		return strerror((int)number);
	number -= FI_ERRNO_OFFSET;
	if (number >= sizeof(errors) / sizeof(*errors))
		number = 0;
	return errors[number];
}
