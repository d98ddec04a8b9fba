/* Starts a small program as servers and shells do today: without copying the parent's page tables. The
 * program is this executable itself, as in exec.c, which starts it by fork. */
#include "workload.h"
#include "image.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <unistd.h>

enum { STATUS = 43 }; /* nobody else exits with this: it was our program that ran */

static int exec_self(int argc, char **argv)
{
	(void)argc, (void)argv;
	_exit(STATUS);
}

/* By itself, because the child runs on the parent's stack: what the compiler merges with it may change
 * under the parent's hands. */
SEPARATE static pid_t vfork_program(char **arguments)
{
	pid_t child = vfork();

	if (child == 0) {
		execve("/proc/self/exe", arguments, environ);
		_exit(127);
	}
	return child;
}

static void run_vfork(uint64_t n)
{
	char *arguments[] = {"@vfork-exec", NULL};

	for (; n; n--) {
		pid_t child = vfork_program(arguments);

		if (child < 0)
			fail("vfork: %s", strerror(errno));
		expect_exit(child, STATUS);
	}
}

static void run_posix_spawn(uint64_t n)
{
	char *arguments[] = {"@posix_spawn", NULL};

	for (; n; n--) {
		pid_t child;
		int error = posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ);

		if (error)
			fail("posix_spawn: %s", strerror(error));
		expect_exit(child, STATUS);
	}
}

WORKLOAD(vfork, .name = "vfork-exec", .summary = "vfork a process that executes a small program, and wait for it",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = IMAGE_SYSCALLS + 3,
	 .syscalls_note = "approximate: " IMAGE_NOTE, .source = "vfork(2)", .run = run_vfork,
	 .exec_self = exec_self);
WORKLOAD(posix_spawn, .name = "posix_spawn", .summary = "posix_spawn a small program, and wait for it",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = IMAGE_SYSCALLS + 131,
	 .syscalls_note = "approximate; 122 of them put the child's signals in order, two for each; " IMAGE_NOTE, .source = "posix_spawn(3)", .run = run_posix_spawn,
	 .exec_self = exec_self);
