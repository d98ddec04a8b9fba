/* UnixBench's "Exec System Call Overhead": a process forks, and the child executes `true`. */
#include "workload.h"
#include "program.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char *program;

static void prepare(void)
{
	program = find_program("true", "coreutils");
}

static void run(uint64_t n)
{
	for (; n; n--) {
		pid_t child = fork();

		if (child < 0)
			fail("fork: %s", strerror(errno));
		if (child == 0) {
			execl(program, "true", (char *)NULL);
			_exit(127);
		}
		expect_exit(child, 0);
	}
}

WORKLOAD(sysexec, .name = "sysexec", .summary = "fork a process that executes `true`, and wait for it",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = 33,
	 .syscalls_note = "approximate: with coreutils 9.1 and glibc 2.36",
	 .source = "UnixBench 6.0 sysexec (Exec System Call Overhead)", .prepare = prepare, .run = run);
