/* lmbench's lat_ops: arithmetic in chains, each operation on the result of the one before. One operation is
 * one addition, one division and so on.
 *
 * Divisions and remainders are of full-sized operands and give back what they were given, as some processors
 * take longer for some operands. The compiler may not know the operands; between two operations on integers
 * it may know nothing. Floating point needs no such barrier: without -ffast-math it is not reordered. */
#include "workload.h"

#define TIMES_8(step) step step step step step step step step

#define CHAIN(id, label, type, what, begin, with, step, end)                                                 \
	static type value_##id = begin;                                                                       \
	static void run_##id(uint64_t n)                                                                      \
	{                                                                                                     \
		static volatile type operand = with;                                                          \
		type x = value_##id, y = operand;                                                             \
		for (; n >= 8; n -= 8) {                                                                      \
			TIMES_8(step)                                                                         \
		}                                                                                             \
		for (; n; n--) {                                                                              \
			step                                                                                  \
		}                                                                                             \
		value_##id = x;                                                                               \
	}                                                                                                     \
	static void check_##id(uint64_t n)                                                                    \
	{                                                                                                     \
		type x = begin, y = with;                                                                     \
		(void)n, (void)x, (void)y;                                                                    \
		type expected = end;                                                                          \
		type error = value_##id > expected ? value_##id - expected : expected - value_##id;           \
		if (error > (type)1e-5 * expected)                                                            \
			fail("the result is %.17g, not %.17g", (double)value_##id, (double)expected);         \
	}                                                                                                     \
	WORKLOAD(lat_ops_##id, .name = "lat-ops-" label, .summary = "one " what " on the result of the one before", \
		 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 0, .source = "lmbench 3 lat_ops",       \
		 .run = run_##id, .check = check_##id)

static uint64_t power(uint64_t base, uint64_t exponent)
{
	uint64_t result = 1;

	for (; exponent; exponent /= 2, base *= base)
		if (exponent % 2)
			result *= base;
	return result;
}

/* The root is half as long as the type. x = y / x and x = y % x | (x - 1) both give x again. */
#define INTEGER(type, root)                                                                              \
	CHAIN(type##_bit, #type "-bit", type##_t, "exclusive or", 0, 0x5a5a, x ^= y; OPAQUE(x);, n % 2 ? y : 0); \
	CHAIN(type##_add, #type "-add", type##_t, "addition", 0, 0x5a5a, x += y; OPAQUE(x);, n * y);      \
	CHAIN(type##_mul, #type "-mul", type##_t, "multiplication", 1, 0x5a5b, x *= y; OPAQUE(x);, power(y, n)); \
	CHAIN(type##_div, #type "-div", type##_t, "division", root, (type##_t)root * root,               \
	      x = y / x; OPAQUE(x);, root);                                                              \
	CHAIN(type##_mod, #type "-mod", type##_t, "remainder, and one or", root,                  \
	      (type##_t)root * (root - 2) + 1, x = y % x | (root - 1); OPAQUE(x);, root)

INTEGER(uint32, 65521);
INTEGER(uint64, 4294967291);

/* Subtracting from a sum and dividing a product give one part and the other in turn. */
#define FLOATING(type)                                                                                   \
	CHAIN(type##_add, #type "-add", type, "subtraction", 1, 3, x = y - x;, n % 2 ? y - x : x);       \
	CHAIN(type##_mul, #type "-mul", type, "multiplication", 1.5, 1, x = y * x;, x);                  \
	CHAIN(type##_div, #type "-div", type, "division", 1.1, 3.7, x = y / x;, n % 2 ? y / x : x);      \
	BOGO(type)

/* Not a chain but as many as the processor can do at a time: lmbench's bogomflops. */
#define BOGO(type)                                                                                       \
	static type from_##type[512], to_##type[512];                                                    \
	static unsigned int at_##type;                                                                   \
	static void prepare_##type(void)                                                                 \
	{                                                                                                \
		for (int i = 0; i < 512; i++)                                                            \
			from_##type[i] = i + 1;                                                          \
	}                                                                                                \
	static void run_##type(uint64_t n)                                                               \
	{                                                                                                \
		for (; n; n--) {                                                                         \
			unsigned int i = at_##type++ % 512;                                              \
			type x = from_##type[i];                                                         \
			to_##type[i] = (1 + x) * ((type)1.5 - x) / x;                                    \
		}                                                                                        \
	}                                                                                                \
	static void check_##type(uint64_t n)                                                             \
	{                                                                                                \
		for (uint64_t i = 0; i < 512 && i < n; i++) {                                            \
			type x = i + 1, expected = (1 + x) * ((type)1.5 - x) / x;                        \
			if (to_##type[i] != expected)                                                    \
				fail("element %d is %g", (int)i, (double)to_##type[i]);                  \
		}                                                                                        \
	}                                                                                                \
	WORKLOAD(lat_ops_##type##_bogo, .name = "lat-ops-" #type "-bogo",                                \
		 .summary = "(1 + x)(1.5 - x) / x of one element of an array", .unit = "ops/s",            \
		 .units_per_op = 1, .syscalls_per_op = 0, .source = "lmbench 3 lat_ops bogomflops",      \
		 .prepare = prepare_##type, .run = run_##type, .check = check_##type)

FLOATING(float);
FLOATING(double);
