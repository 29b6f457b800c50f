/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEFT_TESTS_GPU_H
#define WEFT_TESTS_GPU_H

#include <stdbool.h>
#include <stddef.h>

/* Memory of a GPU, or of the made-up one of fake/libcuda.c where there is none. */

/* To be called first in main: where there is no CUDA driver it executes the program anew so that
 * the fake one is found. */
void gpu_main(char **argv);

/* Initialises the driver. */
void gpu_open(void);

/* True for the fake driver, whose memory faults when it is touched. */
bool gpu_is_fake(void);

/* Whether RDMA devices are to take memory of the fake GPU (fake/dmabuf.c): with WEFT_TEST_DMABUF in the environment. */
bool gpu_memory_is_registered(void);

/* Whether they do what WEFT_FAKE_DMABUF says: "" take it, "refuse", or "full". */
bool gpu_reaches_devices(const char *how);

/* How many registrations of it this process has. */
int gpu_registered(void);

/* Has RDMA devices not take memory of this process that is so long; other memory they take. */
void gpu_refuse_devices(size_t len);

/* How often memory of other processes was mapped; the fake driver counts. */
int gpu_imports(void);

/* How often a stream of copies was waited for; the fake driver only. */
int gpu_waits(void);

/* How many of these mappings there are; the fake driver only. */
int gpu_mapped(void);

/* Resets the fake GPU: all calls of this process fail from now on. */
void gpu_reset(void);

/* Destroys the context of the fake GPU, and with it this process's memory and mappings; gpu_open() makes another. */
void gpu_destroy(void);

/* Has the fake GPU of this process map no memory of other processes from now on. */
void gpu_no_peer_access(void);

void *gpu_alloc(size_t len);
void gpu_free(void *p);
void *gpu_alloc_host(size_t len);

/* Copies; either side may be in the process's memory. */
void gpu_get(void *to, const void *device, size_t len);
void gpu_put(void *device, const void *from, size_t len);

#endif
