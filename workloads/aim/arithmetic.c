/* Additions, multiplications and divisions: twelve in a loop, of three values that change each other in
 * turns, so that after the loop each is what it was. Most of the twelve need the result of the one before.
 *
 * The compiler knows none of the values, and of an integer not even what it is between two operations:
 * otherwise it would make one of several. Floating point needs no such barrier: without -ffast-math it is
 * not reordered. */
#include "job.h"

#define KNOWN(value)

#define STEP(x, operator, y, barrier) x operator y; barrier(x)

/* Each value is changed twice by the next one, and then the other way round: (0, v, -v) or (1, v, 1/v). */
#define HALF_TURN(operator, barrier)                              \
	STEP(x, operator, y, barrier);                            \
	STEP(y, operator, z, barrier); STEP(y, operator, z, barrier); \
	STEP(z, operator, x, barrier); STEP(z, operator, x, barrier); \
	STEP(x, operator, y, barrier)
#define TURN(operator, barrier) HALF_TURN(operator, barrier); HALF_TURN(operator, barrier)

/* (1, v, 1/v) divided by each other. */
#define HALF_QUOTIENTS(operator, barrier)                                               \
	STEP(x, operator, y, barrier); STEP(z, operator, x, barrier);                   \
	STEP(y, operator, z, barrier); STEP(z, operator, y, barrier);                   \
	STEP(x, operator, z, barrier); STEP(z, operator, x, barrier)
#define QUOTIENTS(operator, barrier) HALF_QUOTIENTS(operator, barrier); HALF_QUOTIENTS(operator, barrier)

/* Any number and two ones, of which the product would be too large with the number in it. */
#define HALF_ONES(operator, barrier)                                  \
	STEP(x, operator, y, barrier);                                \
	STEP(y, operator, z, barrier); STEP(y, operator, z, barrier); \
	STEP(z, operator, y, barrier); STEP(z, operator, y, barrier); \
	STEP(x, operator, z, barrier)
#define ONES(operator, barrier) HALF_ONES(operator, barrier); HALF_ONES(operator, barrier)
#define THIRD_ONES(operator, barrier)                                 \
	STEP(x, operator, y, barrier); STEP(x, operator, z, barrier); \
	STEP(y, operator, z, barrier); STEP(z, operator, y, barrier)
#define THIRDS(operator, barrier) \
	THIRD_ONES(operator, barrier); THIRD_ONES(operator, barrier); THIRD_ONES(operator, barrier)

#define CHAIN(id, type, loops, first, second, third, steps, operator, barrier, things, one)             \
	static void job_##id(void)                                                                    \
	{                                                                                             \
		static volatile const type operands[] = {first, second, third};                       \
		type x = operands[0], y = operands[1], z = operands[2];                               \
		for (long i = 0; i < loops; i++) {                                                    \
			steps(operator, barrier);                                                     \
		}                                                                                     \
		if (x != (type)(first) || y != (type)(second) || z != (type)(third))                  \
			fail("the results are %.17g, %.17g and %.17g", (double)x, (double)y, (double)z); \
	}                                                                                             \
	SUB_TEST(id, job_##id(), loops * 12 / 1000.0, things, 0,                                      \
		 .summary = #loops " times 12 " one " of three values (" #type ") in turns")

#define ADD(type, loops, v, barrier) \
	CHAIN(add_##type, type, loops, 0, v, -v, TURN, +=, barrier, "kadds", "additions")
#define MUL(type, loops, first, second, third, steps, barrier) \
	CHAIN(mul_##type, type, loops, first, second, third, steps, *=, barrier, "kmuls", "multiplications")
#define DIV(type, loops, first, second, third, steps, barrier) \
	CHAIN(div_##type, type, loops, first, second, third, steps, /=, barrier, "kdivs", "divisions")

#define PI 3.14159265358979323846

ADD(double, 1500000, PI, KNOWN);
ADD(float, 1000000, 3.5f, KNOWN);
ADD(long, 5000000, 3, OPAQUE);
ADD(int, 5000000, 3, OPAQUE);
ADD(short, 2000000, 3, OPAQUE);

/* Of pi and 1/pi, as re-aim has them, the rounding grows until all are 0. */
MUL(double, 1000000, 1, 4.0, 0.25, TURN, KNOWN);
MUL(float, 1000000, 1, 4.0f, 0.25f, TURN, KNOWN);
MUL(long, 20000, 12345678, 1, 1, ONES, OPAQUE);
MUL(int, 20000, 12345678, 1, 1, ONES, OPAQUE);
MUL(short, 25000, 1234, 1, 1, ONES, OPAQUE);

DIV(double, 250000, 1, 4.0, 0.25, QUOTIENTS, KNOWN);
DIV(float, 250000, 1, 4.0f, 0.25f, QUOTIENTS, KNOWN);
DIV(long, 75000, 1234578, 1, 1, THIRDS, OPAQUE);
DIV(int, 75000, 1234578, 1, 1, THIRDS, OPAQUE);
DIV(short, 75000, 1234, 1, 1, THIRDS, OPAQUE);
