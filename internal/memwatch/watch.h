// SPDX-License-Identifier: BSD-2-Clause
// The kernel's word on changes of this process's mappings: see doc.go.
#ifndef WEFT_MEMWATCH_H
#define WEFT_MEMWATCH_H

#include <stdint.h>

// WEFT_MEMWATCH_RING is how many changes are remembered, a power of two.
#define WEFT_MEMWATCH_RING 1024

// struct weft_memwatch_range is memory that has other pages than before.
struct weft_memwatch_range {
	uint64_t start, end;
};

// Counts of the thread that reads of changes.
struct weft_memwatch_counts {
	// begun counts the thread's reads, and is raised before each; ended follows when what it has read
	// is remembered. Written by the thread, read by all; sequentially consistent.
	_Atomic uint64_t begun, ended;
	// published is how many changes are remembered. Likewise.
	_Atomic uint64_t published;
};

extern struct weft_memwatch_counts weft_memwatch_counts;

// weft_memwatch_start starts the thread, once for the process. 0 or an errno
// value; *step says what failed.
int weft_memwatch_start(const char **step);

// weft_memwatch_cover begins to watch whole pages. 0 or an errno value.
int weft_memwatch_cover(uint64_t start, uint64_t end);

// weft_memwatch_uncover stops watching them.
void weft_memwatch_uncover(uint64_t start, uint64_t end);

// weft_memwatch_changes returns how many changes there were since *seen, at
// most max of which it writes to out, and advances *seen by these; -1 if they
// are remembered no longer, or if one does not come to its end: then *seen is
// now, and everything may have changed.
int weft_memwatch_changes(uint64_t *seen, struct weft_memwatch_range *out, int max);

#endif
