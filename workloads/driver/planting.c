/* Work that is done and not reported, so that a known effect can be looked for. */
#include "driver.h"

#include <math.h>

/* What is owed is counted in millionths of an operation: over a sample the share is exact within one
 * operation. */
enum { LEAST_PLANTED = 10 };
static struct {
	uint64_t ppm, owed, operations;
	/* Every `every`th batch does all the planted work; `due` is what earlier batches left to it. */
	uint64_t every, batches, due;
	double fastest_op_ns; /* in the batch that was held up least */
} planted = {.every = 1};

void begin_planting(const struct options *options)
{
	planted.ppm = options->plants ? options->planted_ppm : 0;
	planted.owed = MILLION / 2; /* to the nearest operation */
	planted.operations = 0;
	planted.every = options->planted_every;
	planted.batches = planted.due = 0;
	planted.fastest_op_ns = INFINITY;
}

uint64_t with_planted(uint64_t n)
{
	uint64_t owed = planted.owed + n % MILLION * planted.ppm;

	planted.due += n / MILLION * planted.ppm + owed / MILLION;
	planted.owed = owed % MILLION;
	if (++planted.batches % planted.every)
		return n;
	n += planted.due;
	planted.operations += planted.due;
	planted.due = 0;
	return n;
}

uint64_t planted_operations(void)
{
	return planted.operations;
}

/* A sample that others held up may have few operations: it counts where it would have had enough. */
void end_planting(const struct options *options, struct sample *sample)
{
	double operations = options->target_ns / planted.fastest_op_ns;
	double share = operations * planted.ppm / MILLION;

	sample->planted_operations = planted.operations;
	if (!planted.ppm || options->latencies)
		return;
	if (planted.due)
		fail("a sample of %llu batches lacks the work planted in every %llu",
		     (unsigned long long)planted.batches, (unsigned long long)planted.every);
	if (options->operations)
		return;
	/* Slice lengths are multiples of the planting interval, so nothing was rounded. */
	double wanted = (double)sample->operations * planted.ppm / MILLION;
	bool is_rounded = fabs(planted.operations - wanted) * 2 * LEAST_PLANTED > wanted;
	if (is_rounded && planted.operations < LEAST_PLANTED && share < LEAST_PLANTED)
		fail("too few operations to plant %g %%: rounding needs at least %d planted operations, and a sample "
		     "has %.0f operations. Use a longer --sample",
		     planted.ppm / 1e4, LEAST_PLANTED, operations);
}

void has_planted(uint64_t all, uint64_t elapsed_ns)
{
	if (elapsed_ns < all * planted.fastest_op_ns)
		planted.fastest_op_ns = (double)elapsed_ns / all;
}
