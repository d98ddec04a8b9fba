/* A process that starts and ends, and whose parent waits for it. UnixBench and lmbench differ in what
 * the child does: exit(3) runs the handlers of the C library, _exit(2) does not. */
#include "workload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* In memory, as UnixBench's, which an alarm reports: every fork makes its page be copied. */
static volatile uint64_t spawned;

static void run_spawn(uint64_t n)
{
	for (; n; n--, spawned++) {
		int status;
		pid_t child = fork();

		if (child < 0)
			fail("fork: %s", strerror(errno));
		if (child == 0)
			exit(0);
		if (wait(&status) != child || status != 0)
			fail("the child did not exit with status 0");
	}
}

static void check_spawn(uint64_t n)
{
	if (spawned != n)
		fail("%llu processes were counted", (unsigned long long)spawned);
}

static void run_fork(uint64_t n)
{
	for (; n; n--) {
		pid_t child = fork();

		if (child < 0)
			fail("fork: %s", strerror(errno));
		if (child == 0)
			_exit(1);
		expect_exit(child, 1);
	}
}

#define NOTE "clone, exit_group, wait4, and set_robust_list, which glibc adds in the child"

#define SPAWN                                                                                       \
	.summary = "fork a process that exits at once, and wait for it", .unit = "ops/s",             \
	.units_per_op = 1, .syscalls_per_op = 4, .syscalls_note = NOTE,                             \
	.source = "UnixBench 6.0 spawn (Process Creation)", .run = run_spawn, .check = check_spawn

WORKLOAD(spawn, .name = "spawn", SPAWN);
/* The child inherits the CPU of its parent. Left alone, it starts on this CPU or on another. */
WORKLOAD(spawn_same_cpu, .name = "spawn@same-cpu", .placement = SAME_CPU, .prepare = place_driver, SPAWN);
WORKLOAD(fork, .name = "fork", .summary = "fork a process that calls _exit(1), and wait for it", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 4, .syscalls_note = NOTE, .source = "lmbench 3 lat_proc fork",
	 .run = run_fork);
