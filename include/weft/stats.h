/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Counters that the C hot path writes: words of the process's page of counters
 * (package internal/stats, whose table says what each means; a test compares
 * the numbers below with it).
 *
 * A thread owns one line of every endpoint, so it adds without a lock and
 * without sharing a cache line. Threads beyond the number of lines share the
 * last one and add atomically.
 */
#ifndef WEFT_STATS_H
#define WEFT_STATS_H

#include <stdatomic.h>
#include <stdint.h>

#define WEFT_STAT_LINES 64u       /* the last is shared */
#define WEFT_STAT_LINE_WORDS 16u  /* two cache lines; the second is for what is rare */

/* Words of a thread's line. */
enum weft_stat_thread {
	WEFT_STAT_TX_INLINE,
	WEFT_STAT_TX_INLINE_BYTES,
	WEFT_STAT_TX_BOUNCE,
	WEFT_STAT_TX_BOUNCE_BYTES,
	WEFT_STAT_TX_WRITE,
	WEFT_STAT_TX_WRITE_BYTES,
	WEFT_STAT_TX_ATOMIC,
	WEFT_STAT_TX_READ,
	WEFT_STAT_EAGAIN_RING,
	WEFT_STAT_EAGAIN_CQ,
	WEFT_STAT_EAGAIN_BOUNCE,
	WEFT_STAT_EAGAIN_STRIPE,
	WEFT_STAT_LEASE_BUSY,
	WEFT_STAT_TX_READ_BYTES,
};

/* Words of the lease holder's line that C writes. */
enum weft_stat_rx {
	WEFT_STAT_RX_DIRECT,
	WEFT_STAT_RX_DIRECT_BYTES,
	WEFT_STAT_RX_DIRECT_BATCHES,
	WEFT_STAT_RX_SERVED_WRITES,
	WEFT_STAT_RX_SERVED_ATOMICS,
	WEFT_STAT_RX_RENDEZVOUS,
	WEFT_STAT_RX_RENDEZVOUS_BYTES,
};

typedef _Atomic uint64_t weft_stat;

/* Adds to a word that only this thread writes. */
static inline void weft_stat_add(weft_stat *word, uint64_t n)
{
	atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* Adds to a word of the line that threads share. */
static inline void weft_stat_add_shared(weft_stat *lines, uint32_t what, uint64_t n)
{
	atomic_fetch_add_explicit(lines + (WEFT_STAT_LINES - 1) * WEFT_STAT_LINE_WORDS + what, n,
				  memory_order_relaxed);
}

#endif
