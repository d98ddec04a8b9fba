/* Additions, multiplications and divisions in chains of twelve, each on the result of the one before.
 *
 * Two operands take turns that undo each other, so the value stays what it was. The compiler knows neither
 * operand, and of an integer not even the value between two operations: otherwise it would add them all up
 * beforehand. Floating point needs no such barrier: without -ffast-math it is not reordered. */
#include "job.h"

#define KNOWN(value)
#define TIMES_6(step) step step step step step step

#define CHAIN(id, type, loops, begin, first, second, operator, barrier, things, one, drift)             \
	static void job_##id(void)                                                                    \
	{                                                                                             \
		static volatile const type operands[] = {first, second};                              \
		const type a = operands[0], b = operands[1];                                          \
		type x = begin;                                                                       \
		for (long i = 0; i < loops; i++) {                                                    \
			TIMES_6(x operator a; barrier(x); x operator b; barrier(x);)                  \
		}                                                                                     \
		if (!(x >= (type)(begin - drift) && x <= (type)(begin + drift)))                      \
			fail("the result is %.17g, not %.17g", (double)x, (double)(begin));           \
	}                                                                                             \
	SUB_TEST(id, job_##id(), loops * 12 / 1000.0, things, 0,                                      \
		 .summary = #loops " times 12 " one " of a " #type ", each on the result of the one before")

#define ADD(type, loops, begin, x, barrier) \
	CHAIN(add_##type, type, loops, begin, x, -x, +=, barrier, "kadds", "additions", 0)
#define MUL(type, loops, begin, x, y, barrier, drift) \
	CHAIN(mul_##type, type, loops, begin, x, y, *=, barrier, "kmuls", "multiplications", drift)
#define DIV(type, loops, begin, x, y, barrier) \
	CHAIN(div_##type, type, loops, begin, x, y, /=, barrier, "kdivs", "divisions", 0)

#define PI 3.14159265358979323846

ADD(double, 1500000, 0, PI, KNOWN);
ADD(float, 1000000, 0, 3.5f, KNOWN);
ADD(long, 5000000, 12345, 3, OPAQUE);
ADD(int, 5000000, 12345, 3, OPAQUE);
ADD(short, 2000000, 12345, 3, OPAQUE);

/* The product of pi and 1/pi is rounded, and may drift; it does not vanish, as re-aim's does. */
MUL(double, 1000000, 1.5, PI, 1 / PI, KNOWN, 1e-6);
MUL(float, 1000000, 1.5, 4.0f, 0.25f, KNOWN, 0);
MUL(long, 20000, 12345, 1, 1, OPAQUE, 0);
MUL(int, 20000, 12345, 1, 1, OPAQUE, 0);
MUL(short, 25000, 12345, 1, 1, OPAQUE, 0);

DIV(double, 250000, 1.5, 4.0, 0.25, KNOWN);
DIV(float, 250000, 1.5, 4.0f, 0.25f, KNOWN);
DIV(long, 75000, 12345, 1, 1, OPAQUE);
DIV(int, 75000, 12345, 1, 1, OPAQUE);
DIV(short, 75000, 12345, 1, 1, OPAQUE);
