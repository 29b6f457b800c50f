/* SPDX-License-Identifier: BSD-2-Clause */
/* Derived datatypes, and communicators made by dup, split and create. */
#include "check.h"

#include <stddef.h>

static int right, left;

/* A column out of a matrix into a row. */
static void test_vector(void)
{
	enum { N = 300 };
	static int m[N][N], row[N];
	MPI_Datatype column;
	MPI_Request r;

	MPI_Type_vector(N, 1, N, MPI_INT, &column);
	MPI_Type_commit(&column);
	for (int c = 0; c < N; c += 37) {
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++)
				m[i][j] = rank * N * N + i * N + j;
		MPI_Irecv(row, N, MPI_INT, left, c, MPI_COMM_WORLD, &r);
		MPI_Send(&m[0][c], 1, column, right, c, MPI_COMM_WORLD);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		for (int i = 0; i < N; i++)
			CHECK_EQ(row[i], left * N * N + i * N + c);
	}
	MPI_Type_free(&column);
	done("vector");
}

struct particle {
	char kind;
	double pos[3];
	short charge;
};

static void test_struct(void)
{
	enum { N = 2000 };
	static struct particle out[N], in[N];
	int lens[3] = { 1, 3, 1 };
	MPI_Aint offs[3] = { offsetof(struct particle, kind), offsetof(struct particle, pos),
			     offsetof(struct particle, charge) };
	MPI_Datatype parts[3] = { MPI_CHAR, MPI_DOUBLE, MPI_SHORT }, raw, type;
	MPI_Status st;
	int count;

	MPI_Type_create_struct(3, lens, offs, parts, &raw);
	MPI_Type_create_resized(raw, 0, sizeof(struct particle), &type);
	MPI_Type_commit(&type);
	for (int i = 0; i < N; i++) {
		out[i].kind = (char)('a' + (rank + i) % 26);
		out[i].charge = (short)(i - rank);
		for (int j = 0; j < 3; j++)
			out[i].pos[j] = rank + i * 0.5 + j;
	}
	MPI_Sendrecv(out, N, type, right, 1, in, N, type, left, 1, MPI_COMM_WORLD, &st);
	MPI_Get_count(&st, type, &count);
	CHECK_EQ(count, N);
	for (int i = 0; i < N; i++) {
		CHECK_EQ(in[i].kind, 'a' + (left + i) % 26);
		CHECK_EQ(in[i].charge, (short)(i - left));
		for (int j = 0; j < 3; j++)
			CHECK(in[i].pos[j] == left + i * 0.5 + j);
	}
	MPI_Type_free(&raw);
	MPI_Type_free(&type);
	done("struct");
}

/* A block out of a cube, and bytes here and there by an index. */
static void test_subarray_indexed(void)
{
	enum { N = 40, B = 10 };
	static int cube[N][N][N], block[B][B][B];
	int full[3] = { N, N, N }, sub[3] = { B, B, B }, at[3] = { 5, 6, 7 };
	int lens[100], displs[100], sum = 0;
	static char scattered[10000], packed[10000];
	MPI_Datatype type;

	for (int i = 0; i < N * N * N; i++)
		(&cube[0][0][0])[i] = rank * 1000000 + i;
	MPI_Type_create_subarray(3, full, sub, at, MPI_ORDER_C, MPI_INT, &type);
	MPI_Type_commit(&type);
	MPI_Sendrecv(cube, 1, type, right, 2, block, B * B * B, MPI_INT, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < B; i++)
		for (int j = 0; j < B; j++)
			for (int k = 0; k < B; k++)
				CHECK_EQ(block[i][j][k], left * 1000000 + ((5 + i) * N + 6 + j) * N + 7 + k);
	MPI_Type_free(&type);
	for (int i = 0; i < 100; i++) {
		lens[i] = 1 + i % 50;
		displs[i] = i * 100;
		sum += lens[i];
	}
	MPI_Type_indexed(100, lens, displs, MPI_BYTE, &type);
	MPI_Type_commit(&type);
	fill(packed, (size_t)sum, (uint64_t)rank);
	memset(scattered, 0x5a, sizeof(scattered));
	char *copy = malloc((size_t)sum);
	CHECK(copy != NULL);
	MPI_Sendrecv(packed, sum, MPI_BYTE, right, 3, scattered, 1, type, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0, n = 0; i < 100; n += lens[i++]) {
		memcpy(copy + n, scattered + displs[i], (size_t)lens[i]);
		CHECK_EQ(scattered[displs[i] + lens[i]], 0x5a); /* the gap is untouched */
	}
	verify(copy, (size_t)sum, (uint64_t)left);
	free(copy);
	MPI_Type_free(&type);
	done("subarray_indexed");
}

/* Messages in one communicator are not seen in another, even with the same tags. */
static void test_dup(void)
{
	MPI_Comm dup[20];
	MPI_Request r[20];
	int in[20], out[20];

	for (int i = 0; i < 20; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &dup[i]);
	for (int i = 0; i < 20; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, dup[i], &r[i]);
	for (int i = 19; i >= 0; i--) {
		out[i] = rank * 100 + i;
		MPI_Send(&out[i], 1, MPI_INT, right, 1, dup[i]);
	}
	MPI_Waitall(20, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(in[i], left * 100 + i);
		MPI_Comm_free(&dup[i]);
	}
	done("dup");
}

static void test_split(void)
{
	for (int round = 0; round < 20; round++) {
		MPI_Comm part;
		int prank, psize, sum = 0, want = 0, key = round % 2 ? -rank : rank;

		MPI_Comm_split(MPI_COMM_WORLD, rank % 2, key, &part);
		MPI_Comm_rank(part, &prank);
		MPI_Comm_size(part, &psize);
		for (int r = rank % 2; r < size; r += 2)
			want += r;
		MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, part);
		CHECK_EQ(sum, want);
		if (psize > 1) {
			int got;

			MPI_Sendrecv(&rank, 1, MPI_INT, (prank + 1) % psize, 1, &got, 1, MPI_INT,
				     (prank + psize - 1) % psize, 1, part, MPI_STATUS_IGNORE);
			CHECK_EQ(got % 2, rank % 2);
		}
		MPI_Comm_free(&part);
	}
	done("split");
}

static void test_create_and_inter(void)
{
	int ranks[1] = { 0 }, leader, got = -1;
	MPI_Group world, first;
	MPI_Comm only, half, inter;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, ranks, &first);
	MPI_Comm_create(MPI_COMM_WORLD, first, &only);
	CHECK((only == MPI_COMM_NULL) == (rank != 0));
	if (only != MPI_COMM_NULL)
		MPI_Comm_free(&only);
	MPI_Group_free(&first);
	MPI_Group_free(&world);
	MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
	leader = rank < size / 2 ? size / 2 : 0;
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, leader, 9, &inter);
	MPI_Sendrecv(&rank, 1, MPI_INT, rank % (size / 2), 1, &got, 1, MPI_INT, MPI_ANY_SOURCE, 1, inter,
		     MPI_STATUS_IGNORE);
	CHECK_EQ(got < size / 2, rank >= size / 2);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
	done("create_and_inter");
}

int main(int argc, char **argv)
{
	start(&argc, &argv);
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	test_vector();
	test_struct();
	test_subarray_indexed();
	test_dup();
	test_split();
	test_create_and_inter();
	return conclude("types");
}
