/* SPDX-License-Identifier: BSD-2-Clause
 *
 * struct fid_nic.
 */
#ifndef WEFT_NIC_H
#define WEFT_NIC_H

#include "objects.h"

/* weft_nic_new makes one that knows nothing, with all attributes; NULL when memory is
 * short. Text put into it is malloc'd. */
struct fid_nic *weft_nic_new(void);

static inline void weft_nic_set_pci(struct fid_nic *nic, uint16_t domain, uint8_t bus,
				    uint8_t device, uint8_t function)
{
	nic->bus_attr->bus_type = FI_BUS_PCI;
	nic->bus_attr->attr.pci = (struct fi_pci_attr){ domain, bus, device, function };
}

#endif
