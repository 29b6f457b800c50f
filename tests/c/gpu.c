/* SPDX-License-Identifier: BSD-2-Clause */
/* GPU memory for tests, through the CUDA driver API, real or fake. */
#include "common.h"

#include <dlfcn.h>
#include <limits.h>

#include "gpu.h"

static struct {
	int (*init)(unsigned);
	int (*retain)(void **, int);
	int (*current)(void *);
	int (*alloc)(uint64_t *, size_t);
	int (*alloc_host)(void **, size_t);
	int (*free)(uint64_t);
	int (*get)(void *, uint64_t, size_t);
	int (*put)(uint64_t, const void *, size_t);
	int *imports;
	int *waits;
	int (*mapped)(void);
	void (*reset)(void);
	void (*destroy)(void);
	void (*no_peer_access)(void);
} cu;

void gpu_main(char **argv)
{
	const char *before = getenv("LD_LIBRARY_PATH");
	char path[2 * PATH_MAX], *end;
	ssize_t n;

	if (getenv("WEFT_TEST_GPU") || dlopen("libcuda.so.1", RTLD_LAZY))
		return;
	n = readlink("/proc/self/exe", path, PATH_MAX - 6);
	if (n <= 0)
		return;
	path[n] = 0;
	end = strrchr(path, '/');
	strcpy(end, "/fake");
	if (before && *before) /* other stand-ins */
		snprintf(path + strlen(path), sizeof(path) - strlen(path), ":%s", before);
	setenv("LD_LIBRARY_PATH", path, 1);
	if (gpu_memory_is_registered()) {
		strcpy(end, "/fake/libdmabuf.so");
		setenv("LD_PRELOAD", path, 1);
	}
	setenv("WEFT_TEST_GPU", "fake", 1);
	execv("/proc/self/exe", argv);
}

bool gpu_memory_is_registered(void)
{
	return getenv("WEFT_TEST_DMABUF") != NULL;
}

bool gpu_reaches_devices(const char *how)
{
	const char *s = getenv("WEFT_FAKE_DMABUF");

	return gpu_memory_is_registered() && !strcmp(s ? s : "", how);
}

int gpu_registered(void)
{
	int (*count)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "weft_fake_dmabufs");

	return count ? count() : 0;
}

void gpu_refuse_devices(size_t len)
{
	void (*refuse)(size_t) = (void (*)(size_t))dlsym(RTLD_DEFAULT, "weft_fake_refuse");

	if (refuse)
		refuse(len);
}

bool gpu_is_fake(void)
{
	const char *s = getenv("WEFT_TEST_GPU");

	return s && !strcmp(s, "fake");
}

static void *symbol(void *library, const char *name)
{
	void *f = dlsym(library, name);

	CHECKF(f != NULL, "%s is missing", name);
	return f;
}

void gpu_open(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;

	if (!library)
		SKIP("no CUDA driver, real or fake: %s", dlerror());
	cu.init = symbol(library, "cuInit");
	cu.retain = symbol(library, "cuDevicePrimaryCtxRetain");
	cu.current = symbol(library, "cuCtxSetCurrent");
	cu.alloc = symbol(library, "cuMemAlloc_v2");
	cu.alloc_host = symbol(library, "cuMemAllocHost_v2");
	cu.free = symbol(library, "cuMemFree_v2");
	cu.get = symbol(library, "cuMemcpyDtoH_v2");
	cu.put = symbol(library, "cuMemcpyHtoD_v2");
	if (gpu_is_fake()) {
		cu.imports = symbol(library, "weft_fake_imports");
		cu.waits = symbol(library, "weft_fake_waits");
		cu.mapped = symbol(library, "weft_fake_mapped");
		cu.reset = symbol(library, "weft_fake_reset");
		cu.destroy = symbol(library, "weft_fake_destroy");
		cu.no_peer_access = symbol(library, "weft_fake_no_peer_access");
	}
	if (cu.init(0) || cu.retain(&context, 0))
		SKIP("the CUDA driver has no device");
	CHECK(cu.current(context) == 0);
}

int gpu_imports(void)
{
	return *cu.imports;
}
int gpu_waits(void)
{
	return *cu.waits;
}
int gpu_mapped(void)
{
	return cu.mapped();
}
void gpu_reset(void)
{
	cu.reset();
}
void gpu_destroy(void)
{
	cu.destroy();
}
void gpu_no_peer_access(void)
{
	cu.no_peer_access();
}

void *gpu_alloc(size_t len)
{
	uint64_t p = 0;

	CHECK(cu.alloc(&p, len) == 0);
	return (void *)(uintptr_t)p;
}

void *gpu_alloc_host(size_t len)
{
	void *p = NULL;

	CHECK(cu.alloc_host(&p, len) == 0);
	return p;
}

void gpu_free(void *p)
{
	CHECK(cu.free((uintptr_t)p) == 0);
}

void gpu_get(void *to, const void *device, size_t len)
{
	CHECK(cu.get(to, (uintptr_t)device, len) == 0);
}

void gpu_put(void *device, const void *from, size_t len)
{
	CHECK(cu.put((uintptr_t)device, from, len) == 0);
}
