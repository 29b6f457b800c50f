/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Operations that wait for a counter: what triggered operations (work.c, from
 * their contexts) and deferred work (the control function of domains) give to Go.
 */
#ifndef WEFT_WORK_H
#define WEFT_WORK_H

#include <rdma/fi_trigger.h>

#include "hotpath.h"
#include "rma.h"

/* Deferred work, but for its operation, which is one of the structures that the
 * posting functions give to Go. */
struct weft_work {
	uint64_t user;       /* address of the struct fi_deferred_work */
	uint64_t threshold;
	uint64_t cntr;       /* handles; 0: none */
	uint64_t done;
	uint64_t ep;
	uint64_t operand;    /* of an operation on a counter */
	uint64_t value;
	uint32_t add;        /* of the operation on a counter */
	uint32_t unused;
};

/* The condition in the context of an operation with FI_TRIGGER: the handle of
 * the counter and the threshold. 0, or a negative errno. Called from Go. */
int weft_trigger_condition(uint64_t context, uint64_t *cntr, uint64_t *threshold);

/* FI_QUEUE_WORK, FI_CANCEL_WORK and FI_FLUSH_WORK; others give -FI_ENOSYS. */
int weft_work_control(uint64_t domain, int command, void *arg);

#endif
