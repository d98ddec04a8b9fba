/* When jobs begin that wait for nobody: a Poisson process, in which the gaps are exponential. */
#include "driver.h"

#include <errno.h>
#include <time.h>

/* splitmix64 (Steele, Lea and Flood, 2014): the same order from the same seed on every machine. */
uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* 0 to just below 1 */
static double part(uint64_t *state)
{
	return (draw(state) >> 11) * 0x1p-53;
}

/* Exponential with the mean 1, without a logarithm (J. von Neumann, 1951): the small image has no libm. */
static double exponential(uint64_t *state)
{
	for (double whole = 0;; whole++) {
		double first = part(state), last = first;
		int falling = 1;
		for (double next; (next = part(state)) < last; last = next)
			falling++;
		if (falling % 2)
			return whole + first;
	}
}

/* The moment is the state: the next one follows from the last one and the seed alone, so that one compare and
 * swap hands it to one process, whichever is free first. */
uint64_t take_due_ns(_Atomic uint64_t *last_due_ns, uint64_t per_1000s, uint64_t seed)
{
	uint64_t last_ns = atomic_load(last_due_ns), due_ns;

	do {
		uint64_t mixed = seed ^ last_ns, state = draw(&mixed);
		/* One more, as a gap of 0 would be followed by the same for ever. */
		due_ns = last_ns + 1 + (uint64_t)(exponential(&state) * 1e12 / per_1000s);
	} while (!atomic_compare_exchange_weak(last_due_ns, &last_ns, due_ns));
	return due_ns;
}

static uint64_t waited_ns; /* since it was asked last */

uint64_t wait_until(uint64_t moment_ns)
{
	struct timespec moment = {.tv_sec = moment_ns / 1000000000, .tv_nsec = moment_ns % 1000000000};
	uint64_t from = now_ns();

	if (from >= moment_ns)
		return 0;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL) == EINTR)
		;
	waited_ns += moment_ns - from;
	return now_ns() - from;
}

uint64_t time_waited(void)
{
	uint64_t waited = waited_ns;

	waited_ns = 0;
	return waited;
}
