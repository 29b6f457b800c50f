/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEFT_THREAD_H
#define WEFT_THREAD_H

#include <stdbool.h>

/* How late in ns timers of the runtime's threads may be. Go's own are as coarse. */
#define WEFT_RUNTIME_SLACK 1000000ul

/* Called by the Go runtime on every call from C (runtime.SetCgoTraceback). */
void weft_thread_enter(void *context);

/* The same for the thread that ends the process's use of Go. It is not counted: that may stop all
 * threads that run Go, of which one might never go on. */
void weft_thread_enter_last(void);

/* signals.c: a thread's first call into Go, which leaves its alternate stack as it is. threads is
 * how many there are. */
void weft_enter_go(unsigned threads);

/* signals.c, spares.c: before the runtime starts. */
void weft_signals_prepare(void);
void weft_spares_prepare(void);

/* spares.c: for an operation that may need threads, named in the log: 0, or -FI_EAGAIN when there are
 * too few. Says how many the runtime may need at a time, for places to run Go in and
 * for what is locked to a thread: false when the system does not give as many, and the places stay as
 * they were. Starts a thread of the library's own, or returns false. */
int weft_spares_need(const char *what);
bool weft_spares_want(unsigned places, unsigned locked);
bool weft_thread_start(void *(*start)(void *), void *arg);

/* atend.c: does work of Go's at the end of the process, for as many seconds at most. */
void weft_at_end(void (*work)(void), unsigned seconds);

/* caught.c: has a signal make the event file that is returned readable; -1 with errno. */
int weft_signal_file(int sig);

#endif
