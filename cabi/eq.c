/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Event queues: struct fi_ops_eq.
 */
#include <stdlib.h>
#include <string.h>

#include "goapi.h"
#include "trace.h"

#define EQ(eq) WEFT_OBJ(eq, struct weft_eq_obj)

/* Before API 1.5 the entry ended before err_data_size. */
ssize_t weft_eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct fi_eq_err_entry entry = { 0 };
	size_t known = sizeof(entry);
	int64_t rc;

	if (!buf)
		return -FI_EINVAL;
	if (FI_VERSION_LT(EQ(eq)->fabric->fid.api_version, FI_VERSION(1, 5)))
		known = offsetof(struct fi_eq_err_entry, err_data_size);
	else
		memcpy(&entry, buf, known);
	rc = weftGoEQReadErr(EQ(eq)->handle, &entry, EQ(eq)->err_data, flags);
	if (rc < 0)
		return rc;
	memcpy(buf, &entry, known);
	return known;
}
