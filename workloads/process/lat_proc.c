/* lmbench's lat_proc procedure and shell: a procedure is called; a shell executes a program. The others of
 * lat_proc are fork and exec. */
#include "small/image.h"
#include "workload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t calls;

SEPARATE static void procedure(void)
{
	calls++;
}

static void run_procedure(uint64_t n)
{
	for (; n; n--)
		procedure();
}

static void check_procedure(uint64_t n)
{
	if (calls != n)
		fail("%llu calls were counted", (unsigned long long)calls);
}

enum { STATUS = 43 }; /* nobody else exits with this: it was our program that ran */

#define PROGRAM "@lat-shell"

/* A shell looks for the program in PATH, and calls it by its name there: main() knows it by that. */
static void prepare_shell(void)
{
	char image[64];

	enter_scratch_directory();
	snprintf(image, sizeof image, "/proc/%d/exe", (int)getpid());
	if (symlink(image, PROGRAM) < 0)
		fail("symlink: %s", strerror(errno));
	setenv("PATH", ".", 1);
}

static void run_shell(uint64_t n)
{
	for (; n; n--) {
		pid_t child = fork();

		if (child < 0)
			fail("fork: %s", strerror(errno));
		if (child == 0) {
			execl("/bin/sh", "sh", "-c", PROGRAM, (char *)NULL);
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

WORKLOAD(lat_procedure, .name = "lat-procedure", .summary = "call a procedure that counts", .unit = "ops/s",
	 .units_per_op = 1, .syscalls_per_op = 0, .source = "lmbench 3 lat_proc procedure", .run = run_procedure,
	 .check = check_procedure);
WORKLOAD(lat_shell, .name = "lat-shell", .summary = "fork a shell that executes a small program, and wait for it",
	 .unit = "ops/s", .units_per_op = 1, .syscalls_per_op = IMAGE_SYSCALLS + 60,
	 .syscalls_note = "approximate, with dash 0.5.12; " IMAGE_NOTE, .source = "lmbench 3 lat_proc shell",
	 .prepare = prepare_shell, .run = run_shell, .exec_self = exec_self);
