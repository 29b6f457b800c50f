/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Address vectors: struct fi_ops_av.
 */
#include <stdlib.h>

#include "collective.h"
#include "goapi.h"
#include "peer.h"
#include "trace.h"

const char *weft_av_straddr(struct fid_av *av, const void *addr, char *buf, size_t *len)
{
	if (!addr || !len || (!buf && *len))
		return NULL;
	return weftGoAVStrAddr(WEFT_OBJ(av, struct weft_av_obj)->handle, (void *)addr, buf, len) ? NULL : buf;
}
