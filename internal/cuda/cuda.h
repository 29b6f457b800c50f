/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What weft calls of the CUDA driver API, with declarations of its own: the
 * toolkit's headers need not be there to build.
 */
#ifndef WEFT_CUDA_H
#define WEFT_CUDA_H

#include <stddef.h>
#include <stdint.h>

/* The size of CUipcMemHandle. */
#define WEFT_CUDA_HANDLE 64

/* All return a CUresult, 0 for success; -1 where a function is missing. */

/* Loads the library and initialises the driver once. *step names what failed. */
int weft_cuda_load(const char *name, const char **step);

/* The name of a CUresult. */
const char *weft_cuda_error(int result);

/* What kind of memory is at addr: *type 1 host, 2 device, 4 managed; the
 * context and device it belongs to, and its allocation. */
int weft_cuda_query(uint64_t addr, int device, uint32_t *type, void **context);
int weft_cuda_range(void *context, uint64_t addr, uint64_t *base, size_t *size);
int weft_cuda_buffer(void *context, uint64_t addr, uint64_t *buffer);
int weft_cuda_sync_memops(void *context, uint64_t addr);

/* dst or src is device memory if its bit is set. */
#define WEFT_CUDA_DST 1
#define WEFT_CUDA_SRC 2
int weft_cuda_copy(void *context, uint64_t dst, uint64_t src, size_t n, int which);

/* Copies on a stream, which weft_cuda_wait waits for. */
int weft_cuda_stream(void *context, void **stream);
int weft_cuda_begin(void *context, void *stream, uint64_t dst, uint64_t src, size_t n, int which);
int weft_cuda_wait(void *context, void *stream);

int weft_cuda_export(void *context, uint64_t base, void *handle);
/* A descriptor of a dma-buf of whole pages. */
int weft_cuda_dmabuf(void *context, uint64_t base, size_t size, int *fd);
int weft_cuda_import(void *context, const void *handle, uint64_t *base);
int weft_cuda_unimport(void *context, uint64_t base);

/* The context in which a process uses device 0 that has none of its own yet. */
int weft_cuda_default_context(void **context);

#endif
