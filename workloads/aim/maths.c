/* Linear systems, transformations of points, zeros of a function, and the maths library. */
#include "job.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_UNKNOWNS = 100, POINTS = 100, ZEROS = 200, ROUNDS = 100, ANGLES = 10000 };

static double matrix[MOST_UNKNOWNS][MOST_UNKNOWNS + 1];

/* Random coefficients, and right sides for which the unknowns are 1, 2, 3, … */
static void make_system(int n)
{
	uint32_t state = n;

	for (int row = 0; row < n; row++) {
		matrix[row][n] = 0;
		for (int column = 0; column < n; column++) {
			matrix[row][column] = next_number(&state) % 2001 - 1000.0;
			matrix[row][n] += matrix[row][column] * (column + 1);
		}
	}
}

static void exchange_rows(int a, int b, int columns)
{
	for (int i = 0; i < columns; i++) {
		double kept = matrix[a][i];
		matrix[a][i] = matrix[b][i];
		matrix[b][i] = kept;
	}
}

/* Takes so many times the row from another, in all columns: as re-aim does, also where there is 0 by then. */
static void take_row(int from, int row, double times, int columns)
{
	for (int i = 0; i < columns; i++)
		matrix[from][i] -= times * matrix[row][i];
}

/* By Gauss and Jordan, with the largest coefficient of a column as its pivot: first what is below the
 * diagonal becomes 0, then what is above. */
static void solve_system(int n, double *unknowns)
{
	for (int pivot = 0; pivot < n; pivot++) {
		int largest = pivot;
		for (int row = pivot + 1; row < n; row++)
			if (fabs(matrix[row][pivot]) > fabs(matrix[largest][pivot]))
				largest = row;
		exchange_rows(pivot, largest, n + 1);
		double scale = matrix[pivot][pivot];
		for (int column = pivot; column <= n; column++)
			matrix[pivot][column] /= scale;
		for (int row = pivot + 1; row < n; row++)
			take_row(row, pivot, matrix[row][pivot], n + 1);
	}
	for (int pivot = n - 1; pivot > 0; pivot--)
		for (int row = pivot - 1; row >= 0; row--)
			take_row(row, pivot, matrix[row][pivot], n + 1);
	for (int row = 0; row < n; row++)
		unknowns[row] = matrix[row][n];
}

static void job_array_rtns(void)
{
	double unknowns[MOST_UNKNOWNS];

	for (int i = 0; i < 20; i++) {
		int n = 5 * (i + 1);

		make_system(n);
		solve_system(n, unknowns);
		for (int k = 0; k < n; k++)
			if (!(fabs(unknowns[k] - (k + 1)) < 1e-6))
				fail("unknown %d of %d is %.9g", k + 1, n, unknowns[k]);
	}
}

/* Each point is moved, turned about an axis, and scaled: by a matrix for homogeneous coordinates, of which
 * the last comes out as the scale. */
static void job_matrix_rtns(void)
{
	static volatile const double transformation[4][4] = {
		{0, -1, 0, 10}, {1, 0, 0, 20}, {0, 0, 1, 30}, {0, 0, 0, 0.5}};

	for (int i = 0; i < POINTS; i++) {
		double from[4] = {i, i + 1, i + 2, 1}, to[4] = {0};

		OPAQUE_MEMORY();
		for (int row = 0; row < 4; row++)
			for (int column = 0; column < 4; column++)
				to[row] += transformation[row][column] * from[column];
		for (int row = 0; row < 3; row++)
			to[row] /= to[3];
		if (to[0] != 2.0 * (9 - i) || to[1] != 2.0 * (i + 20) || to[2] != 2.0 * (i + 32))
			fail("point %d becomes (%g, %g, %g)", i, to[0], to[1], to[2]);
	}
}

/* 1000 sin x cos x is zero at every multiple of pi/2. */
static void job_new_raph(void)
{
	for (int i = 0; i < ZEROS; i++) {
		double zero = (i - ZEROS / 2) * M_PI_2, x = zero + 0.5, step = 1;
		int steps = 0;

		for (; fabs(step) > 1e-12 && steps < 100; steps++) {
			double sine = sin(x), cosine = cos(x);
			step = 1000 * sine * cosine / (1000 * (cosine * cosine - sine * sine));
			x -= step;
		}
		if (!(fabs(x - zero) < 1e-9))
			fail("after %d steps the zero %.12g is found at %.12g", steps, zero, x);
	}
}

static void job_num_rtns_1(void)
{
	for (int i = 1; i <= ROUNDS; i++) {
		OPAQUE(i);
		double x = i + 0.25, whole, part = modf(x, &whole), error;
		int exponent;
		double mantissa = frexp(x, &exponent);

		srand(i);
		error = fabs(exp(log(x)) - x) + fabs(pow(10, log10(x)) - x) + fabs(sqrt(x) * sqrt(x) - x);
		if (!(error < 1e-9) || floor(x) != i || ceil(x) != i + 1 || whole != i || fmod(x, 1) != part ||
		    ldexp(mantissa, exponent) != x || rand() < 0 || abs(-i) != labs(-(long)i))
			fail("the functions of %g contradict each other: %g", x, error);
	}
}

/* The Taylor series of the sine, until a term changes nothing: of 1, and of smaller and smaller numbers, of
 * whose powers most are too small for any number, as re-aim's are. */
static void job_series_1(void)
{
	for (int i = 1; i <= ROUNDS; i++) {
		OPAQUE(i);
		double x = ldexp(1, -5 * (i - 1)), term = x, sum = x, before = 0;

		for (int k = 2; sum != before; k += 2) {
			term *= -x * x / (k * (k + 1));
			before = sum;
			sum += term;
		}
		if (!(fabs(sum - sin(x)) < 1e-12 * x))
			fail("the sine of %g is not %.15g", x, sum);
	}
}

static void job_trig_rtns(void)
{
	for (int i = 1; i <= ANGLES; i++) {
		OPAQUE(i);
		double x = i * (0.75 / ANGLES);
		double a = acos(cos(asin(sin(x)))), b = tanh(atan(tan(x))), c = atan2(sinh(x), cosh(x));

		/* sinh/cosh is tanh. */
		if (!(fabs(a - x) < 1e-7 && fabs(b - tan(c)) < 1e-12))
			fail("the functions of %g contradict each other: %g, %g, %g", x, a, b, c);
	}
}

SUB_TEST(array_rtns, job_array_rtns(), 20, "systems", 0,
	 .summary = "20 linear systems of 5 to 100 unknowns, solved by Gauss and Jordan");
SUB_TEST(matrix_rtns, job_matrix_rtns(), POINTS, "points", 0,
	 .summary = "100 points moved, turned and scaled by a matrix of 4 by 4");
SUB_TEST(new_raph, job_new_raph(), ZEROS, "zeros", 0,
	 .summary = "200 zeros of 1000 sin x cos x, found by Newton and Raphson");
SUB_TEST(num_rtns_1, job_num_rtns_1(), ROUNDS, "rounds", 0, .summary = "100 rounds of floor exp ceil log10 modf log frexp ldexp fabs fmod sqrt pow srand rand abs labs");
SUB_TEST(series_1, job_series_1(), ROUNDS, "series", 0, .summary = "100 sines of 1 and less as Taylor series, summed until a term changes nothing");
SUB_TEST(trig_rtns, job_trig_rtns(), ANGLES, "rounds", 0, .summary = "10000 rounds of sin asin cos acos, tan atan tanh, sinh cosh atan2");
