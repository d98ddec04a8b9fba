/* One sample: prepare, warm up and calibrate, time, check, clean up, print. */
#include "counter.h"
#include "disk.h"
#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* What a build is called by who had it made from these sources; the one that is embedded has none. */
extern const char weigh_build[] __attribute__((weak));

/* A batch that should last milliseconds and takes so long was not preempted: it waits, and would again. */
#define TOO_LONG_NS 1000000000ull

static uint64_t total_operations;
static uint64_t slice_ns[MAX_SLICES];

/* A batch lasts a 32nd of the target: its clock is read twice in 0.3 ms or more. */
enum { BATCHES = 32 };

uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

uint64_t time_batch(uint64_t n)
{
	uint64_t all = with_planted(n);
	uint64_t start = now_ns();
	current->run(all);
	do_planted_steps(all, start);
	uint64_t elapsed = now_ns() - start;

	total_operations += all;
	has_planted(all, elapsed);
	return elapsed;
}

/* The timed part: batches, until the target is reached. Changes n to what was done. How many operations
 * that takes is not foretold from the warm-up, so the warm-up may be short. Batches that were too short to
 * count add nothing: `wrong` becomes the number of operations that were not done before those that count. */
static uint64_t time_batches(uint64_t *n, const struct options *options, uint64_t *slices, uint64_t *wrong)
{
	const uint64_t target_ns = options->target_ns, too_short_ns = target_ns / BATCHES / 8;
	uint64_t batch = *n / BATCHES + 1, elapsed = 0, waited = 0, count = 0;
	bool has_grown = false;

	do {
		uint64_t one = time_batch(batch);
		/* What seems long enough now may have been held up itself. */
		if (count == 0 && has_grown && one >= too_short_ns) {
			begin_planting(options);
			time_waited();
			*wrong = not_done();
			one = time_batch(batch);
		}
		/* The warm-up was held up and foretold too few: so short a batch would time the clock. */
		if (count == 0 && one < too_short_ns && batch < 1ull << 40) {
			batch *= 8;
			has_grown = true;
			begin_planting(options);
			*wrong = not_done();
			continue;
		}
		uint64_t not_its_own = time_waited();
		if (count < MAX_SLICES)
			slice_ns[count] = one - not_its_own;
		elapsed += one;
		waited += not_its_own;
		count++;
	} while (elapsed < target_ns || count % options->planted_every);
	*n = count * batch;
	*slices = count < MAX_SLICES ? count : MAX_SLICES;
	return elapsed - waited;
}

/* How many operations fill the target.
 *
 * The batch grows until it lasts as long as one of the timed part; that is long enough to be scaled. A
 * batch that was preempted lasts too long and would end the growth too early, so a batch that seems long
 * enough runs again, and the faster of the two is believed; but not one operation that fills a quarter of
 * the target, which would cost too much, where the batches of the timed part still grow. The answer is
 * never smaller than a batch that was needed to get there, and never smaller than one operation. */
static uint64_t calibrate(uint64_t target_ns, bool grows)
{
	uint64_t enough = target_ns / BATCHES, n = 1;

	/* Cold caches, cold files: not representative, unless one operation takes long enough to warm them. */
	uint64_t cold = time_batch(1);
	for (;;) {
		uint64_t elapsed = n == 1 && cold >= enough ? cold : time_batch(n);
		if (elapsed >= enough && (elapsed < TOO_LONG_NS || elapsed < 4 * enough) &&
		    !(grows && n == 1 && elapsed >= target_ns / 4)) {
			uint64_t again = time_batch(n);
			if (again < elapsed)
				elapsed = again;
		}
		if (elapsed >= enough) {
			uint64_t scaled = (double)n * target_ns / elapsed;
			return scaled > n ? scaled : n;
		}
		if (n > 1ull << 44)
			fail("%llu operations take no time: the work was optimised away", (unsigned long long)n);
		n *= elapsed < enough / 16 ? 8 : 2;
	}
}

static long long between_ns(struct timeval from, struct timeval to)
{
	return (to.tv_sec - from.tv_sec) * 1000000000ll + (to.tv_usec - from.tv_usec) * 1000ll;
}

struct usage usage(void)
{
	struct usage usage;
	struct rusage self, children, *total = &usage.all;

