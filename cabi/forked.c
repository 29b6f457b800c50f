/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The objects that a forked process inherits get tables whose every call returns
 * -FI_EOPNOTSUPP (forked_gen.c); the first writes a log line (fork.c says why).
 */
#include <string.h>

#include "forked.h"

const char *weft_forked_straddr(struct fid_av *, const void *, char *buf, size_t *len)
{
	weft_fork_refusal();
	if (buf && *len)
		buf[0] = '\0';
	*len = 1;
	return buf;
}

/* A counter's value is what it was when the process forked. */
uint64_t weft_forked_cntr_read(struct fid_cntr *c)
{
	weft_fork_refusal();
	return atomic_load_explicit(&WEFT_OBJ(c, struct weft_cntr_obj)->hot->value,
				    memory_order_relaxed);
}

uint64_t weft_forked_cntr_readerr(struct fid_cntr *c)
{
	weft_fork_refusal();
	return atomic_load_explicit(&WEFT_OBJ(c, struct weft_cntr_obj)->hot->errors,
				    memory_order_relaxed);
}

void weft_forked_tables(struct fid *fid)
{
	fid->ops = &weft_forked_fid;
	weft_object_tables(fid, true);
}
