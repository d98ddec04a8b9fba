/* Forks a process that executes a small program, which ends at once. The program is this executable
 * itself, so that the workload needs no file beside it. */
#include "workload.h"
#include "image.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { STATUS = 42 }; /* nobody else exits with this: it was our program that ran */

static void run(uint64_t n)
{
	char *arguments[] = {"@exec", NULL};

	for (; n; n--) {
		pid_t child = fork();

		if (child < 0)
			fail("fork: %s", strerror(errno));
		if (child == 0) {
			execve("/proc/self/exe", arguments, environ);
			_exit(127);
		}
		expect_exit(child, STATUS);
	}
}

static int exec_self(int argc, char **argv)
{
	(void)argc, (void)argv;
	_exit(STATUS);
}

WORKLOAD(exec, .name = "exec", .summary = "fork a process that executes a small program, and wait for it",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = IMAGE_SYSCALLS + 4,
	 .syscalls_note = "approximate: " IMAGE_NOTE, .source = "lmbench 3 lat_proc exec", .run = run,
	 .exec_self = exec_self);
