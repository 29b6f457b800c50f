/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder of the test's own for weft's segment files, so that they can be counted. */
#ifndef WEFT_TESTS_SHMDIR_H
#define WEFT_TESTS_SHMDIR_H

/* Makes the folder in rank 0 before anything is opened, sets FI_WEFT_SHM_DIR in every rank; the
 * processes that they execute inherit it. */
const char *shmdir_make(void);

/* The segment files in it ("weft..."); -1 when the provider is not weft and has none. */
int shmdir_count(void);

/* Calls visit with the path of each segment file. */
void shmdir_each(void (*visit)(const char *path, void *arg), void *arg);

/* Removes the folder and what is left in it (rank 0). */
void shmdir_remove(void);

#endif
