/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks and data patterns for the MPI programs: a failed check ends the whole job. */
#ifndef WEFT_TESTS_MPI_CHECK_H
#define WEFT_TESTS_MPI_CHECK_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

#define CHECK(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "[%d] %s:%d: failed: %s\n", rank, __FILE__, __LINE__, #cond); \
			MPI_Abort(MPI_COMM_WORLD, 1); \
		} \
	} while (0)

/* A check whose values are worth seeing. */
#define CHECK_EQ(got, want) \
	do { \
		long long g_ = (long long)(got), w_ = (long long)(want); \
		if (g_ != w_) { \
			fprintf(stderr, "[%d] %s:%d: failed: %s is %lld, want %lld\n", rank, __FILE__, __LINE__, #got, \
				g_, w_); \
			MPI_Abort(MPI_COMM_WORLD, 1); \
		} \
	} while (0)

static inline unsigned char byte_at(uint64_t seed, size_t i)
{
	return (unsigned char)((seed * 0x9e3779b1u + i * 0x85ebca77u + (i >> 8)) >> 7);
}

static inline void fill(void *buf, size_t len, uint64_t seed)
{
	unsigned char *p = buf;

	for (size_t i = 0; i < len; i++)
		p[i] = byte_at(seed, i);
}

static inline void verify(const void *buf, size_t len, uint64_t seed)
{
	const unsigned char *p = buf;

	for (size_t i = 0; i < len; i++)
		if (p[i] != byte_at(seed, i)) {
			fprintf(stderr, "[%d] byte %zu of %zu (seed %llu) is %#x, want %#x\n", rank, i, len,
				(unsigned long long)seed, p[i], byte_at(seed, i));
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
}

static inline int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts a list, and returns its median. */
static inline double median(double *list, int n)
{
	qsort(list, n, sizeof(*list), by_value);
	return n % 2 ? list[n / 2] : (list[n / 2 - 1] + list[n / 2]) / 2;
}

/* The number of bytes that a receive got. */
static inline int got_bytes(MPI_Status *st)
{
	int n;

	MPI_Get_count(st, MPI_BYTE, &n);
	return n;
}

/* Rank 0 reports each part that all ranks have passed. */
static inline void done(const char *what)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		printf("passed %s\n", what);
		fflush(stdout);
	}
}

static inline void start(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* The last line: what the runner searches for. */
static inline int conclude(const char *program)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		printf("%s: all passed on %d ranks\n", program, size);
		fflush(stdout);
	}
	return MPI_Finalize();
}

#endif
