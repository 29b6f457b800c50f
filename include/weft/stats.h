/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Counters that the C hot path writes: words of the process's page of counters
 * (package internal/stats, whose table says what each means).
 *
 * A thread owns one line of every endpoint, so it adds without a lock and
 * without sharing a cache line. Threads beyond the number of lines share the
 * last one and add atomically.
 */
#ifndef WEFT_STATS_H
#define WEFT_STATS_H

#include <stdatomic.h>
#include <stdint.h>

#include "stat_words.h"

typedef _Atomic uint64_t weft_stat;

/* Adds to a word that only this thread writes. */
static inline void weft_stat_add(weft_stat *word, uint64_t n)
{
	atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) + n, memory_order_relaxed);
}

/* Adds to a word of the line that threads share. */
static inline void weft_stat_add_shared(weft_stat *lines, uint32_t what, uint64_t n)
{
	atomic_fetch_add_explicit(lines + (WEFT_STAT_LINES - 1) * WEFT_STAT_LINE_WORDS + what, n, memory_order_relaxed);
}

#endif
