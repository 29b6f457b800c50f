/* SPDX-License-Identifier: BSD-2-Clause */
/* MPI one-sided communication, under fences, locks and post-start-complete-wait. */
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

static void exposure(void)
{
	MPI_Group all, to, from;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, &next, &to);
	MPI_Group_incl(all, 1, &previous, &from);
	MPI_Barrier(MPI_COMM_WORLD);
	set(100 * rank);
	MPI_Win_post(from, 0, win);
	MPI_Win_start(to, 0, win);
	MPI_Put(buf, 100, MPI_INT64_T, next, 10, 100, MPI_INT64_T, win);
	MPI_Win_complete(win);
	MPI_Win_wait(win);
	for (int i = 0; i < 100; i++)
		CHECK(mem[10 + i] == 100 * previous + i);
	MPI_Group_free(&all);
	MPI_Group_free(&to);
	MPI_Group_free(&from);
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
	free(buf);
	return finish("onesided");
}
