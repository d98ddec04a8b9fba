/* UnixBench's arithmetic tests: the sum of i*i / (i*i - 1) for i from 2 to 101, in one type; and the loop
 * without the arithmetic. Nearly all of it is a hundred divisions.
 *
 * Each i is kept from the optimiser, which otherwise computes several terms at once, or none. */
#include "workload.h"

#include <math.h>

enum { FIRST = 2, LAST = 101 };

static double result, expected;

/* In integers every quotient is 1. Otherwise each term is 1 + 1/(i*i - 1), and
 * 1/(i*i - 1) = (1/(i - 1) - 1/(i + 1)) / 2, of which all but four cancel out. */
static void expect_count(void)
{
	expected = LAST - FIRST + 1;
}

static void expect_sum(void)
{
	expected = LAST - FIRST + 1 + (1 + 1.0 / 2 - 1.0 / LAST - 1.0 / (LAST + 1)) / 2;
}

static void check(uint64_t n)
{
	(void)n;
	/* A float has 24 bits, and a hundred sums are rounded. */
	if (fabs(result / expected - 1) > 1e-5)
		fail("the sum is %.9g, not %.9g", result, expected);
}

#define ARITHMETIC(id, type, words, prepare_it, origin)                                                   \
	SEPARATE static double evaluate_##id(void)                                                        \
	{                                                                                                 \
		type sum = 0;                                                                             \
		for (int i = FIRST; i <= LAST; i++) {                                                     \
			OPAQUE(i);                                                                        \
			type x = i;                                                                       \
			type square = x * x;                                                              \
			sum += square / (square - 1);                                                     \
		}                                                                                         \
		return sum;                                                                               \
	}                                                                                                 \
	static void run_##id(uint64_t n)                                                                  \
	{                                                                                                 \
		for (; n; n--)                                                                            \
			result = evaluate_##id();                                                         \
	}                                                                                                 \
	WORKLOAD(id, .name = "arith-" #id, .summary = "the sum of i*i / (i*i - 1), i from 2 to 101, in " words, \
		 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 0,                                  \
		 .source = origin " (Arithmetic Test)", .prepare = prepare_it, .run = run_##id,           \
		 .check = check)

ARITHMETIC(short, short, "short", expect_count, "UnixBench 6.0 short");
ARITHMETIC(int, int, "int", expect_count, "UnixBench 6.0 int");
ARITHMETIC(long, long, "long", expect_count, "UnixBench 6.0 long");
ARITHMETIC(float, float, "float", expect_sum, "UnixBench 6.0 float");
ARITHMETIC(double, double, "double", expect_sum, "UnixBench 6.0 double");
/* As `int`: an optimising compiler places variables as it likes. */
ARITHMETIC(register, register int, "register int", expect_count, "UnixBench 3.11 register");

SEPARATE static int loop(void)
{
	int i = FIRST;

	for (; i <= LAST; i++)
		OPAQUE(i);
	return i;
}

static void prepare_loop(void)
{
	expected = LAST + 1;
}

static void run_loop(uint64_t n)
{
	int end = 0;

	for (; n; n--)
		end = loop();
	result = end;
}

WORKLOAD(arithoh, .name = "arithoh", .summary = "a call of a function with an empty loop from 2 to 101",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 0,
	 .source = "UnixBench 6.0 arithoh (Arithmetic overhead)", .prepare = prepare_loop, .run = run_loop,
	 .check = check);
