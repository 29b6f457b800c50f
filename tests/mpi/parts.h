/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffers of MPI_Alltoallv with random parts, every byte known. */
#ifndef WEFT_TESTS_MPI_PARTS_H
#define WEFT_TESTS_MPI_PARTS_H

#include "check.h"

enum { MAX = 64, GAP = 8 };

static inline unsigned random_of(unsigned a, unsigned b, unsigned c)
{
	unsigned x = a * 2654435761u + b * 40503u + c * 69069u + 1;

	x ^= x >> 15;
	x *= 2246822519u;
	x ^= x >> 13;
	return x;
}

/* Elements from one rank to another in a round: often none, sometimes many. */
static inline int elements(int round, int from, int to)
{
	unsigned r = random_of(round, from, to);

	return r % 4 == 0 ? 0 : (int)(r >> 4) % (r % 16 == 1 ? 60000 : 300);
}

static inline uint64_t seed_of(int round, int from, int to)
{
	return (uint64_t)round * 10007 + from * 101 + to;
}

/* One side of an MPI_Alltoallv: parts in reverse order, with gaps. */
struct parts {
	int n, counts[MAX], displs[MAX];
	unsigned char *buf;
	size_t bytes;
};

static inline void lay(struct parts *p, int n, int elem)
{
	int at = 0;

	p->n = n;
	for (int i = n; i-- > 0; at += p->counts[i] + GAP)
		p->displs[i] = at;
	p->bytes = (size_t)at * elem;
	p->buf = malloc(p->bytes);
	memset(p->buf, 0xAA, p->bytes);
}

static inline void gaps(const struct parts *p, int elem)
{
	for (int i = 0; i < p->n; i++)
		for (int k = 0; k < GAP * elem; k++)
			CHECK_EQ(p->buf[(size_t)(p->displs[i] + p->counts[i]) * elem + k], 0xAA);
}

static inline void vector_make(struct parts *in, struct parts *out, int round, int elem, MPI_Comm comm, int symmetric)
{
	int n, me;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &me);
	for (int i = 0; i < n; i++) {
		in->counts[i] = symmetric && i < me ? elements(round, i, me) : elements(round, me, i);
		out->counts[i] = symmetric && me < i ? elements(round, me, i) : elements(round, i, me);
	}
	lay(in, n, elem);
	lay(out, n, elem);
	for (int i = 0; i < n; i++)
		fill((symmetric ? out : in)->buf + (size_t)(symmetric ? out : in)->displs[i] * elem,
		     (size_t)in->counts[i] * elem, seed_of(round, me, i));
}

static inline void vector_check(struct parts *in, struct parts *out, int round, int elem, MPI_Comm comm)
{
	int me;

	MPI_Comm_rank(comm, &me);
	for (int i = 0; i < out->n; i++)
		verify(out->buf + (size_t)out->displs[i] * elem, (size_t)out->counts[i] * elem, seed_of(round, i, me));
	gaps(out, elem);
	free(in->buf);
	free(out->buf);
}

#endif
