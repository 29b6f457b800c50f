/* SPDX-License-Identifier: BSD-2-Clause */
/* MPI one-sided communication: every operation under fences, locks and post-start-complete-wait. */
#include "check.h"

#define N 100000

static int next, previous;
static int64_t *mem, *buf;
static MPI_Win win;

static void set(int64_t first)
{
	for (int i = 0; i < N; i++)
		buf[i] = first + i;
}

static void put_get(void)
{
	MPI_Win_fence(0, win);
	set(rank);
	MPI_Put(buf, N, MPI_INT64_T, next, 0, N, MPI_INT64_T, win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < N; i++)
		CHECK(mem[i] == previous + i);
	MPI_Win_fence(0, win);
	set(-N);
	MPI_Get(buf, N, MPI_INT64_T, next, 0, N, MPI_INT64_T, win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < N; i++)
		CHECK(buf[i] == rank + i);
}

static void fetch_and_op(void)
{
	const int64_t one = 1;
	int64_t old, last = -1;

	MPI_Win_fence(0, win);
	mem[5] = 0;
	MPI_Win_fence(0, win);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < 1000; i++) {
		MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 5, MPI_SUM, win);
		MPI_Win_flush(0, win);
		CHECK(old > last);
		last = old;
	}
	MPI_Win_unlock_all(win);
	MPI_Win_fence(0, win);
	if (rank == 0)
		CHECK(mem[5] == 1000 * (int64_t)size);
}

static void accumulate(void)
{
	MPI_Win_fence(0, win);
	for (int i = 0; i < N; i++)
		mem[i] = 0;
	set(1);
	MPI_Win_fence(0, win);
	MPI_Accumulate(buf, N, MPI_INT64_T, 0, 0, N, MPI_INT64_T, MPI_SUM, win);
	MPI_Win_fence(0, win);
	if (rank == 0)
		for (int i = 0; i < N; i++)
			CHECK(mem[i] == (i + 1) * (int64_t)size);
}

static void exclusive(void)
{
	MPI_Win_fence(0, win);
	mem[7] = 0;
	MPI_Win_fence(0, win);
	for (int i = 0; i < 100; i++) {
		int64_t v;

		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Get(&v, 1, MPI_INT64_T, 0, 7, 1, MPI_INT64_T, win);
		MPI_Win_flush(0, win);
		v++;
		MPI_Put(&v, 1, MPI_INT64_T, 0, 7, 1, MPI_INT64_T, win);
		MPI_Win_unlock(0, win);
	}
	MPI_Win_fence(0, win);
	if (rank == 0)
		CHECK(mem[7] == 100 * (int64_t)size);
}

enum sync { FENCE, PSCW, LOCK };

static void post_and_start(void)
{
	MPI_Group all, to, from;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, &next, &to);
	MPI_Group_incl(all, 1, &previous, &from);
	MPI_Win_post(from, 0, win);
	MPI_Win_start(to, 0, win);
	MPI_Group_free(&all);
	MPI_Group_free(&to);
	MPI_Group_free(&from);
}

static void begin(enum sync sync)
{
	if (sync == FENCE)
		MPI_Win_fence(0, win);
	else if (sync == PSCW)
		post_and_start();
	else
		MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
}

static void end(enum sync sync)
{
	if (sync == FENCE) {
		MPI_Win_fence(0, win);
	} else if (sync == PSCW) {
		MPI_Win_complete(win);
		MPI_Win_wait(win);
	} else {
		MPI_Win_unlock(next, win);
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

static void exposure(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	set(100 * rank);
	begin(PSCW);
	MPI_Put(buf, 100, MPI_INT64_T, next, 10, 100, MPI_INT64_T, win);
	end(PSCW);
	for (int i = 0; i < 100; i++)
		CHECK(mem[10 + i] == 100 * previous + i);
}

/* Each operation at the next rank's window, which is not shared memory of Open MPI's: osc rdma gives
 * btl ofi no handle for MPI_Compare_and_swap at such memory, and none at a rank's own. */
static void every_operation(enum sync sync)
{
	const int64_t one = 1, here = 1000 * rank, there = 1000 * next;
	const int64_t swapped = -1 - rank, right = there + 301, wrong = there;
	int64_t got[100], ones[100], old = 0, before = 0, unchanged = 0;

	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
	for (int i = 0; i < 303; i++)
		mem[i] = here + i;
	MPI_Win_unlock(rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
	set(7 * rank);
	for (int i = 0; i < 100; i++)
		ones[i] = 1;
	begin(sync);
	MPI_Put(buf, 100, MPI_INT64_T, next, 0, 100, MPI_INT64_T, win);
	MPI_Get(got, 100, MPI_INT64_T, next, 100, 100, MPI_INT64_T, win);
	MPI_Accumulate(ones, 100, MPI_INT64_T, next, 200, 100, MPI_INT64_T, MPI_SUM, win);
	MPI_Fetch_and_op(&one, &old, MPI_INT64_T, next, 300, MPI_SUM, win);
	MPI_Compare_and_swap(&swapped, &right, &before, MPI_INT64_T, next, 301, win);
	MPI_Compare_and_swap(&swapped, &wrong, &unchanged, MPI_INT64_T, next, 302, win);
	end(sync);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(mem[i], 7 * previous + i);
		CHECK_EQ(got[i], there + 100 + i);
		CHECK_EQ(mem[200 + i], here + 200 + i + 1);
	}
	CHECK_EQ(old, there + 300);
	CHECK_EQ(mem[300], here + 301);
	CHECK_EQ(before, right);
	CHECK_EQ(mem[301], -1 - previous);
	CHECK_EQ(unchanged, there + 302);
	CHECK_EQ(mem[302], here + 302);
	MPI_Win_unlock(rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* All ranks but the first swap a word of its window upwards. */
static void swap_races(void)
{
	int64_t seen = 0;

	if (rank == 0)
		mem[0] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int i = 0; rank > 0 && i < 1000;) {
		int64_t more = seen + 1, old;

		MPI_Compare_and_swap(&more, &seen, &old, MPI_INT64_T, 0, 0, win);
		MPI_Win_flush(0, win);
		i += old == seen;
		seen = old == seen ? more : old;
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		CHECK_EQ(mem[0], 1000 * (int64_t)(size - 1));
}

int main(int argc, char **argv)
{
	start(&argc, &argv);
	next = (rank + 1) % size;
	previous = (rank + size - 1) % size;
	buf = malloc(N * sizeof(*buf));
	MPI_Win_allocate(N * sizeof(*mem), sizeof(*mem), MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	put_get();
	done("put_get");
	fetch_and_op();
	done("fetch_and_op");
	accumulate();
	done("accumulate");
	exposure();
	done("exposure");
	exclusive();
	done("exclusive");
	MPI_Win_free(&win);
	mem = malloc(N * sizeof(*mem));
	MPI_Win_create(mem, N * sizeof(*mem), sizeof(*mem), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	every_operation(FENCE);
	done("every operation under fences");
	every_operation(PSCW);
	done("every operation under post, start, complete and wait");
	every_operation(LOCK);
	done("every operation under locks");
	swap_races();
	done("swap_races");
	MPI_Win_free(&win);
	free(mem);
	free(buf);
	return conclude("onesided");
}
