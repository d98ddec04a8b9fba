/* Several copies of a workload at the same time, each on a CPU of its own where there are enough.
 *
 * Every copy prepares and calibrates by itself; then all start together and work until their time is up,
 * and on until the last one's is, so that each is measured under the load of all others. */
#include "driver.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* In memory that all copies share. */
static struct shared {
	atomic_int prepared, measuring;
	_Atomic uint32_t started; /* a futex */
	_Atomic uint64_t opened_ns;
	_Atomic uint64_t last_due_ns; /* of all copies together: whichever is free takes the next one */
	_Atomic uint64_t buckets[HISTOGRAM_BUCKETS];
	struct sample samples[];
} *shared;

static pid_t driver, group;

/* When the operations of one that goes on whatever happens end. */
static uint64_t over_at_ns;
static bool goes_on;

bool endures(void)
{
	return goes_on;
}

bool time_is_over(void)
{
	return over_at_ns && now_ns() >= over_at_ns;
}

static bool is_one_by_one(const struct options *options)
{
	return options->per_1000s || options->endures;
}

/* Placed workloads place themselves, from the CPU that they are on. */
static void choose_cpu(int number)
{
	cpu_set_t allowed;
	int cpu = -1;

	if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
		fail("cannot read the allowed CPUs: %s", strerror(errno));
	for (int skipped = number % CPU_COUNT(&allowed); skipped >= 0; skipped--)
		while (!CPU_ISSET(++cpu, &allowed))
			;
	stay_on(cpu);
	if (current->placement != ANYWHERE)
		sched_setaffinity(0, sizeof allowed, &allowed);
}

static void start_together(int copies)
{
	if (atomic_fetch_add(&shared->prepared, 1) + 1 == copies) {
		atomic_store(&shared->opened_ns, now_ns());
		open_gate(&shared->started);
	}
	wait_at_gate(&shared->started);
}

static uint64_t next_begin(const struct options *options, uint64_t opened_ns)
{
	if (!options->per_1000s)
		return now_ns();
	return opened_ns + take_due_ns(&shared->last_due_ns, options->per_1000s, options->seed);
}

/* Each operation by itself, until the time is over. Of those that begin when they are due, the time is from
 * then: one that could not begin, as no copy was free, waited meanwhile, as whoever wants it does. */
static void work_one_by_one(struct sample *sample, const struct options *options)
{
	const uint64_t opened_ns = atomic_load(&shared->opened_ns);
	uint64_t begins, ended = opened_ns;

	over_at_ns = opened_ns + options->target_ns;
	faults_are_timed_from(opened_ns);
	while ((begins = next_begin(options, opened_ns)) < over_at_ns) {
		if (ended >= over_at_ns) {
			sample->unsent++;
			continue;
		}
		wait_until(begins);
		uint64_t wrong = not_done();
		time_batch(1);
		ended = now_ns();
		if (wrong == not_done()) {
			histogram_add(ended - begins);
			sample->operations++;
		}
	}
	wait_until(over_at_ns);
	sample->elapsed_ns = now_ns() - opened_ns;
}

/* Batches, until the target is reached. */
static void work_in_batches(struct sample *sample, const struct options *options, uint64_t batch)
{
	uint64_t begin = now_ns(), wrong = not_done();

	begin_planting(options);
	time_waited();
	do {
		time_batch(batch);
		sample->operations += batch;
		sample->elapsed_ns = now_ns() - begin;
	} while (!options->operations && sample->elapsed_ns < options->target_ns);
	sample->elapsed_ns -= time_waited();
	sample->operations -= not_done() - wrong;
}

