/* SPDX-License-Identifier: BSD-2-Clause */
/* null.h: a queue pair that takes work requests and does nothing. */
#ifndef WEFT_IBV_NULL_H
#define WEFT_IBV_NULL_H

#include <stdint.h>
#include <infiniband/verbs.h>

struct ibv_qp *weft_null_qp(void);
/* How many work requests the queue pair has taken. */
uint64_t weft_null_taken(void);
/* Posts n inline sends of len bytes, one at a time, as a program in C does. */
void weft_null_loop(struct ibv_qp *qp, int n, int len);

#endif
