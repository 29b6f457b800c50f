/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEFT_THREAD_H
#define WEFT_THREAD_H

/* Called by the Go runtime on every call from C (runtime.SetCgoTraceback). */
void weft_thread_enter(void *context);

#endif
