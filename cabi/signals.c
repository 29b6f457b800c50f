/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The application's signals stay the application's: no handler, flag, mask or
 * alternate stack of it is another after the Go runtime has started.
 *
 * Handlers. The runtime would install its own, for preemption (SIGURG), for
 * SIGPIPE and for faults, and set SA_ONSTACK on those that are there, which
 * would then run on its 32 KiB, without a guard. weft needs none of them: it is
 * linked with preemption by signal off, writes to no pipe, and a wild pointer
 * in its Go code should end the process as one in C code does. The runtime sets
 * actions by a C function of its own, in whose place the library is linked with
 * the one below, which changes nothing.
 *
 * Masks. The runtime's threads take no signal that is sent to the process: else
 * one of them could get what an application has blocked in its threads in order
 * to wait for it. They inherit a mask that blocks all. The runtime would take
 * some signals out of the mask of each thread that runs Go, the application's
 * included, as its table of signals says; so the table says it of none.
 *
 * Alternate stacks. A thread of the application without one would get the
 * runtime's with its first call into Go and keep it. So it has another one for
 * that call, which the runtime then takes for the application's and leaves
 * alone, and none afterwards. A library that profiles itself lets it keep the runtime's: SIGPROF comes
 * while the thread is in C, too, and the runtime ends a process whose thread then has none.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "goapi.h"
#include "thread.h"

/* ---- handlers ---- */

/* Reading and setting an action for the runtime: 0 or an errno. Both actions begin with the address
 * of the handler. Default actions are set: so the runtime ends a process whose state is broken. */
__attribute__((weak)) int32_t __real_x_cgo_sigaction(intptr_t sig, const uintptr_t *act, uintptr_t *old);
int32_t __wrap_x_cgo_sigaction(intptr_t sig, const uintptr_t *act, uintptr_t *old);

int32_t __wrap_x_cgo_sigaction(intptr_t sig, const uintptr_t *act, uintptr_t *old)
{
	if (act && *act != (uintptr_t)SIG_DFL)
		act = NULL;
	return act || old ? __real_x_cgo_sigaction(sig, act, old) : 0;
}

/* ---- masks ---- */

/* Whether the library profiles itself, which is done by SIGPROF. */
#ifndef WEFT_PROFILE
#define WEFT_PROFILE 0
#endif

/* An entry of the runtime's table of signals, which has one for each, in order. */
struct entry {
	int32_t flags;
	const char *name; /* "SIGHUP: terminal line hangup"; "signal 35" */
	intptr_t length;
};

enum { SIGNALS = 65, MAY_NOT_BLOCK = 1 << 7 };

/* The memory of this library, as the loader has it. */
struct extent {
	uintptr_t low, high;
};

/* Whether e's name lies in the library and begins so. */
static bool is_entry(const struct entry *e, const char *name, const struct extent *library)
{
	uintptr_t at = (uintptr_t)e->name;
	size_t len = strlen(name);

	return e->length >= (intptr_t)len && at >= library->low && at < library->high && library->high - at >= len &&
	       !memcmp(e->name, name, len);
}

/* Whether the table is at an address, by those entries that differ most. */
static bool is_table(const struct entry *e, const struct extent *library)
{
	return !e->flags && is_entry(e, "SIGNONE: ", library) && is_entry(e + SIGHUP, "SIGHUP: ", library) &&
	       is_entry(e + SIGCHLD, "SIGCHLD: ", library) && is_entry(e + SIGNALS - 1, "signal 64", library) &&
	       !(e[SIGHUP].flags & MAY_NOT_BLOCK) && e[SIGCHLD].flags & MAY_NOT_BLOCK;
}

/* Lets all signals be blocked in a thread that runs Go but the two that the C library keeps for itself. */
static void allow_blocking(struct entry *table)
{
	for (int sig = 1; sig < SIGNALS; sig++)
		if (sig < 32 || sig >= SIGRTMIN)
			table[sig].flags &= ~MAY_NOT_BLOCK;
}

static int here = 1; /* among that data */

static bool lies_in(uintptr_t at, struct extent e)
{
	return at >= e.low && at < e.high;
}

/* Finds the table where it is in this library: among the data that is written. Called with each
 * object of the process, until it returns something. */
static int find_table(struct dl_phdr_info *object, size_t size, void *unused)
{
	struct extent library = { UINTPTR_MAX, 0 }, data = { 0, 0 };

	(void)size;
	(void)unused;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		struct extent at = { object->dlpi_addr + part->p_vaddr,
				     object->dlpi_addr + part->p_vaddr + part->p_memsz };

		if (part->p_type != PT_LOAD)
			continue;
		library.low = at.low < library.low ? at.low : library.low;
		library.high = at.high > library.high ? at.high : library.high;
		if (lies_in((uintptr_t)&here, at))
			data = (struct extent){ (at.low + 7) & ~7ul, at.low + part->p_filesz };
	}
	for (; data.low + SIGNALS * sizeof(struct entry) <= data.high; data.low += sizeof(void *))
		if (is_table((struct entry *)data.low, &library)) {
			allow_blocking((struct entry *)data.low);
			return 1;
		}
	return 0;
}

void weft_signals_prepare(void)
{
	if (!WEFT_PROFILE)
		dl_iterate_phdr(find_table, NULL);
}

/* ---- alternate stacks ---- */

/* Room for a handler that interrupts a thread's first call into Go, in bytes. */
#define SPARE_STACK (64ul << 10)

void weft_enter_go(unsigned threads)
{
	stack_t own = { 0 }, spare = { .ss_size = SPARE_STACK };

	if (!WEFT_PROFILE && !sigaltstack(NULL, &own) && own.ss_flags & SS_DISABLE)
		spare.ss_sp = malloc(SPARE_STACK);
	if (spare.ss_sp)
		sigaltstack(&spare, NULL);
	weftGoEnterThread(threads);
	if (spare.ss_sp) {
		sigaltstack(&own, NULL);
		free(spare.ss_sp);
	}
}
