/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranks in containers of their own: WEFT_TEST_CONTAINERS holds words, separated by commas.
 *     pid       pid, network, IPC and mount namespaces, /proc and a /dev/shm of 64 MiB of the rank's own
 *     blind     the same, but /proc stays the one outside, whose process ids are others
 *     user      the same as an ordinary user, and every second rank as root of a user namespace
 *     ports     its kernel chooses from eight ports, so that ranks choose the same
 *     noattach  cross-memory attach is refused (seccomp)
 * What they share is the folder FI_WEFT_SHM_DIR. Needs root.
 */
#ifndef WEFT_TESTS_CONTAINER_H
#define WEFT_TESTS_CONTAINER_H

#include <stdbool.h>
#include <sys/types.h>

/* The user that ranks are with "user". */
#define CONTAINER_USER 65534

/* As fork, but the child is in the container of a rank. It ends with status 1 where that cannot be made. */
pid_t container_fork(int rank);

/* From now on process_vm_readv and process_vm_writev give EPERM, in all threads of the process. False: there are no
 * seccomp filters here. */
bool container_forbid_attach(void);

#endif
