/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a progress thread does at its endpoints (drive.c).
 */
#ifndef WEFT_DRIVE_H
#define WEFT_DRIVE_H

#include <stddef.h>

#include "../include/weft/hot.h"

/* Does the work of n endpoints until there is some that needs Go or that
 * another thread is at, nothing has come for idle ns, or most ns have passed.
 * Returns whether it did any. The endpoints stay open meanwhile. */
bool weft_drive(struct weft_hot_ep *const *eps, size_t n, uint64_t idle, uint64_t most);

#endif
