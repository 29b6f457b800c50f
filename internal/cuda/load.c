/* SPDX-License-Identifier: BSD-2-Clause
 *
 * libcuda.so.1 by dlopen, and calls that make a context current around them.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "cuda.h"

struct handle {
	char bytes[WEFT_CUDA_HANDLE];
};

/* The driver API's functions, under the names that its headers map to. */
static struct {
	int (*init)(unsigned);
	int (*device_count)(int *);
	int (*device_get)(int *, int);
	int (*primary)(void **, int);
	int (*release)(int);
	int (*push)(void *);
	int (*pop)(void **);
	int (*dtoh)(void *, uint64_t, size_t);
	int (*htod)(uint64_t, const void *, size_t);
	int (*dtod)(uint64_t, uint64_t, size_t);
	int (*stream_create)(void **, unsigned);
	int (*stream_wait)(void *);
	int (*dtoh_async)(void *, uint64_t, size_t, void *);
	int (*htod_async)(uint64_t, const void *, size_t, void *);
	int (*dtod_async)(uint64_t, uint64_t, size_t, void *);
	int (*get_attribute)(void *, int, uint64_t);
	int (*set_attribute)(const void *, int, uint64_t);
	int (*range)(uint64_t *, size_t *, uint64_t);
	int (*ipc_get)(struct handle *, uint64_t);
	int (*ipc_open)(uint64_t *, struct handle, unsigned);
	int (*ipc_close)(uint64_t);
	int (*error_name)(int, const char **);
	/* Drivers have it since 11.7; NULL in older ones. */
	int (*range_handle)(void *, uint64_t, size_t, int, unsigned long long);
} cu;

static const struct {
	const char *name;
	void *to;
} symbols[] = {
	{ "cuInit", &cu.init },
	{ "cuDeviceGetCount", &cu.device_count },
	{ "cuDeviceGet", &cu.device_get },
	{ "cuDevicePrimaryCtxRetain", &cu.primary },
	{ "cuDevicePrimaryCtxRelease_v2", &cu.release },
	{ "cuCtxPushCurrent_v2", &cu.push },
	{ "cuCtxPopCurrent_v2", &cu.pop },
	{ "cuMemcpyDtoH_v2", &cu.dtoh },
	{ "cuMemcpyHtoD_v2", &cu.htod },
	{ "cuMemcpyDtoD_v2", &cu.dtod },
	{ "cuStreamCreate", &cu.stream_create },
	{ "cuStreamSynchronize", &cu.stream_wait },
	{ "cuMemcpyDtoHAsync_v2", &cu.dtoh_async },
	{ "cuMemcpyHtoDAsync_v2", &cu.htod_async },
	{ "cuMemcpyDtoDAsync_v2", &cu.dtod_async },
	{ "cuPointerGetAttribute", &cu.get_attribute },
	{ "cuPointerSetAttribute", &cu.set_attribute },
	{ "cuMemGetAddressRange_v2", &cu.range },
	{ "cuIpcGetMemHandle", &cu.ipc_get },
	{ "cuIpcOpenMemHandle_v2", &cu.ipc_open },
	{ "cuIpcCloseMemHandle", &cu.ipc_close },
	{ "cuGetErrorName", &cu.error_name },
};

enum { NO_DEVICE = 100 }; /* CUDA_ERROR_NO_DEVICE */
enum { ATTR_CONTEXT = 1, ATTR_MEMORY_TYPE = 2, ATTR_SYNC_MEMOPS = 6, ATTR_BUFFER_ID = 7, ATTR_IS_MANAGED = 8 };
enum { TYPE_HOST = 1, TYPE_MANAGED = 4 };
enum { STREAM_NON_BLOCKING = 1 }; /* CU_STREAM_NON_BLOCKING */
enum { LAZY_PEER_ACCESS = 1 };	  /* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS */
enum { DMA_BUF_FD = 1 };	  /* CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* loading, and taking of contexts */

int weft_cuda_load(const char *name, const char **step)
{
	static void *library;
	int count = 0, rc = -1;

	pthread_mutex_lock(&lock);
	if (!library) {
		*step = "dlopen";
		library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	}
	for (size_t i = 0; library && i < sizeof(symbols) / sizeof(*symbols); i++) {
		*step = symbols[i].name;
		void *f = dlsym(library, symbols[i].name);
		if (!f)
			goto out;
		memcpy(symbols[i].to, &f, sizeof(f));
	}
	if (!library)
		goto out;
	void *range_handle = dlsym(library, "cuMemGetHandleForAddressRange");
	memcpy(&cu.range_handle, &range_handle, sizeof(range_handle));
	*step = "cuInit";
	rc = cu.init(0);
	if (rc)
		goto out;
	*step = "cuDeviceGetCount";
	rc = cu.device_count(&count);
	if (!rc && !count)
		rc = NO_DEVICE;
out:
	pthread_mutex_unlock(&lock);
	return rc;
}

