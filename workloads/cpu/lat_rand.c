/* lmbench's lat_rand: a random number from the C library. */
#include "workload.h"

#include <stdlib.h>

static const uint64_t MODULUS_MASK = (1ull << 48) - 1;

static void run(uint64_t n)
{
	double sum = 0;

	for (; n; n--)
		sum += drand48();
	if (sum < 0)
		fail("a random number was below 0");
}

/* POSIX gives the recurrence X' = aX + c mod 2^48, and X = 0x1234ABCD330E after srand48(0x1234ABCD); here it
 * starts with seed 0. Squaring the step gives the state after n of them. */
static void prepare(void)
{
	srand48(0);
}

static void check(uint64_t n)
{
	uint64_t a = 0x5deece66d, c = 0xb, expected = 0x330e, state = 0;
	unsigned short none[3] = {0}, *found = seed48(none);

	for (; n; n /= 2) {
		if (n % 2)
			expected = a * expected + c;
		c = (a + 1) * c;
		a *= a;
	}
	for (int i = 0; i < 3; i++)
		state |= (uint64_t)found[i] << (16 * i);
	if (state != (expected & MODULUS_MASK))
		fail("the generator is not where that many numbers lead to");
}

WORKLOAD(lat_rand, .name = "lat-drand48", .summary = "drand48(3)", .unit = "ops/s", .units_per_op = 1,
	 .syscalls_per_op = 0, .source = "lmbench 3 lat_rand drand48", .prepare = prepare, .run = run,
	 .check = check);
