/* SPDX-License-Identifier: BSD-2-Clause
 *
 * mpi_bench: what the parts have of each other.
 */
#ifndef MPI_BENCH_H
#define MPI_BENCH_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

enum {
	WINDOW = 64,	/* messages that are under way at a time */
	ROOM = 4 << 20, /* bytes that the messages of a window lie in, or the largest message */
	LAST = WINDOW,	/* tag of messages around a window; those of the window are 0 to 63 */
	MAX_THREADS = 16,
};

struct job {
	int rank, ranks;
	double seconds; /* of measuring, for a figure */
	bool check;	/* what was received is read */
};

extern struct job job;

/* What both sides of a stream have: rank 0 of the pair sends windows to the other. */
struct stream {
	MPI_Comm comm;
	int peer;
	bool sends;
	int bytes;
	char *room; /* ROOM bytes */
	unsigned char round;
};

/* A way in which the receives of a window are posted. */
enum order { STREAMED, BEFORE, AFTER, REVERSED, WILDCARDS };

/* streams.c */
void stream_open(struct stream *s, MPI_Comm comm, int peer, bool sends, int bytes);
void stream_close(struct stream *s);
void window(struct stream *s, enum order order);

/* together.c */
void test_pairs(void);
void test_threads(void);

/* main.c: measure has all ranks do batches for a while and returns the median time of one in us. The
 * first batch is not measured. report prints a figure, on rank 0. */
double measure(void (*batch)(void *), void *what);
void report(const char *name, double value);
void fail(const char *what);

#endif
