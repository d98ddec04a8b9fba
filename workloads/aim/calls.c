/* Calls of a function through a pointer, with 0, 1, 2 or 15 arguments, of which each adds what
 * it is given. */
#include "job.h"

enum { CALLS = 512000 };

static uint64_t sum;

SEPARATE static void add_one(void)
{
	sum++;
}

SEPARATE static void add_1(int a)
{
	sum += a;
}

SEPARATE static void add_2(int a, int b)
{
	sum += a + b;
}

SEPARATE static void add_15(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j,
			    int k, int l, int m, int n, int o)
{
	sum += a + b + c + d + e + f + g + h + i + j + k + l + m + n + o;
}

/* Read anew for every call, so that it stays an indirect one. */
static void (*volatile call_0)(void) = add_one;
static void (*volatile call_1)(int) = add_1;
static void (*volatile call_2)(int, int) = add_2;
static void (*volatile call_15)(int, int, int, int, int, int, int, int, int, int, int, int, int, int,
				int) = add_15;

#define FUN_CAL(id, call, each, arguments)                                                              \
	static void job_##id(void)                                                                      \
	{                                                                                               \
		sum = 0;                                                                                \
		for (int i = 0; i < CALLS; i++)                                                         \
			call;                                                                           \
		if (sum != (uint64_t)CALLS * each)                                                      \
			fail("the arguments add up to %llu", (unsigned long long)sum);                  \
	}                                                                                               \
	SUB_TEST(id, job_##id(), CALLS, "calls", 0,                                                     \
		 .summary = "512000 calls through a pointer, " arguments)

FUN_CAL(fun_cal, call_0(), 1, "without arguments");
FUN_CAL(fun_cal1, call_1(2), 2, "with 1 argument");
FUN_CAL(fun_cal2, call_2(1, 2), 3, "with 2 arguments");
FUN_CAL(fun_cal15, call_15(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), 120, "with 15 arguments");
