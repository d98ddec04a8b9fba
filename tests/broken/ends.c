/* Workloads that end otherwise than a sample does. */
#include "workload.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t done;

static void run(uint64_t n)
{
	while (n--)
		done += getppid() >= 0;
}

/* As if the compiler had left out an operation. */
static void find_one_missing(uint64_t n)
{
	if (done - 1 != n)
		fail("%llu of %llu were done", (unsigned long long)done - 1, (unsigned long long)n);
}

static void exit_early(void)
{
	exit(0);
}

static void exit_with_3(void)
{
	exit(3);
}

static void crash(void)
{
	raise(SIGSEGV);
}

#define ENDS(id, how, ...)                                                                      \
	WORKLOAD(id, .name = "broken-" how, .summary = how, .unit = "ops/s", .units_per_op = 1,   \
		 .syscalls_per_op = 1, .source = "tests/input/broken_workloads.rs", .run = run, __VA_ARGS__)

ENDS(wrong, "wrong", .check = find_one_missing);
ENDS(early, "early", .prepare = exit_early);
ENDS(status, "status", .prepare = exit_with_3);
ENDS(crash, "crash", .prepare = crash);
