/* SPDX-License-Identifier: BSD-2-Clause
 *
 * struct fid_nic of what fi_getinfo returns. The host's fi_freeinfo closes it and its
 * fi_dupinfo copies it, by the functions here; utility providers of the host copy it by
 * themselves and keep these functions, so all memory is malloc's and has no more in it
 * than the API's structures. A forked process may close and copy it, too.
 */
#include <stdlib.h>
#include <string.h>

#include "goapi.h"

/* clang-format off */
#define DEVICE(member) { offsetof(struct fid_nic, device_attr), offsetof(struct fi_device_attr, member) }
#define LINK(member) { offsetof(struct fid_nic, link_attr), offsetof(struct fi_link_attr, member) }

/* The texts: which attribute has them, and where. */
static const struct {
	size_t attr, at;
} texts[] = {
	DEVICE(name), DEVICE(device_id), DEVICE(device_version), DEVICE(vendor_id), DEVICE(driver), DEVICE(firmware),
	LINK(address), LINK(network_type),
};
/* clang-format on */

/* Where a text of a complete one is. */
static char **text_of(const struct fid_nic *nic, size_t i)
{
	return (char **)(*(char **)((char *)nic + texts[i].attr) + texts[i].at);
}

int weft_nic_close(struct fid *fid)
{
	struct fid_nic *nic = (struct fid_nic *)fid;

	if (nic->device_attr && nic->link_attr)
		for (size_t i = 0; i < count_of(texts); i++)
			free(*text_of(nic, i));
	free(nic->device_attr);
	free(nic->bus_attr);
	free(nic->link_attr);
	free(nic);
	return 0;
}

static int nic_dup(const struct fid_nic *nic, struct fid_nic **out)
{
	struct fid_nic *dup = weft_nic_new();
	bool failed = false;

	if (!dup)
		return -FI_ENOMEM;
	*dup->bus_attr = *nic->bus_attr;
	*dup->link_attr = *nic->link_attr;
	for (size_t i = 0; i < count_of(texts); i++) {
		const char *from = *text_of(nic, i);

		*text_of(dup, i) = from ? strdup(from) : NULL;
		failed |= from && !*text_of(dup, i);
	}
	if (failed)
		weft_nic_close(&dup->fid);
	else
		*out = dup;
	return failed ? -FI_ENOMEM : 0;
}

int weft_nic_control(struct fid *fid, int command, void *arg)
{
	if (command != FI_DUP)
		return -FI_ENOSYS;
	return arg ? nic_dup((struct fid_nic *)fid, arg) : -FI_EINVAL;
}

int weft_nic_tostr(const struct fid *fid, char *buf, size_t len)
{
	size_t used = strnlen(buf, len);

	if (weft_forked())
		return weft_fork_refusal();
	weftGoNICText((struct fid_nic *)fid, buf + used, len - used);
	return 0;
}

struct fid_nic *weft_nic_new(void)
{
	struct fid_nic *nic = calloc(1, sizeof(*nic));

	if (!nic)
		return NULL;
	nic->fid = (struct fid){ .fclass = FI_CLASS_NIC, .ops = &weft_nic_fi_ops };
	nic->device_attr = calloc(1, sizeof(*nic->device_attr));
	nic->bus_attr = calloc(1, sizeof(*nic->bus_attr));
	nic->link_attr = calloc(1, sizeof(*nic->link_attr));
	if (nic->device_attr && nic->bus_attr && nic->link_attr)
		return nic;
	weft_nic_close(&nic->fid);
	return NULL;
}