const char *weft_cuda_error(int result)
{
	const char *text = NULL;

	if (result < 0)
		return "not found";
	if (!cu.error_name || cu.error_name(result, &text) || !text)
		return "unknown error";
	return text;
}

/* The primary context of a device, of which the process keeps one reference at most. */
static int primary(void **context, int device)
{
	static void *kept[64];
	int rc = cu.primary(context, device);

	if (rc || device < 0 || device >= (int)(sizeof(kept) / sizeof(*kept)))
		return rc;
	pthread_mutex_lock(&lock);
	bool more = kept[device] == *context;
	kept[device] = *context;
	pthread_mutex_unlock(&lock);
	return more ? cu.release(device) : 0;
}

int weft_cuda_query(uint64_t addr, int device, uint32_t *type, void **context)
{
	uint32_t managed = 0;
	int rc = cu.get_attribute(type, ATTR_MEMORY_TYPE, addr);

	if (rc)
		return rc;
	if (!cu.get_attribute(&managed, ATTR_IS_MANAGED, addr) && managed)
		*type = TYPE_MANAGED;
	if (*type == TYPE_HOST)
		return 0;
	*context = NULL;
	rc = cu.get_attribute(context, ATTR_CONTEXT, addr);
	if (!rc && !*context) { /* of a pool, which belongs to a device */
		rc = cu.device_get(&device, device);
		if (!rc)
			rc = primary(context, device);
	}
	return rc;
}

int weft_cuda_default_context(void **context)
{
	int device;
	int rc = cu.device_get(&device, 0);

	return rc ? rc : primary(context, device);
}

/* Runs call with context current. */
#define WITHIN(context, call) \
	({ \
		void *popped; \
		int rc_ = cu.push(context); \
		if (!rc_) { \
			rc_ = (call); \
			cu.pop(&popped); \
		} \
		rc_; \
	})

int weft_cuda_range(void *context, uint64_t addr, uint64_t *base, size_t *size)
{
	return WITHIN(context, cu.range(base, size, addr));
}

int weft_cuda_buffer(void *context, uint64_t addr, uint64_t *buffer)
{
	unsigned long long id = 0;
	int rc = WITHIN(context, cu.get_attribute(&id, ATTR_BUFFER_ID, addr));

	*buffer = id;
	return rc;
}

int weft_cuda_sync_memops(void *context, uint64_t addr)
{
	unsigned on = 1;

	return WITHIN(context, cu.set_attribute(&on, ATTR_SYNC_MEMOPS, addr));
}

int weft_cuda_copy(void *context, uint64_t dst, uint64_t src, size_t n, int which)
{
	switch (which) {
	case WEFT_CUDA_DST:
		return WITHIN(context, cu.htod(dst, (const void *)(uintptr_t)src, n));
	case WEFT_CUDA_SRC:
		return WITHIN(context, cu.dtoh((void *)(uintptr_t)dst, src, n));
	default:
		return WITHIN(context, cu.dtod(dst, src, n));
	}
}

int weft_cuda_stream(void *context, void **stream)
{
	return WITHIN(context, cu.stream_create(stream, STREAM_NON_BLOCKING));
}

int weft_cuda_begin(void *context, void *stream, uint64_t dst, uint64_t src, size_t n, int which)
{
	switch (which) {
	case WEFT_CUDA_DST:
		return WITHIN(context, cu.htod_async(dst, (const void *)(uintptr_t)src, n, stream));
	case WEFT_CUDA_SRC:
		return WITHIN(context, cu.dtoh_async((void *)(uintptr_t)dst, src, n, stream));
	default:
		return WITHIN(context, cu.dtod_async(dst, src, n, stream));
	}
}

int weft_cuda_wait(void *context, void *stream)
{
	return WITHIN(context, cu.stream_wait(stream));
}

int weft_cuda_export(void *context, uint64_t base, void *handle)
{
	return WITHIN(context, cu.ipc_get(handle, base));
}

int weft_cuda_dmabuf(void *context, uint64_t base, size_t size, int *fd)
{
	*fd = -1;
	if (!cu.range_handle)
		return -1;
	return WITHIN(context, cu.range_handle(fd, base, size, DMA_BUF_FD, 0));
}

int weft_cuda_import(void *context, const void *handle, uint64_t *base)
{
	struct handle h;

	memcpy(&h, handle, sizeof(h));
	return WITHIN(context, cu.ipc_open(base, h, LAZY_PEER_ACCESS));
}

int weft_cuda_unimport(void *context, uint64_t base)
{
	return WITHIN(context, cu.ipc_close(base));
}
