/* Work that is done and not reported, so that a known effect can be looked for: operations of the workload,
 * or shorter steps where a batch has too few operations to add a whole one to each. */
#include "driver.h"

#include <math.h>

/* What is owed is counted in millionths of an operation: over a sample the share is exact within one
 * operation. */
enum { LEAST_PLANTED = 10 };
static struct {
	uint64_t ppm, owed;
	double operations;
	/* Every `every`th batch does all the planted work; `due` is what earlier batches left to it. */
	uint64_t every, batches, due;
	double fastest_op_ns; /* in the batch that was held up least */
	/* What is planted is not operations, but steps of the same length; 0: operations. */
	double steps_per_op;
	uint64_t due_steps;
} planted = {.every = 1};

/* So many multiplications that wait for each other: no memory, no branch, about a nanosecond each. */
static void do_steps(uint64_t count)
{
	uint64_t x = count;

	for (uint64_t i = 0; i < count; i++) {
		x = x * 6364136223846793005u + 1;
		/* Or the compiler would do all steps at once. */
		__asm__ volatile("" : "+r"(x));
	}
}

/* The fastest of some tries: what disturbs one of them only makes it longer. */
static uint64_t fastest_batch_ns(uint64_t n)
{
	enum { TRIES = 8 };
	uint64_t fastest = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t elapsed = time_batch(n);
		if (elapsed < fastest)
			fastest = elapsed;
	}
	return fastest;
}

void plant_in_steps(uint64_t n)
{
	enum { TRIES = 8, STEPS = 20000 };
	uint64_t fastest = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t start = now_ns();
		do_steps(STEPS);
		uint64_t elapsed = now_ns() - start;
		if (elapsed < fastest)
			fastest = elapsed;
	}
	planted.steps_per_op = (double)fastest_batch_ns(n) / n * STEPS / fastest;
}

void begin_planting(const struct options *options)
{
	planted.ppm = options->plants ? options->planted_ppm : 0;
	planted.owed = MILLION / 2; /* to the nearest operation */
	planted.operations = 0;
	planted.every = options->planted_every;
	planted.batches = planted.due = 0;
	planted.due_steps = 0;
	planted.fastest_op_ns = INFINITY;
}

/* Each batch has the same number of steps, so that a median of batches sees them. */
static void add_steps(uint64_t n)
{
	planted.due_steps += (uint64_t)((double)n * planted.ppm / MILLION * planted.steps_per_op + 0.5);
	planted.batches++;
}

uint64_t with_planted(uint64_t n)
{
	if (planted.steps_per_op) {
		add_steps(n);
		return n;
	}
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

void do_planted_steps(void)
{
	if (!planted.steps_per_op || planted.batches % planted.every)
		return;
	do_steps(planted.due_steps);
	planted.operations += (double)planted.due_steps / planted.steps_per_op;
	planted.due_steps = 0;
}

double planted_operations(void)
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
	if (planted.due || planted.due_steps)
		fail("a sample of %llu batches lacks the work planted in every %llu",
		     (unsigned long long)planted.batches, (unsigned long long)planted.every);
	if (options->operations)
		return;
	/* Not in slices of --turns: they have whole operations, or steps. */
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
