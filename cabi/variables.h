/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEFT_VARIABLES_H
#define WEFT_VARIABLES_H

#include "../include/weft/ext.h"
#include "objects.h"

/* The name by which fi_profile_open asks for operations. */
#define WEFT_PROFILE_OPS "fi_profile_ops"

/* Opens the profile of the endpoint with a handle. *ops is what fi_open_ops returns for it. -FI_ENOMEM. */
int weft_variables_open(uint64_t handle, const struct weft_stats_ops *stats, void **ops, void *context);

#endif
