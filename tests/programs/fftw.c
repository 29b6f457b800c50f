/* SPDX-License-Identifier: BSD-2-Clause */
/* Transforms of three dimensions by FFTW's MPI library. Its planner measures ways to transpose, of which some are
 * MPI_Alltoall and others MPI_Sendrecv; without measurement it takes the latter. The input is a sum of plane waves, so
 * the output has one peak for each, and the transform back has n^3 times the input: every number is checked.
 * Arguments: n, the number of transforms, how many seconds the planner may take (20). */
#include "check.h"
#include "waves.h"

#include <complex.h>
#include <fftw3-mpi.h>
#include <math.h>

static ptrdiff_t n, planes, first; /* of the first dimension, this rank's */
static fftw_complex *in, *out;

static ptrdiff_t at(ptrdiff_t i, ptrdiff_t j, ptrdiff_t k)
{
	return (i * n + j) * n + k;
}

/* e^(2 pi i p / n) */
static double complex turn(ptrdiff_t p)
{
	return cexp(2 * M_PI * I * (double)(p % n) / (double)n);
}

/* Sets to, or compares the input with, the sum of the waves. */
static void waves(int round, int compare)
{
	const double volume = (double)n * n * n;

	for (ptrdiff_t i = 0; i < planes; i++)
		for (ptrdiff_t j = 0; j < n; j++)
			for (ptrdiff_t k = 0; k < n; k++) {
				double complex sum = 0;

				for (int w = 0; w < WAVES; w++)
					sum += height(round, w) *
					       turn(wave_number(n, round, w, 0) * (first + i) +
						    wave_number(n, round, w, 1) * j + wave_number(n, round, w, 2) * k);
				if (compare)
					CHECK(cabs(in[at(i, j, k)] / volume - sum) < 1e-9);
				else
					in[at(i, j, k)] = sum;
			}
}

static void peaks(int round)
{
	const double volume = (double)n * n * n;

	for (ptrdiff_t i = 0; i < planes; i++)
		for (ptrdiff_t j = 0; j < n; j++)
			for (ptrdiff_t k = 0; k < n; k++) {
				double want = 0;

				for (int w = 0; w < WAVES; w++)
					if (first + i == wave_number(n, round, w, 0) &&
					    j == wave_number(n, round, w, 1) && k == wave_number(n, round, w, 2))
						want += height(round, w);
				CHECK(cabs(out[at(i, j, k)] / volume - want) < 1e-9);
			}
}

/* How many of a plan's transpositions are by MPI_Alltoall. */
static int alltoalls(fftw_plan plan)
{
	char *text = fftw_sprint_plan(plan);
	int count = 0;

	CHECK(text);
	for (const char *at = text; (at = strstr(at, "alltoall")); at++)
		count++;
	free(text);
	return count;
}

/* Runs a plan, and returns the last rank's time in ms. */
static double took(fftw_plan plan)
{
	double t;

	MPI_Barrier(MPI_COMM_WORLD);
	t = -MPI_Wtime();
	fftw_execute(plan);
	t += MPI_Wtime();
	MPI_Allreduce(MPI_IN_PLACE, &t, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return t * 1e3;
}

int main(int argc, char **argv)
{
	const unsigned flags = FFTW_MEASURE | FFTW_DESTROY_INPUT;
	ptrdiff_t local;
	fftw_plan forth, back;

	start(&argc, &argv);
	fftw_mpi_init();
	CHECK(argc == 3 || argc == 4);
	fftw_set_timelimit(argc == 4 ? atof(argv[3]) : 20);
	n = atoi(argv[1]);
	int rounds = atoi(argv[2]);
	CHECK(n >= size && n <= 1024 && rounds > 0 && rounds < 1000);
	double *times = calloc(rounds, sizeof(*times));
	local = fftw_mpi_local_size_3d(n, n, n, MPI_COMM_WORLD, &planes, &first);
	in = fftw_alloc_complex(local);
	out = fftw_alloc_complex(local);
	CHECK(times && in && out);
	forth = fftw_mpi_plan_dft_3d(n, n, n, in, out, MPI_COMM_WORLD, FFTW_FORWARD, flags);
	back = fftw_mpi_plan_dft_3d(n, n, n, out, in, MPI_COMM_WORLD, FFTW_BACKWARD, flags);
	CHECK(forth && back);
	for (int i = 0; i < rounds; i++) {
		waves(i, 0);
		times[i] = took(forth);
		peaks(i);
		memset(in, 0, local * sizeof(*in));
		took(back);
		waves(i, 1);
	}
	if (rank == 0)
		printf("%td^3: %.1f ms, slices of %td bytes, all-to-alls in the plan: %d\n", n, median(times, rounds),
		       n * n * n * (ptrdiff_t)sizeof(*in) / size / size, alltoalls(forth));
	fftw_destroy_plan(forth);
	fftw_destroy_plan(back);
	fftw_free(in);
	fftw_free(out);
	free(times);
	fftw_mpi_cleanup();
	return conclude("fftw");
}
