/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEFT_FORKED_H
#define WEFT_FORKED_H

#include "objects.h"

/* Replaces the tables of an object of any class by ones that refuse every
 * call. Called in the child of a fork, which has one thread. */
void weft_forked_tables(struct fid *fid);

/* What stands in those tables beside refusals (forked.c). */
const char *weft_forked_straddr(struct fid_av *av, const void *addr, char *buf, size_t *len);
uint64_t weft_forked_cntr_read(struct fid_cntr *cntr);
uint64_t weft_forked_cntr_readerr(struct fid_cntr *cntr);

#endif
