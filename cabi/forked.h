/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEFT_FORKED_H
#define WEFT_FORKED_H

#include "objects.h"

/* Replaces the tables of an object of any class by ones that refuse every
 * call. Called in the child of a fork, which has one thread. */
void weft_forked_tables(struct fid *fid);

#endif
