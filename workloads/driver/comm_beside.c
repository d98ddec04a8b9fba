/* What W_test does beside COMM: any workload, in as many copies as there are CPUs to contend for, or a mix,
 * in as many as it has users. A copy does its units, and then more that nobody counts, until all that is
 * scored has ended. */
#include "comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct load_options *mix;
static int *directories;
static uint64_t *runs;

static void enter(int test)
{
	static int last = -1;

	current = mix->jobs[test].test;
	if (test == last)
		return;
	if (fchdir(directories[test]) < 0)
		fail("cannot enter its directory: %s", strerror(errno));
	last = test;
}

static void run_one(int test)
{
	enter(test);
	current->run(1);
	runs[test]++;
}

_Noreturn void be_activity(const struct beside *beside, struct comm_board *board, int number)
{
	char name[32];
	long jobs = 0;

	mix = &beside->mix;
	current = beside->activity;
	snprintf(name, sizeof name, "activity-%d", number + 1);
	if (mkdir(name, 0700) < 0 || chdir(name) < 0)
		fail("cannot make the directory %s: %s", name, strerror(errno));
	keep_scratch_directory();
	int *order = shuffle_jobs(mix, number);
	directories = prepare_jobs(mix);
	runs = calloc(mix->tests, sizeof *runs);
	if (!runs)
		fail("no memory for the activity");
	/* Cold caches and files are no part of what is timed. */
	for (int test = 0; test < mix->tests; test++) {
		run_one(test);
		jobs += mix->jobs[test].count;
	}
	atomic_fetch_add(&board->ready, 1);
	wait_at_gate(&board->gate);
	for (uint64_t done = 0; !atomic_load(&board->over); done++) {
		run_one(order[done % jobs]);
		if (done + 1 != beside->units)
			continue;
		board->activity_ns[number] = now_ns() - board->opened_ns;
		if (atomic_fetch_sub(&board->activities_left, 1) == 1 && !atomic_load(&board->transfers_left))
			open_gate(&board->over);
	}
	for (int test = 0; test < mix->tests; test++) {
		enter(test);
		if (current->check)
			current->check(runs[test]);
		if (current->cleanup)
			current->cleanup();
	}
	_exit(0);
}
