/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Devices: what the host has, their telemetry and registers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "nic.h"

struct nic nics[DEVICES];
unsigned int nic_count;
struct link domains = { &domains, &domains };

/* Numbers of telemetry counters and registers that something reads. */
enum {
	CNTR_SUCCESS = 992,
	CNTR_PLEC = 1047,
	CNTR_RESTRICTED = 1178,
	CNTR_PCIE_ADD = 1304,
	CNTR_FLUSH = 1305,
	CNTR_HRP = 1582,
	CNTRS = 2528,
	CSR_TLE_PEAK = 0x870,
};

static void nic_init(struct nic *n, unsigned int id)
{
	struct devinfo *d = &n->info;

	*d = (struct devinfo){
		.dev_id = id,
		.nid = (unsigned int)set.nid + id,
		.pid_bits = PID_BITS,
		.pid_count = LIMIT_PID_ANY,
		.pid_granule = GRANULE,
		.rdzv_get_idx = GET_INDEX,
		.driver_name = "cxi_core",
		.vendor_id = 0x1590,
		.device_id = set.version == 2 ? 0x371 : 0x501,
		.device_rev = 1,
		.device_proto = 1,
		.device_platform = PLATFORM_NETSIM,
		.num_ptes = (uint16_t)set.ptes,
		.num_txqs = (uint16_t)set.txqs,
		.num_tgqs = (uint16_t)set.tgqs,
		.num_eqs = (uint16_t)set.eqs,
		.num_cts = (uint16_t)set.cts,
		.num_acs = 1022,
		.num_tles = (uint16_t)set.tles,
		.num_les = (uint16_t)set.les,
		.pci_domain = 0,
		.pci_bus = (uint8_t)(0x20 + id),
		.link_mtu = 2048,
		.link_speed = 200000,
		.link_state = 1,
		.cassini_version = set.version == 2 ? 0x21 : 0x11,
		.fru_description = "model",
	};
	snprintf(d->device_name, sizeof d->device_name, "cxi%u", id);
	services_init(n);
	n->next_lni = 1;
	n->tles = mmap(NULL, sizeof *n->tles, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (n->tles == MAP_FAILED)
		abort();
}

static void init(void)
{
	config_read();
	if (nic_count)
		return;
	if (set.devices > DEVICES)
		set.devices = DEVICES;
	for (unsigned int i = 0; i < (unsigned int)set.devices; i++)
		nic_init(&nics[i], i);
	nic_count = (unsigned int)set.devices;
}

API int cxil_get_device_list(struct device_list **list)
{
	struct device_list *l;
	int rc;

	if (!list)
		return -EINVAL;
	rc = fault_of_call();
	if (rc)
		return rc;
	nic_lock();
	init();
	l = calloc(1, sizeof *l + nic_count * sizeof *l->info);
	if (l) {
		l->count = nic_count;
		for (unsigned int i = 0; i < nic_count; i++)
			l->info[i] = nics[i].info;
	}
	nic_unlock();
	*list = l;
	return l ? 0 : -ENOMEM;
}

API void cxil_free_device_list(struct device_list *list)
{
	free(list);
}

API int cxil_open_device(uint32_t id, struct cxil_dev **dev)
{
	int rc;

	if (!dev)
		return -EINVAL;
	rc = fault_of_call();
	if (rc)
		return rc;
	nic_lock();
	init();
	if (set.open_rc) {
		rc = (int)-set.open_rc;
	} else if (id >= nic_count) {
		rc = -ENOENT;
	} else {
		/* Every opener has a structure of its own. */
		*dev = calloc(1, sizeof **dev);
		if (*dev)
			(*dev)->info = nics[id].info;
		else
			rc = -ENOMEM;
	}
	nic_unlock();
	return rc;
}

API void cxil_close_device(struct cxil_dev *dev)
{
	free(dev);
}

/* The atomic operation that does a fetching add over the bus is a property in sysfs, or there is none. */
API int cxil_get_amo_remap_to_pcie_fadd(struct cxil_dev *dev, int *op)
{
	char path[128];
	FILE *f;

	if (!dev || !op)
		return -EINVAL;
	*op = -1;
	snprintf(path, sizeof path, "/sys/class/cxi/%s/device/properties/amo_remap_to_pcie_fadd",
		 dev->info.device_name);
	f = fopen(path, "re");
	if (f && fscanf(f, "%d", op) != 1)
		*op = -1;
	if (f)
		fclose(f);
	return 0;
}

API int cxil_read_cntr(struct cxil_dev *dev, unsigned int cntr, uint64_t *value, struct timespec *ts)
{
	if (!dev || !value || cntr >= CNTRS)
		return -EINVAL;
	nic_lock();
	switch (cntr) {
	case CNTR_SUCCESS:
		*value = counts.success;
		break;
	case CNTR_PLEC:
		*value = counts.plec;
		break;
	case CNTR_RESTRICTED:
		*value = counts.restricted;
		break;
	case CNTR_FLUSH:
		*value = counts.flushes;
		break;
	default: /* CNTR_HRP, CNTR_PCIE_ADD: nothing here does either */
		*value = 0;
	}
	nic_unlock();
	if (ts)
		clock_gettime(CLOCK_REALTIME, ts);
	return 0;
}

API bool cxil_is_copy_on_fork(void)
{
	return true;
}

API int cxil_map_csr(struct cxil_dev *dev)
{
	return dev ? 0 : -EINVAL;
}

/* The peak of triggered entries in use, of which the first of four pools has all. */
static bool is_peak(unsigned int csr)
{
	return csr >= CSR_TLE_PEAK && csr < CSR_TLE_PEAK + 4 * 8;
}

API int cxil_read_csr(struct cxil_dev *dev, unsigned int csr, void *value, size_t len)
{
	uint64_t v = 0;

	if (!dev || !value || csr % 8 || len % 8)
		return -EINVAL;
	memset(value, 0, len);
	nic_lock();
	if (csr == CSR_TLE_PEAK && len)
		v = __atomic_load_n(&nics[dev->info.dev_id].tles->peak, __ATOMIC_RELAXED);
	nic_unlock();
	if (len)
		memcpy(value, &v, 8);
	return 0;
}

API int cxil_write_csr(struct cxil_dev *dev, unsigned int csr, const void *value, size_t len)
{
	if (!dev || !value || csr % 8 || len % 8)
		return -EINVAL;
	nic_lock();
	if (is_peak(csr) && len) {
		struct tles *t = nics[dev->info.dev_id].tles;

		__atomic_store_n(&t->peak, __atomic_load_n(&t->used, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	}
	nic_unlock();
	return 0;
}
