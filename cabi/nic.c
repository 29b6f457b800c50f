/* SPDX-License-Identifier: BSD-2-Clause
 *
 * struct fid_nic of what fi_getinfo returns. The host's fi_freeinfo closes it and its
 * fi_dupinfo copies it, by the functions here; utility providers of the host copy it by
 * themselves and keep these functions, so all memory is malloc's and has no more in it
 * than the API's structures.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "goapi.h"
#include "nic.h"
#include "objects.h"

static int nic_close(struct fid *fid)
{
	struct fid_nic *nic = (struct fid_nic *)fid;

	if (nic->device_attr) {
		free(nic->device_attr->name);
		free(nic->device_attr->device_id);
		free(nic->device_attr->device_version);
		free(nic->device_attr->vendor_id);
		free(nic->device_attr->driver);
		free(nic->device_attr->firmware);
	}
	if (nic->link_attr) {
		free(nic->link_attr->address);
		free(nic->link_attr->network_type);
	}
	free(nic->device_attr);
	free(nic->bus_attr);
	free(nic->link_attr);
	free(nic);
	return 0;
}

/* copy puts a copy of *from, or NULL for NULL, into *to. */
static bool copy(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

static bool copy_device(struct fi_device_attr *to, const struct fi_device_attr *from)
{
	return copy(&to->name, from->name) && copy(&to->device_id, from->device_id) &&
	       copy(&to->device_version, from->device_version) &&
	       copy(&to->vendor_id, from->vendor_id) && copy(&to->driver, from->driver) &&
	       copy(&to->firmware, from->firmware);
}

static bool copy_link(struct fi_link_attr *to, const struct fi_link_attr *from)
{
	to->mtu = from->mtu;
	to->speed = from->speed;
	to->state = from->state;
	return copy(&to->address, from->address) && copy(&to->network_type, from->network_type);
}

static int nic_dup(const struct fid_nic *nic, struct fid_nic **out)
{
	struct fid_nic *dup = weft_nic_new();

	if (!dup)
		return -FI_ENOMEM;
	*dup->bus_attr = *nic->bus_attr;
	if (!copy_device(dup->device_attr, nic->device_attr) ||
	    !copy_link(dup->link_attr, nic->link_attr)) {
		nic_close(&dup->fid);
		return -FI_ENOMEM;
	}
	*out = dup;
	return 0;
}

static int nic_control(struct fid *fid, int command, void *arg)
{
	if (command != FI_DUP)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	return nic_dup((struct fid_nic *)fid, arg);
}

static const char *text(const char *s) { return s ? s : "(null)"; }

static int nic_tostr(const struct fid *fid, char *buf, size_t len)
{
	static const char *const states[] = {
		[FI_LINK_UNKNOWN] = "FI_LINK_UNKNOWN",
		[FI_LINK_DOWN] = "FI_LINK_DOWN",
		[FI_LINK_UP] = "FI_LINK_UP",
	};
	const struct fid_nic *nic = (const struct fid_nic *)fid;
	const struct fi_device_attr *d = nic->device_attr;
	const struct fi_link_attr *l = nic->link_attr;
	const struct fi_pci_attr *p = &nic->bus_attr->attr.pci;
	const bool pci = nic->bus_attr->bus_type == FI_BUS_PCI;
	char bus[256] = "";
	size_t used = strnlen(buf, len);

	if (pci)
		snprintf(bus, sizeof(bus),
			 "            fi_pci_attr:\n                domain_id: %u\n"
			 "                bus_id: %u\n                device_id: %u\n"
			 "                function_id: %u\n",
			 p->domain_id, p->bus_id, p->device_id, p->function_id);
	snprintf(buf + used, len - used,
		 "    nic:\n        fi_device_attr:\n            name: %s\n"
		 "            device_id: %s\n            device_version: %s\n"
		 "            vendor_id: %s\n            driver: %s\n            firmware: %s\n"
		 "        fi_bus_attr:\n            bus_type: %s\n%s"
		 "        fi_link_attr:\n            address: %s\n            mtu: %zu\n"
		 "            speed: %zu\n            state: %s\n            network_type: %s\n",
		 text(d->name), text(d->device_id),
		 text(d->device_version), text(d->vendor_id),
		 text(d->driver), text(d->firmware),
		 pci ? "FI_BUS_PCI" : "FI_BUS_UNKNOWN", bus, text(l->address), l->mtu,
		 l->speed, l->state < count_of(states) ? states[l->state] : "Unknown",
		 text(l->network_type));
	return 0;
}

static int nic_bind(struct fid *, struct fid *, uint64_t) { return -FI_ENOSYS; }

static int nic_ops_open(struct fid *, const char *, uint64_t, void **, void *)
{
	return -FI_ENOSYS;
}

static int nic_ops_set(struct fid *, const char *, uint64_t, void *, void *)
{
	return -FI_ENOSYS;
}

static struct fi_ops nic_ops = {
	.size = sizeof(struct fi_ops),
	.close = nic_close,
	.bind = nic_bind,
	.control = nic_control,
	.ops_open = nic_ops_open,
	.tostr = nic_tostr,
	.ops_set = nic_ops_set,
};

struct fid_nic *weft_nic_new(void)
{
	struct fid_nic *nic = calloc(1, sizeof(*nic));

	if (!nic)
		return NULL;
	nic->fid.fclass = FI_CLASS_NIC;
	nic->fid.ops = &nic_ops;
	nic->device_attr = calloc(1, sizeof(*nic->device_attr));
	nic->bus_attr = calloc(1, sizeof(*nic->bus_attr));
	nic->link_attr = calloc(1, sizeof(*nic->link_attr));
	if (nic->device_attr && nic->bus_attr && nic->link_attr)
		return nic;
	nic_close(&nic->fid);
	return NULL;
}