static _Noreturn void be_copy(int number, const struct options *options)
{
	struct sample sample = {.operations = 0};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != driver)
		_exit(1); /* it died before that line */
	part_from_janitor();
	setpgid(0, group);
	own_cleanup();
	copy_number = number;
	choose_cpu(number);
	prepare_workload();
	uint64_t n = warm_up(options, &sample);
	uint64_t batch = options->operations ? n : n / 32 + 1;

	start_together(options->copies);
	struct usage before = usage();
	keep_times(true);
	if (is_one_by_one(options))
		work_one_by_one(&sample, options);
	else
		work_in_batches(&sample, options, batch);
	keep_times(false);
	struct usage after = usage();
	atomic_fetch_sub(&shared->measuring, 1);
	if (!is_one_by_one(options)) {
		end_planting(options, &sample);
		/* On for those who are not there yet. */
		while (atomic_load(&shared->measuring) > 0)
			time_batch(batch);
	}
	end_sample(&sample, before, after);
	histogram_share(shared->buckets);
	shared->samples[number] = sample;
	_exit(0);
}

/* The failed copy has said why, unless it could not. */
static _Noreturn void give_up(int number, int status)
{
	if (WIFSIGNALED(status))
		fprintf(stderr, "%s: copy %d was killed by signal %d\n", current->name, number + 1,
			WTERMSIG(status));
	dismiss_janitor(group);
	_exit(1);
}

static void start_copies(const struct options *options, pid_t *copies)
{
	for (int i = 0; i < options->copies; i++) {
		copies[i] = fork();
		if (copies[i] == 0)
			be_copy(i, options);
		if (copies[i] < 0) {
			fprintf(stderr, "%s: cannot start copy %d: %s\n", current->name, i + 1, strerror(errno));
			dismiss_janitor(group);
			_exit(1);
		}
		/* Here too, or a copy could be in no group yet when the next one is to join it. */
		setpgid(copies[i], group);
		if (i == 0) {
			group = copies[0];
			register_cleanup(group);
		}
	}
}

static void add(struct sample *total, const struct sample *one)
{
	total->operations += one->operations;
	total->total_operations += one->total_operations;
	total->planted_operations += one->planted_operations;
	total->rate += one->rate;
	total->user_ns += one->user_ns;
	total->system_ns += one->system_ns;
	total->asked_ns += one->asked_ns;
	total->unsent += one->unsent;
	add_faults(&total->faults, &one->faults);
	total->voluntary_switches += one->voluntary_switches;
	total->involuntary_switches += one->involuntary_switches;
	total->minor_faults += one->minor_faults;
	total->major_faults += one->major_faults;
	if (total->elapsed_ns < one->elapsed_ns)
		total->elapsed_ns = one->elapsed_ns;
	if (total->calibration_ms < one->calibration_ms)
		total->calibration_ms = one->calibration_ms;
}

void take_copies(const struct options *options)
{
	int count = options->copies;
	size_t bytes = sizeof *shared + count * sizeof *shared->samples;
	struct sample total = {.operations = 0};
	pid_t copies[count];

	driver = getpid();
	goes_on = options->endures;
	shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	shared->measuring = copy_count = count;
	enter_scratch_directory();
	start_janitor();
	prepare_once();
	start_copies(options, copies);
	for (int left = count; left; left--) {
		int status, number = 0;
		pid_t ended = waitpid(-group, &status, 0);

		if (ended < 0)
			fail("waitpid: %s", strerror(errno));
		while (copies[number] != ended)
			number++;
		if (status)
			give_up(number, status);
		add(&total, &shared->samples[number]);
	}
	register_cleanup(0);
	dismiss_janitor(group);

	print_sample(options, &total);
	printf(",\"copies\":%d,\"copy_rates\":[", count);
	for (int i = 0; i < count; i++)
		printf("%s%.10g", i ? "," : "", shared->samples[i].rate);
	putchar(']');
	if (is_one_by_one(options)) {
		printf(",\"latencies\":{\"clock_ns\":0,\"buckets\":");
		histogram_take(shared->buckets);
		histogram_print();
		putchar('}');
	}
	print_readings(&total);
	print_times();
	printf("}\n");
	if (fflush(stdout) != 0)
		fail("cannot write the result: %s", strerror(errno));
}
