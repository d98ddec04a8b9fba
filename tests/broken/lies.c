/* Workloads that print a sample which cannot be. */
#include "workload.h"

#include <stdio.h>
#include <unistd.h>

static const char *const samples[] = {
	"{\"operations\":0,\"elapsed_ns\":70000000}",
	"{\"operations\":NaN,\"elapsed_ns\":70000000}",
	"{\"operations\":1e12,\"elapsed_ns\":70000000}",
	"{\"operations\":70000,\"elapsed_ns\":70000000,\"rate\":1e9}",
	"{\"operations\":70000,\"elapsed_ns\":70000000,\"rate\":-1e6}",
	"{\"operations\":700,\"elapsed_ns\":700000,\"unit\":\"ops/s\"}",
	"{\"operations\":700,\"elapsed_ns\":700000,\"unit\":\"KBps\"}",
};

static void say(int which)
{
	puts(samples[which]);
	fflush(stdout);
	_exit(0);
}

static void lie(void)
{
	say(current->count);
}

/* The truth first, and then another unit. */
static void change_unit(void)
{
	bool is_first = access("was-here", F_OK) != 0;

	if (is_first)
		create_file("was-here", 0);
	say(is_first ? 5 : 6);
}

static void run(uint64_t n)
{
	(void)n;
}

#define LIES(id, how, number, what)                                                             \
	WORKLOAD(id, .name = "broken-" how, .summary = how, .unit = "ops/s", .units_per_op = 1,   \
		 .syscalls_per_op = 1, .source = "tests/input/broken_workloads.rs", .count = number,     \
		 .run = run, .prepare = what)

LIES(zero, "zero", 0, lie);
LIES(nan, "nan", 1, lie);
LIES(fast, "fast", 2, lie);
LIES(rate, "rate", 3, lie);
LIES(negative, "negative", 4, lie);
LIES(unit, "unit", 0, change_unit);
