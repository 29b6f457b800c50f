/* SPDX-License-Identifier: BSD-2-Clause */
/* Transforms of two dimensions: of the rows of each rank, of the columns after a transposition, and a transposition
 * back. Transpositions are MPI_Alltoall, as in HPC Challenge's MPIFFT. The input is a sum of plane waves, so the output
 * has one peak for each, and the transform back has n^2 times the input: every number is checked.
 * Arguments: n, a power of two, the number of transforms. */
#include "check.h"
#include "waves.h"

#include <complex.h>
#include <math.h>

static int n, rows; /* all of them, this rank's */
static double complex *data, *other, *roots;

/* Transforms a row in place, by halves: sign is that of the exponent. */
static void transform(double complex *row, int sign)
{
	for (int i = 1, j = 0; i < n; i++) {
		int bit = n >> 1;

		for (; j & bit; bit >>= 1)
			j ^= bit;
		j ^= bit;
		if (i < j) {
			double complex t = row[i];

			row[i] = row[j];
			row[j] = t;
		}
	}
	for (int half = 1; half < n; half *= 2)
		for (int i = 0; i < n; i += 2 * half)
			for (int k = 0; k < half; k++) {
				double complex root = roots[k * (n / 2 / half)];
				double complex a = row[i + k], b = row[i + k + half] * (sign > 0 ? root : conj(root));

				row[i + k] = a + b;
				row[i + k + half] = a - b;
			}
}

/* Blocks of rows x rows, one for each rank, change places, and each is transposed. Returns the time between ranks. */
static double transpose(void)
{
	double t;

	for (int r = 0; r < size; r++)
		for (int i = 0; i < rows; i++)
			memcpy(other + ((size_t)r * rows + i) * rows, data + (size_t)i * n + (size_t)r * rows,
			       rows * sizeof(*data));
	t = -MPI_Wtime();
	CHECK_EQ(MPI_Alltoall(other, rows * rows, MPI_C_DOUBLE_COMPLEX, data, rows * rows, MPI_C_DOUBLE_COMPLEX,
			      MPI_COMM_WORLD),
		 MPI_SUCCESS);
	t += MPI_Wtime();
	memcpy(other, data, (size_t)rows * n * sizeof(*data));
	for (int r = 0; r < size; r++)
		for (int i = 0; i < rows; i++)
			for (int k = 0; k < rows; k++)
				data[(size_t)k * n + (size_t)r * rows + i] = other[((size_t)r * rows + i) * rows + k];
	return t;
}

/* Transforms both dimensions, and returns the last rank's times in ms: all of it, and in MPI_Alltoall. */
static void both(int sign, double took[2])
{
	MPI_Barrier(MPI_COMM_WORLD);
	took[0] = -MPI_Wtime();
	took[1] = 0;
	for (int dimension = 0; dimension < 2; dimension++) {
		for (int i = 0; i < rows; i++)
			transform(data + (size_t)i * n, sign);
		took[1] += transpose();
	}
	took[0] += MPI_Wtime();
	MPI_Allreduce(MPI_IN_PLACE, took, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	took[0] *= 1e3;
	took[1] *= 1e3;
}

/* Sets the data to the sum of the waves, or compares it with n^2 times that. */
static void waves(int round, int compare)
{
	for (int i = 0; i < rows; i++)
		for (int k = 0; k < n; k++) {
			double complex sum = 0, *at = data + (size_t)i * n + k;

			for (int w = 0; w < WAVES; w++) {
				long p = (long)wave_number(n, round, w, 0) * (rank * rows + i) +
					 (long)wave_number(n, round, w, 1) * k;

				sum += height(round, w) * cexp(2 * M_PI * I * (double)(p % n) / n);
			}
			if (compare)
				CHECK(cabs(*at / n / n - sum) < 1e-9);
			else
				*at = sum;
		}
}

static void peaks(int round)
{
	for (int i = 0; i < rows; i++)
		for (int k = 0; k < n; k++) {
			double want = 0;

			for (int w = 0; w < WAVES; w++)
				if (rank * rows + i == wave_number(n, round, w, 0) && k == wave_number(n, round, w, 1))
					want += height(round, w);
			CHECK(cabs(data[(size_t)i * n + k] / n / n - want) < 1e-9);
		}
}

int main(int argc, char **argv)
{
	start(&argc, &argv);
	CHECK(argc == 3);
	n = atoi(argv[1]);
	int rounds = atoi(argv[2]);
	CHECK(n > 1 && n <= 1 << 14 && (n & (n - 1)) == 0 && n % size == 0 && rounds > 0 && rounds < 1000);
	rows = n / size;
	data = malloc((size_t)rows * n * sizeof(*data));
	other = malloc((size_t)rows * n * sizeof(*data));
	roots = malloc((size_t)n / 2 * sizeof(*roots));
	double *all = calloc(rounds, sizeof(*all)), *between = calloc(rounds, sizeof(*between)), took[2];
	CHECK(data && other && roots && all && between);
	for (int k = 0; k < n / 2; k++)
		roots[k] = cexp(2 * M_PI * I * k / n);
	for (int i = 0; i < rounds; i++) {
		waves(i, 0);
		both(-1, took);
		all[i] = took[0];
		between[i] = took[1];
		peaks(i);
		both(1, took);
		waves(i, 1);
	}
	if (rank == 0)
		printf("%d^2: %.1f ms, of which all-to-alls %.1f ms, slices of %zu bytes\n", n, median(all, rounds),
		       median(between, rounds), (size_t)rows * rows * sizeof(*data));
	free(data);
	free(other);
	free(roots);
	free(all);
	free(between);
	return conclude("fft");
}
