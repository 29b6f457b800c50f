/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A thread's first call into Go.
 *
 * A handler without SA_ONSTACK runs on the stack that its thread is on, and in
 * Go that is a goroutine's, which is no larger than it needed to be. What a
 * handler of ordinary size writes would reach into memory of others. So each
 * thread's goroutine gets a stack with room for handlers before it does
 * anything else, and keeps it (the library is linked with gcshrinkstackoff).
 */
#include "goapi.h"
#include "thread.h"

void weft_thread_enter(void *context)
{
	static __thread bool entered __attribute__((tls_model("initial-exec")));

	(void)context; /* stays 0: there is nothing to release */
	if (__builtin_expect(entered, 1))
		return;
	entered = true; /* first: the next call comes here again */
	weftGoEnterThread();
}
