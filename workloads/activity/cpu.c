/* The CPU activity of BTU (Maly, Gupta and Mynam, 1996): complex arithmetic, and then memory that is
 * taken, filled with what was computed, and given back, which loads the MMU and the way to memory. */
#include "workload.h"

#include <complex.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { NUMBERS = 8192, STEPS = 16, CHUNKS = 4 };

static double complex numbers[NUMBERS];
static double last;

/* On the circle |z| = 1 a rotation stays there, so what comes out is known. */
static void prepare(void)
{
	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = cexp(I * i);
}

static void compute(void)
{
	const double complex turn = cexp(I * 0.1);

	for (int step = 0; step < STEPS; step++)
		for (int i = 0; i < NUMBERS; i++) {
			double complex z = numbers[i] * turn;
			/* Back onto the circle: one step of Newton's for 1/|z|. */
			double square = creal(z) * creal(z) + cimag(z) * cimag(z);
			numbers[i] = z * (1.5 - 0.5 * square);
		}
}

static void copy_away(void)
{
	double sum = 0;

	for (int chunk = 0; chunk < CHUNKS; chunk++) {
		double complex *taken = mmap(NULL, sizeof numbers, PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (taken == MAP_FAILED)
			fail("mmap: %s", strerror(errno));
		memcpy(taken, numbers, sizeof numbers);
		for (int i = 0; i < NUMBERS; i += 64)
			sum += cabs(taken[i]);
		munmap(taken, sizeof numbers);
	}
	last = sum / (CHUNKS * (NUMBERS / 64));
}

static void run(uint64_t n)
{
	while (n--) {
		compute();
		copy_away();
	}
}

static void check(uint64_t n)
{
	(void)n;
	if (!(last > 1 - 1e-9 && last < 1 + 1e-9))
		fail("the copied numbers have a mean size of %.12g, not 1", last);
}

WORKLOAD(activity_cpu, .name = "activity-cpu",
	 .summary = "131072 complex products, copied into 512 KiB of memory that is taken and given back",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 8, .source = "BTU, CPU activity (Maly 1996, 4.2)",
	 .prepare = prepare, .run = run, .check = check);
