/* Two processes in turns, for all ways of passing a number. As in ipc/context1.c, each side compares the
 * number with its own count. */
#include "pingpong.h"

#include <errno.h>
#include <string.h>

/* A number that no count reaches. */
static const uint64_t END = 1ull << 63;

static const struct way *way;
static uint64_t count;

static uint64_t serve(void)
{
	for (uint64_t turns = 0, number;; turns++) {
		if (!way->take(PARTNER, &number))
			fail("the partner got nothing: %s", strerror(errno));
		if (number == END)
			return turns;
		if (number != turns)
			fail("the partner got %llu", (unsigned long long)number);
		if (!way->pass(DRIVER, number))
			fail("the partner cannot answer: %s", strerror(errno));
	}
}

void start_pingpong(const struct way *chosen)
{
	way = chosen;
	start_partner(serve);
}

void run_pingpong(uint64_t n)
{
	uint64_t answer;

	for (; n; n--, count++)
		if (!way->pass(PARTNER, count) || !way->take(DRIVER, &answer) || answer != count)
			fail("the partner did not answer %llu", (unsigned long long)count);
}

void check_pingpong(uint64_t n)
{
	if (!way->pass(PARTNER, END))
		fail("cannot ask the partner to end: %s", strerror(errno));
	uint64_t turns = end_partners();
	if (count != n || turns != n)
		fail("%llu round trips were counted, %llu by the partner", (unsigned long long)count,
		     (unsigned long long)turns);
}