	getrusage(RUSAGE_CHILDREN, &children);
	*total = children;
	if (current->add_usage)
		current->add_usage(total);
	usage.asked_ns =
		between_ns(children.ru_utime, total->ru_utime) + between_ns(children.ru_stime, total->ru_stime);
	getrusage(RUSAGE_SELF, &self);
	timeradd(&total->ru_utime, &self.ru_utime, &total->ru_utime);
	timeradd(&total->ru_stime, &self.ru_stime, &total->ru_stime);
	total->ru_nvcsw += self.ru_nvcsw;
	total->ru_nivcsw += self.ru_nivcsw;
	total->ru_minflt += self.ru_minflt;
	total->ru_majflt += self.ru_majflt;
	return usage;
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* What two readings of the clock are apart with nothing between them: the median of many. */
static uint64_t clock_cost(void)
{
	uint64_t apart[1001];
	const size_t count = sizeof apart / sizeof *apart;

	for (size_t i = 0; i < count; i++) {
		uint64_t start = now_ns();
		apart[i] = now_ns() - start;
	}
	qsort(apart, count, sizeof *apart, compare_numbers);
	return apart[count / 2];
}

/* Times every operation by itself, for the target or until n are done, whichever comes first: beside
 * the clock, n operations may take many times as long. Changes n to what was done. */
static uint64_t time_each(uint64_t *n, uint64_t target_ns, uint64_t clock_ns)
{
	uint64_t start = now_ns(), end = start, done = 0;

	time_waited();
	while (done < *n && end - start < target_ns) {
		uint64_t all = with_planted(1), wrong = not_done(), before = now_ns();
		current->run(all);
		end = now_ns();
		total_operations += all;
		if (wrong == not_done())
			histogram_add(end - before > clock_ns ? end - before - clock_ns : 0);
		done++;
	}
	*n = done;
	return end - start - time_waited();
}

void print_slices(const uint64_t *slices_ns, uint64_t slices)
{
	printf(",\"slices_ns\":[%llu", (unsigned long long)slices_ns[0]);
	for (uint64_t i = 1; i < slices; i++)
		printf(",%llu", (unsigned long long)slices_ns[i]);
	printf("]");
}

void run_untimed(uint64_t n)
{
	current->run(n);
	total_operations += n;
}

void prepare_workload(void)
{
	if (current->prepare)
		current->prepare();
}

/* Otherwise operations are timed one by one, or all at once. */
static bool is_in_batches(const struct options *options)
{
	return !options->latencies && !options->count_instructions && !current->only_in_batches;
}

void prepare_once(void)
{
	make_times();
	if (current->prepare_once)
		current->prepare_once();
}

uint64_t warm_up(const struct options *options, struct sample *sample)
{
	uint64_t n = options->operations, started = now_ns();

	/* What may hang is not waited for here, unless the process is to be older. */
	if (options->endures && !options->warm_up_ns)
		return 1;
	if (options->endures)
		n = 1;
	/* One operation alone tells what a start makes, and is all that is done. */
	if (n > 1)
		time_batch(n / 32 + 1);
	else if (n == 0)
		n = calibrate(options->target_ns, is_in_batches(options) && options->copies <= 1);
	while (now_ns() - started < options->warm_up_ns)
		time_batch(n / BATCHES + 1);
	sample->calibration_ms = (now_ns() - started) / 1e6;
	return n;
}

void record_usage(struct sample *sample, struct usage from, struct usage to)
{
	const struct rusage before = from.all, after = to.all;

	sample->asked_ns = to.asked_ns - from.asked_ns;
	sample->user_ns = between_ns(before.ru_utime, after.ru_utime);
	sample->system_ns = between_ns(before.ru_stime, after.ru_stime);
	sample->voluntary_switches = after.ru_nvcsw - before.ru_nvcsw;
	sample->involuntary_switches = after.ru_nivcsw - before.ru_nivcsw;
	sample->minor_faults = after.ru_minflt - before.ru_minflt;
	sample->major_faults = after.ru_majflt - before.ru_majflt;
}

void end_sample(struct sample *sample, struct usage before, struct usage after)
{
	uint64_t n = sample->operations, elapsed = sample->elapsed_ns;

	/* No CPU does an operation of any workload in 50 ps. */
	if (elapsed == 0 || n / elapsed >= 20)
		fail("%llu operations in %llu ns: the work was optimised away", (unsigned long long)n,
		     (unsigned long long)elapsed);
	sample->total_operations = total_operations;
	sample->rate = n * current->units_per_op * 1e9 / elapsed;
	record_usage(sample, before, after);

	if (current->check)
		current->check(total_operations);
	take_faults(&sample->faults);
	if (current->cleanup)
		current->cleanup();
	remove_scratch_directory();
}

static bool has_readings;

void print_reading(const char *name, double value, const char *unit, const char *better)
{
	printf("%s{\"name\":\"%s\",\"value\":%.10g,\"unit\":\"%s\",\"better\":\"%s\"}",
	       has_readings ? "," : ",\"readings\":[", name, value, unit, better);
	has_readings = true;
}

void print_readings(const struct sample *sample)
{
	int64_t own_ns = sample->user_ns + sample->system_ns - sample->asked_ns;

	/* Of a server, whose it is matters: the client may be exempt from what is weighed. */
	if (current->needs && sample->operations && sample->asked_ns > 0) {
		print_reading("server_cpu", (double)sample->asked_ns / sample->operations, "ns/op", "lower");
		print_reading("server_cpu_share", 100.0 * sample->asked_ns / sample->elapsed_ns, "%", "lower");
		print_reading("client_cpu", (double)own_ns / sample->operations, "ns/op", "lower");
	}
	if (current->tell)
		current->tell();
	if (sample->unsent)
		print_reading("unsent", sample->unsent, "requests", "lower");
	if (has_readings)
		putchar(']');
}

static void print_number(const char *key, int64_t number)
{
	printf("\"%s\":%lld,", key, (long long)number);
}

void print_sample(const struct options *options, const struct sample *sample)
{
	printf("{\"workload\":\"%s\",", current->name);
	print_number("operations", sample->operations);
	print_number("elapsed_ns", sample->elapsed_ns);
	print_number("user_ns", sample->user_ns);
	print_number("system_ns", sample->system_ns);
	print_number("voluntary_switches", sample->voluntary_switches);
	print_number("involuntary_switches", sample->involuntary_switches);
	print_number("minor_faults", sample->minor_faults);
	print_number("major_faults", sample->major_faults);
	print_number("total_operations", sample->total_operations);
	printf("\"syscalls_per_op\":%.10g,\"unit\":\"%s\",\"rate\":%.10g,", current->syscalls_per_op,
	       current->unit, sample->rate);
	printf("\"calibration_ms\":%.3f", sample->calibration_ms);
	if (weigh_build)
		printf(",\"build\":\"%s\"", weigh_build);
	print_faults(current, &sample->faults);
	if (options->plants)
		printf(",\"planted_operations\":%.10g,\"is_planted_in_steps\":%s", sample->planted_operations,
		       sample->is_planted_in_steps ? "true" : "false");
}

/* What moves bytes of files has counted some by then. */
static bool begin_disk_bytes(void)
{
	bool moves_bytes = disk_bytes > 0;

	disk_bytes = 0;
	if (moves_bytes)
		count_machine();
	return moves_bytes;
}

void take_sample(const struct options *options)
{
	const bool count = options->count_instructions;
	struct counter instructions = open_counter(count, KERNEL_INSTRUCTIONS);
	struct counter cycles = open_counter(count, CYCLES);
	struct sample sample = {.operations = 0};
	prepare_once();
	prepare_workload();
	uint64_t n = warm_up(options, &sample);
	uint64_t clock_ns = options->latencies ? clock_cost() : 0;
	bool moves_bytes = begin_disk_bytes();
	struct usage before = usage();
	uint64_t slices = 0, wrong = not_done();
	start_counter(&instructions);
	start_counter(&cycles);
	begin_planting(options);
	time_waited();
	keep_times(true);
	if (options->latencies)
		sample.elapsed_ns = time_each(&n, options->operations ? UINT64_MAX : options->target_ns, clock_ns);
	else if (!options->operations && is_in_batches(options))
		sample.elapsed_ns = time_batches(&n, options, &slices, &wrong);
	else
		sample.elapsed_ns = time_batch(n) - time_waited();
	keep_times(false);
	stop_counter(&cycles);
	stop_counter(&instructions);
	sample.operations = n - (not_done() - wrong);
	if (moves_bytes)
		count_machine_again();
	uint64_t moved_bytes = disk_bytes;
	end_planting(options, &sample);
	end_sample(&sample, before, usage());

	print_sample(options, &sample);
	if (options->slices && slices)
		print_slices(slice_ns, slices);
	print_counter("kernel_instructions", &instructions);
	print_counter("cycles", &cycles);
	if (options->latencies) {
		printf(",\"latencies\":{\"clock_ns\":%llu,\"buckets\":", (unsigned long long)clock_ns);
		histogram_print();
		printf("}");
	}
	if (moves_bytes)
		print_disk_bytes(moved_bytes, n);
	print_readings(&sample);
	print_times();
	printf("}\n");
	if (fflush(stdout) != 0)
		fail("cannot write the result: %s", strerror(errno));
}
