/* SPDX-License-Identifier: BSD-2-Clause */
/* Between common.c and link.c only. */
#ifndef WEFT_TESTS_RUNNER_H
#define WEFT_TESTS_RUNNER_H

/* Gives link.c the socket to rank; -1: none. */
void link_set(int rank, int fd);

#endif
