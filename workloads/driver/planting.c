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
	/* Of a step, 0: whole operations are planted; and of an operation in the batch before. */
	double step_ns, op_ns;
	uint64_t due_steps;
	/* What each batch took for its operations, and each one with steps for these. */
	double run_ns[MAX_SLICES], steps_ns[MAX_SLICES];
	size_t runs, with_steps;
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

/* So many steps, and a reading of the clock: the fastest of some tries. */
static uint64_t fastest_steps_ns(uint64_t count)
{
	enum { TRIES = 8 };
	uint64_t fastest = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t start = now_ns();
		do_steps(count);
		uint64_t elapsed = now_ns() - start;
		if (elapsed < fastest)
			fastest = elapsed;
	}
	return fastest;
}

void plant_in_steps(uint64_t n)
{
	enum { STEPS = 20000 };

	planted.step_ns = (double)(fastest_steps_ns(STEPS) - fastest_steps_ns(0)) / STEPS;
	planted.op_ns = (double)fastest_batch_ns(n) / n;
}

void begin_planting(const struct options *options)
{
	planted.ppm = options->plants ? options->planted_ppm : 0;
	planted.owed = MILLION / 2; /* to the nearest operation */
	planted.operations = 0;
	planted.every = options->planted_every;
	planted.batches = planted.due = 0;
	planted.due_steps = planted.runs = planted.with_steps = 0;
	planted.fastest_op_ns = INFINITY;
}

/* In each batch, so that a median of batches sees them. */
static void add_steps(uint64_t n)
{
	double share = (double)planted.ppm / MILLION;

	planted.due_steps += (uint64_t)(share * n * planted.op_ns / planted.step_ns + 0.5);
	planted.operations += share * n;
	planted.batches++;
}

/* A machine may change its speed in the middle of a sample. A batch that was held up does not tell. */
static void note_run(uint64_t n, uint64_t run_ns)
{
	double op_ns = (double)run_ns / n;

	if (op_ns < 2 * planted.fastest_op_ns)
		planted.op_ns = op_ns;
}

uint64_t with_planted(uint64_t n)
{
	if (planted.step_ns) {
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

void do_planted_steps(uint64_t n, uint64_t start_ns)
{
	if (!planted.step_ns)
		return;
	bool is_due = planted.batches % planted.every == 0;
	uint64_t ran = now_ns();
	uint64_t before = now_ns(); /* again, as a reading takes time, and more after other code */
	do_steps(is_due ? planted.due_steps : 0);
	uint64_t after = now_ns();

	note_run(n, ran - start_ns);
	if (planted.runs == MAX_SLICES)
		return;
	planted.run_ns[planted.runs++] = ran - start_ns;
	if (!is_due)
		return;
	planted.steps_ns[planted.with_steps++] = (double)(after - before) - (double)(before - ran);
	planted.due_steps = 0;
}

/* What the steps took, measured by a clock that does not know how long they should take. The medians, as a
 * batch or its steps may be held up. */
static double measured_operations(uint64_t operations)
{
	double steps_ns = planted.with_steps * median(planted.steps_ns, planted.with_steps);
	double run_ns = planted.runs * median(planted.run_ns, planted.runs);

	return operations * steps_ns / run_ns;
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
	sample->is_planted_in_steps = planted.step_ns > 0;
	if (!planted.ppm || options->latencies)
		return;
	if (planted.due || planted.due_steps)
		fail("a sample of %llu batches lacks the work planted in every %llu",
		     (unsigned long long)planted.batches, (unsigned long long)planted.every);
	if (sample->is_planted_in_steps && planted.with_steps)
		sample->planted_operations = measured_operations(sample->operations);
	if (options->operations || sample->is_planted_in_steps)
		return;
	/* Not in slices of --turns: they have whole operations. */
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
