/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory of the Go runtime, which the kernel is asked for. runtime/cgo calls mmap and munmap of the C library, for
 * sanitizers that intercept them. MPI libraries patch these functions while the runtime's threads run, and a thread
 * that is inside one meanwhile crashes (tests/c/hooked.c). The libraries are linked so that the calls come here.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

uintptr_t __wrap_x_cgo_mmap(void *addr, uintptr_t length, int32_t prot, int32_t flags, int32_t fd, uint32_t offset);
void __wrap_x_cgo_munmap(void *addr, uintptr_t length);

/* The address, or an errno, which no address is. */
uintptr_t __wrap_x_cgo_mmap(void *addr, uintptr_t length, int32_t prot, int32_t flags, int32_t fd, uint32_t offset)
{
	long at = syscall(SYS_mmap, addr, length, (long)prot, (long)flags, (long)fd, (long)offset);

	return at == -1 ? (uintptr_t)errno : (uintptr_t)at;
}

/* The runtime takes no failure of munmap. */
void __wrap_x_cgo_munmap(void *addr, uintptr_t length)
{
	if (syscall(SYS_munmap, addr, length))
		abort();
}
