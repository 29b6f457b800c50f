/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Copies between this process and a peer's by the kernel (process_vm_readv(2)).
 * Whoever includes it has defined _GNU_SOURCE before anything else.
 */
#ifndef WEFT_VMCOPY_H
#define WEFT_VMCOPY_H

#include <errno.h>
#include <sys/uio.h>

#include "hotpath.h"

/* Copies len bytes from an address in the peer's process, or to it. False: not all of it was copied.
 * A kernel that does not let this process do it is not asked again. */
static inline bool weft_vm_copy(struct weft_hot_peer *peer, void *buf, uint64_t at, size_t len, bool read)
{
	pid_t pid = atomic_load_explicit(&peer->pid, memory_order_relaxed);
	struct iovec local = { buf, len }, remote = { (void *)at, len };
	ssize_t n = -1;

	if (!pid)
		return false;
	n = read ? process_vm_readv(pid, &local, 1, &remote, 1, 0) :
		   process_vm_writev(pid, &local, 1, &remote, 1, 0);
	if (n < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS))
		atomic_store_explicit(&peer->pid, 0, memory_order_relaxed);
	return n == (ssize_t)len;
}

#endif
